package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp/server"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/atom"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/node"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/sas"
	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// The default key of a namespace. It equals the key of Microsoft's emulator.
const (
	WellKnownKeyName = "RootManageSharedAccessKey"
	WellKnownKey     = "SAS_KEY_VALUE"
)

// A Key is a shared access key with Rights.
type Key = sas.Key

// The rights of a key. Manage does not imply Send.
const (
	Send   = sas.Send
	Listen = sas.Listen
	Manage = sas.Manage
	All    = sas.All
)

// A Clock provides the time and timers.
type Clock = bus.Clock

// A Timer is a timer of a Clock.
type Timer = bus.Timer

// Options configure a Namespace. The zero value configures an empty namespace in memory.
type Options struct {
	// Dir is the folder of the store. It is created if it does not exist, and must not be shared.
	// If Dir is empty, the data is in memory, and Close discards it.
	Dir string

	// Claim identifies the data folder that must contain the store in Dir. By default, the data folder is not checked.
	Claim datafolder.Claim

	// Version is the version of this program, which is stored in the file. If an older program
	// cannot read the format, its error names this version. Default: no version is stored.
	Version string

	// FileSystem opens the file in Dir. Default: the file system of the operating system.
	FileSystem disk.FileSystem

	// Entities are created when the namespace is opened; entities that exist are updated. Entities that are not listed
	// do not change.
	Entities Entities

	// CreateOnUse creates a missing queue, or a topic with a subscription, when a client first uses it. The new entity
	// requires sessions if the client uses sessions.
	CreateOnUse bool

	// Keys are the shared access keys. Default: the well-known key.
	Keys []Key

	// Anonymous grants every client all rights without a token.
	Anonymous bool

	// TrustTokens accepts every token of Microsoft Entra ID, with all rights. It does not
	// verify tokens.
	TrustTokens bool

	// Clock drives locks, expiry and schedules. Default: the system clock.
	Clock Clock

	// Random returns numbers from 0 to 1, for the jitter of retries. It must be safe for
	// concurrent use. Default: rand.Float64 of math/rand/v2.
	Random func() float64

	// MaxConnections is the maximum number of connections. Default: 1000.
	MaxConnections int

	// MaxNetworkConnections is the maximum number of connections of Serve and Handler. Only Dial can use the remaining
	// MaxConnections, so network clients cannot lock out this process. At the limit, a new connection replaces the
	// oldest connection without a valid token. Default: three quarters of MaxConnections.
	MaxNetworkConnections int

	// TokenTimeout is the time within which a connection must present a valid token, or a key by SASL PLAIN. Until
	// then, the connection can have only a few links and small frames. Default: 10 seconds.
	TokenTimeout time.Duration

	// MaxLinks and MaxSessions limit the AMQP links and AMQP sessions of all connections together. One connection may
	// have 8,192 links and 4,096 sessions. Default of each: 65,536.
	MaxLinks, MaxSessions int

	// MaxBuffered is the number of bytes that all connections together may buffer: partly received
	// messages, messages that are being stored, and data that clients have not read. Above
	// MaxBuffered, the limit of each connection is reduced. Above twice MaxBuffered, connections that
	// exceed their share are closed. Default: 128 MB.
	MaxBuffered int64

	// IdleTimeOut is the time after which a connection is closed if the client has sent nothing. Default: 4 minutes.
	IdleTimeOut time.Duration

	// StallTimeout limits the duration of the handshake, and of a write while the client does not read. Default: 1
	// minute.
	StallTimeout time.Duration

	// Frames, if set, is called with a line of text for every AMQP frame.
	Frames func(line string)

	// Logger receives the log. Default: no log.
	Logger *slog.Logger
}

// FileFormat is the version of the file format in Options.Dir.
const FileFormat = bus.Format

// A Namespace is one Service Bus namespace. It is safe for concurrent use.
type Namespace struct {
	store   disk.Store
	bus     *bus.Bus
	node    *node.Namespace
	atom    *atom.Handler
	options Options
	totals  *server.Totals
	meter   usageMeter

	ctx  context.Context //nolint:containedctx // ends all connections when the namespace is closed
	stop context.CancelFunc

	mu          sync.Mutex
	closed      bool
	dropped     chan struct{} // dropped is closed and replaced by DropConnections
	slots       connectionSlots
	connections sync.WaitGroup // connections is incremented only while mu is held and closed is false
}

// ErrClosed reports the use of a namespace after Close.
var ErrClosed = errors.New("the namespace is closed")

// Open opens the namespace in o.Dir. If the file cannot be used, the error wraps an error of package disk. The caller
// must call Close to end the goroutines of the namespace.
func Open(o Options) (*Namespace, error) {
	if len(o.Keys) == 0 {
		o.Keys = []Key{{Name: WellKnownKeyName, Secret: WellKnownKey, Rights: All}}
	}
	o.MaxConnections = cmp.Or(o.MaxConnections, 1000)
	o.MaxNetworkConnections = cmp.Or(o.MaxNetworkConnections, o.MaxConnections-o.MaxConnections/4)
	o.TokenTimeout = cmp.Or(o.TokenTimeout, 10*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Clock == nil {
		o.Clock = realClock{}
	}
	store, path := disk.NewMemory(), "a store in memory"
	if o.Dir != "" {
		path = filepath.Join(o.Dir, disk.FileName)
		if o.FileSystem == nil {
			o.FileSystem = disk.System{}
		}
		var err error
		if store, err = disk.OpenClaimed(o.Dir, o.FileSystem, o.Claim); err != nil {
			return nil, err
		}
	}
	b, err := bus.Open(store, bus.Options{Version: o.Version, Clock: o.Clock, Codec: node.Codec{}})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), store.Close())
	}
	n := &Namespace{
		store: store, bus: b, options: o, dropped: make(chan struct{}), slots: newConnectionSlots(o.MaxConnections, o.MaxNetworkConnections),
		totals: server.NewTotals(server.TotalLimits{Sessions: o.MaxSessions, Links: o.MaxLinks, Memory: o.MaxBuffered}),
	}
	n.ctx, n.stop = context.WithCancel(context.Background())
	n.node = &node.Namespace{
		Bus: b, Keys: o.Keys, Clock: o.Clock, Logger: o.Logger,
		Open: o.Anonymous, TrustTokens: o.TrustTokens, Create: o.CreateOnUse, SendCredit: 1000,
	}
	n.atom = &atom.Handler{Bus: b, Keys: o.Keys, Clock: o.Clock, Open: o.Anonymous, TrustTokens: o.TrustTokens, Authorized: requestAuthorized}
	if err := n.declareEntities(o.Entities); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// ConnectionString returns a connection string for clients. The address is the host and port of a listener without TLS;
// clients that use Dial need none.
func (n *Namespace) ConnectionString(address string) string {
	key := n.options.Keys[0]
	return fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s;UseDevelopmentEmulator=true",
		cmp.Or(address, "embedded.localhost"), key.Name, key.Secret)
}

// Dial returns an in-process connection to the namespace, for AMQP.
func (n *Namespace) Dial(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	client, served := net.Pipe()
	release, err := n.beginInProcess()
	if err != nil {
		return nil, errors.Join(err, client.Close(), served.Close())
	}
	go func() {
		defer release()
		n.serveAMQP(n.ctx, served, n.options.TokenTimeout, nil)
	}()
	return client, nil
}

// Broken returns a channel that receives an error if the disk fails. After a disk failure, no message is accepted or
// settled until the namespace is opened again.
func (n *Namespace) Broken() <-chan error { return n.bus.Broken() }

// TakeSnapshot returns a snapshot of the file of the namespace, as [disk.TakeSnapshot] does. It does not wait for
// commits, so a caller can snapshot several stores at the same time. The caller must close the snapshot before it calls
// Namespace.Close.
func (n *Namespace) TakeSnapshot() (*disk.Snapshot, error) { return disk.ReadSnapshot(n.store) }

// Handler returns an HTTP handler that manages entities as Service Bus does, and serves AMQP over WebSockets.
func (n *Namespace) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+webSocketPath, n.webSocket)
	mux.Handle("/", n.atom)
	return mux
}

// DropConnections ends all connections with amqp:connection:forced, as Azure does during a service update. Clients then
// reconnect. It exists for tests of clients.
func (n *Namespace) DropConnections() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.dropped)
	n.dropped = make(chan struct{})
}

// withDropCancel returns a context that is canceled by the next call to DropConnections.
func (n *Namespace) withDropCancel(ctx context.Context) (_ context.Context, release func()) {
	n.mu.Lock()
	dropped := n.dropped
	n.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-dropped:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel()
		watching.Wait()
	}
}

// serveAMQP serves one AMQP connection. If the client presents a valid token within tokenTimeout, serveAMQP calls
// authorized, which may be nil. Otherwise it ends the connection.
func (n *Namespace) serveAMQP(ctx context.Context, nc net.Conn, tokenTimeout time.Duration, authorized func()) {
	ctx, release := n.withDropCancel(ctx)
	defer release()
	n.meter.connections.Add(1)
	defer n.meter.closed.Add(1)
	_ = server.Serve(ctx, nc, n.node, server.Options{ // Serve logs its errors
		ContainerID: "messagehub", IdleTimeOut: n.options.IdleTimeOut, StallTimeout: n.options.StallTimeout, Logger: n.options.Logger,
		Authenticate: func(name, password string) bool {
			_, known := n.node.Keys.Login(name, password)
			return known || n.options.Anonymous
		},
		Frames: n.frameObserver(), TokenTimeout: tokenTimeout, Totals: n.totals, Authorized: authorized,
	})
}

// Close ends all connections and closes the store. Further calls have no effect.
func (n *Namespace) Close() error {
	n.mu.Lock()
	closed := n.closed
	n.closed = true
	n.mu.Unlock()
	n.stop()
	n.connections.Wait()
	if closed {
		return nil
	}
	return errors.Join(n.bus.Close(), n.store.Close())
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
