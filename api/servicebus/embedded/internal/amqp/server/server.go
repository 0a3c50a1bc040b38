package server

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"net"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
)

// An Application decides which links a server accepts, and processes the messages.
type Application interface {
	// Connected is called once for each connection, after it was opened. The Peer handles its links.
	Connected(c *Conn) Peer
}

// A Peer handles the links of one connection. Its methods must not block.
type Peer interface {
	// Attach accepts or refuses a link. During Attach or later, the Peer must call exactly one of the methods Receive,
	// Send and Refuse of the link.
	Attach(l *Link)

	// Disconnected reports that the connection has ended, after all its links.
	Disconnected()
}

// A Receiver receives the messages that a peer sends on a link.
type Receiver interface {
	// Delivered receives a message. The application must settle the message, during the call or later.
	Delivered(d *Delivery)
}

// A Sender sends messages to a peer on a link.
type Sender interface {
	// Ready reports that Link.Room may have changed. If drain is true, the Sender must send the
	// available messages and then call Link.Drained.
	Ready(drain bool)

	// Disposed reports the outcome that the client has sent for a message. If settled is false, the client waits for
	// Sent.Settle. Link.Room may have increased.
	Disposed(s *Sent, state any, settled bool)
}

// Options configure connections. A zero value selects the default.
type Options struct {
	ContainerID  string
	MaxFrameSize uint32        // maximum size of a received frame; default 64 KB
	MaxSessions  int           // maximum sessions of a connection; default 4096
	MaxLinks     int           // maximum links of a connection; default 8192
	MaxDetaching int           // maximum ended links of a connection whose detach the peer has not yet sent; default 1024
	MaxUnsettled int           // maximum unsettled messages of a link on which the server sends; default 65536
	IdleTimeOut  time.Duration // time within which the peer must send a frame; default 4 min
	StallTimeout time.Duration // timeout of the handshake, and of a write to a peer that does not read; default 1 min
	OutBuffer    int           // maximum bytes that wait to be written; default 1 MB
	InBuffer     int           // maximum bytes of received messages that are not settled; default 4 MB
	TokenTimeout time.Duration // time within which the application must call Conn.Authorize; default 10 s

	// Totals limits the resources of all connections that share it. By default, each connection has its own Totals.
	Totals *Totals

	// Authorized, if set, is called after the application has called Conn.Authorize.
	Authorized func()

	// Authenticate checks a user name and a password. By default, every name and password is valid.
	Authenticate func(name, password string) bool

	// Frames, if set, is called for every frame.
	Frames func(connection uint64, out bool, channel uint16, p amqp.Performative, payload int)

	// Logger logs connections that end with an error.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.ContainerID = cmp.Or(o.ContainerID, "messagehub")
	o.MaxFrameSize = max(cmp.Or(o.MaxFrameSize, 64<<10), amqp.MinMaxFrameSize)
	o.MaxSessions = min(cmp.Or(o.MaxSessions, 4096), math.MaxUint16+1)
	o.MaxLinks = cmp.Or(o.MaxLinks, 8192)
	o.MaxDetaching = cmp.Or(o.MaxDetaching, 1024)
	o.MaxUnsettled = cmp.Or(o.MaxUnsettled, 1<<16)
	o.IdleTimeOut = cmp.Or(o.IdleTimeOut, 4*time.Minute)
	o.StallTimeout = cmp.Or(o.StallTimeout, time.Minute)
	o.OutBuffer = cmp.Or(o.OutBuffer, 1<<20)
	o.InBuffer = cmp.Or(o.InBuffer, 4<<20)
	o.TokenTimeout = cmp.Or(o.TokenTimeout, 10*time.Second)
	if o.Totals == nil {
		o.Totals = NewTotals(TotalLimits{})
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// Serve serves AMQP on nc until either side closes the connection or ctx ends, and closes nc.
// It returns nil if the connection ended without an error.
func Serve(ctx context.Context, nc net.Conn, app Application, o Options) error {
	c := newConn(nc, o.withDefaults())
	c.app = app
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		c.shutDown(amqp.Errorf(amqp.ConnectionForced, "the server is stopping; connect again"))
	})
	defer func() {
		if !stop() {
			<-stopped
		}
	}()
	ended := c.limitAnonymousTime()
	err := c.serveConn()
	ended()
	if err != nil {
		c.options.Logger.Debug("connection ended", "connection", c.ID, "remote", nc.RemoteAddr().String(), "error", err)
	}
	return err
}
