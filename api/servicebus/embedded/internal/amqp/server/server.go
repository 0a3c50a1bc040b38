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

// An Application implements the functions of a server.
type Application interface {
	// Connected is called once for each opened connection.
	Connected(c *Conn) Peer
}

// A Peer is the application's part of one connection. Its methods must not block.
type Peer interface {
	// Attach accepts or refuses a link of the client. During Attach or later, the Peer must call
	// exactly one of the link's methods Receive, Send and Refuse.
	Attach(l *Link)

	// Disconnected reports the end of the connection, after the end of all its links.
	Disconnected()
}

// A Receiver receives the messages of a link.
type Receiver interface {
	// Delivered passes a message to the application, which must settle the message, during the
	// call or later.
	Delivered(d *Delivery)
}

// A Sender sends messages on a link.
type Sender interface {
	// Ready reports that Link.Room may have changed. If drain is true, the Sender must send the
	// available messages and then call Link.Drained.
	Ready(drain bool)

	// Disposed reports the client's outcome of a message. If settled is false, the client waits
	// for Sent.Settle. Link.Room may have increased.
	Disposed(s *Sent, state any, settled bool)
}

// Options configure connections. The zero value has the defaults.
type Options struct {
	ContainerID  string
	MaxFrameSize uint32        // maximum size of a received frame; default 64 KB
	MaxSessions  int           // maximum sessions of a connection; default 4096
	MaxLinks     int           // maximum links of a connection; default 8192
	MaxDetaching int           // maximum ended links of a connection that the peer has not detached yet; default 1024
	MaxUnsettled int           // maximum unsettled messages of a link on which the server sends; default 65536
	IdleTimeOut  time.Duration // time in which the peer must send a frame; default 4 min
	StallTimeout time.Duration // timeout of the handshake, and for a peer that does not read; default 1 min
	OutBuffer    int           // maximum bytes waiting to be written; default 1 MB
	InBuffer     int           // maximum bytes of unsettled messages; default 4 MB
	TokenTimeout time.Duration // time in which the application must call Conn.Authorize; default 10 s

	// Totals limits the resources of all connections that share it. Default: Totals for this
	// connection only.
	Totals *Totals

	// Authorized, if set, is called when the application has called Conn.Authorize.
	Authorized func()

	// Authenticate checks a name and a password. Default: all names and passwords are valid.
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
