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

// The key that a namespace has unless Options.Keys says otherwise. It is the
// one of Microsoft's emulator.
const (
	WellKnownKeyName = "RootManageSharedAccessKey"
	WellKnownKey     = "SAS_KEY_VALUE"
)

// A Key is a shared access key; its Rights say what it allows.
type Key = sas.Key

// Rights of a key. Manage alone is not enough to send.
const (
	Send   = sas.Send
	Listen = sas.Listen
	Manage = sas.Manage
	All    = sas.All
)

// A Clock tells the time, and calls back once when a while has passed.
type Clock = bus.Clock

// A Timer is what a Clock started.
type Timer = bus.Timer

// Options set up a Namespace. The zero value is an empty one in memory.
type Options struct {
	// Dir is the folder of the store. It is made if it does not exist, and
	// belongs to this namespace alone. Without it all is kept in memory and
	// forgotten by Close.
	Dir string

	// Claim says which data folder the store in Dir must belong to. Default: it is not
	// checked.
	Claim datafolder.Claim

	// Version is that of the program. A file whose format an older program does not know names
	// it. Default: it is not stored.
	Version string

	// FileSystem opens the file in Dir. Default: that of the system.
	FileSystem disk.FileSystem

	// Entities are made when the namespace is opened, or changed to what is
	// said here. Others that were made before stay.
	Entities Entities

	// CreateOnUse makes a queue, or a topic with a subscription, when a client
	// first uses its name. It requires sessions if the first use does.
	CreateOnUse bool

	// Keys are the shared access keys. Default: the well-known key.
	Keys []Key

	// Anonymous lets everybody do everything, without any token.
	Anonymous bool

	// TrustTokens takes any token of Microsoft Entra ID for a good one, with
	// all rights. It is not read.
	TrustTokens bool

	// Clock drives locks, expiry and schedules. Default: that of the system.
	Clock Clock

	// Random returns numbers from 0 to 1, for the jitter of retries. Default:
	// that of math/rand/v2. It must be safe for concurrent use.
	Random func() float64

	// MaxConnections is the maximum number of connections at one time. Default:
	// 1000.
	MaxConnections int

	// MaxNetworkConnections is how many of them Serve and Handler may take; the
	// others are kept for Dial, so that clients on the network cannot lock out
	// the process itself. At the limit, a new connection replaces the oldest
	// that has not presented a valid token. Default: three quarters.
	MaxNetworkConnections int

	// TokenTimeout is how long a connection may take to present its first valid
	// token, or a key by SASL PLAIN. Until then it may have only a few links, and
	// small frames. Default: 10 seconds.
	TokenTimeout time.Duration

	// MaxLinks and MaxSessions are the maximum numbers of AMQP links and AMQP
	// sessions of all connections together. One connection may have 8,192 links
	// and 4,096 sessions. Defaults: 65,536.
	MaxLinks, MaxSessions int

	// MaxBuffered is how many bytes all connections together may buffer before
	// each gets less: messages of which only a part has come, messages that are
	// being stored, and what clients have not read yet. At twice that size,
	// connections that exceed their share are closed. Default: 128 MB.
	MaxBuffered int64

	// IdleTimeOut is how long a client may be silent. Default: 4 minutes.
	IdleTimeOut time.Duration

	// Patience is how long a client may take for the handshake, or to read
	// what it asked for. Default: 1 minute.
	Patience time.Duration

	// Frames is told of every AMQP frame, in one line.
	Frames func(line string)

	// Logger is told what an operator should know. Default: nobody is.
	Logger *slog.Logger
}

// FileFormat is the number of the format of the file in Options.Dir.
const FileFormat = bus.Format

// A Namespace is one Service Bus namespace. It is safe for use by many
// goroutines.
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
	dropped     chan struct{}   // closed by DropConnections, which makes another
	places      connectionSlots // of connections
	connections sync.WaitGroup  // grows only while mu is held and closed is false
}

// ErrClosed reports the use of a namespace after Close.
var ErrClosed = errors.New("the namespace is closed")

// Open opens the namespace in o.Dir. Close ends what it starts. The errors that
// package disk names can be told by errors.Is.
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
		store: store, bus: b, options: o, dropped: make(chan struct{}), places: newConnectionSlots(o.MaxConnections, o.MaxNetworkConnections),
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

// ConnectionString is what clients connect with. An empty address is for those
// that use Dial; others give the host and port of a listener without TLS.
func (n *Namespace) ConnectionString(address string) string {
	key := n.options.Keys[0]
	return fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s;UseDevelopmentEmulator=true",
		cmp.Or(address, "embedded.localhost"), key.Name, key.Secret)
}

// Dial returns a connection to the namespace, within the process, on which the
// caller speaks AMQP.
func (n *Namespace) Dial(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	client, served := net.Pipe()
	release, err := n.beginOwn()
	if err != nil {
		return nil, errors.Join(err, client.Close(), served.Close())
	}
	go func() {
		defer release()
		n.serveAMQP(n.ctx, served, n.options.TokenTimeout, nil)
	}()
	return client, nil
}

// Broken yields an error, once, when the disk has failed: from then on nothing is
// accepted or settled until the namespace is opened again.
func (n *Namespace) Broken() <-chan error { return n.bus.Broken() }

// TakeSnapshot is [disk.TakeSnapshot] of the namespace. It waits for no commit, so that it can
// be taken while another store takes one. The caller closes it before Close.
func (n *Namespace) TakeSnapshot() (*disk.Snapshot, error) { return disk.ReadSnapshot(n.store) }

// Handler manages the entities over HTTP, as Service Bus does, and takes AMQP
// over WebSockets.
func (n *Namespace) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+webSocketPath, n.webSocket)
	mux.Handle("/", n.atom)
	return mux
}

// DropConnections ends all connections as a service does that is updated: with
// amqp:connection:forced, after which clients connect again. Tests use it to
// see how they recover.
func (n *Namespace) DropConnections() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.dropped)
	n.dropped = make(chan struct{})
}

// untilDropped returns a context that ends with the next DropConnections.
func (n *Namespace) untilDropped(ctx context.Context) (_ context.Context, release func()) {
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

// serveAMQP serves one connection that speaks AMQP. It must present a valid token
// within tokenTimeout, and then speak calls authorized if that is not nil.
func (n *Namespace) serveAMQP(ctx context.Context, nc net.Conn, tokenTimeout time.Duration, authorized func()) {
	ctx, release := n.untilDropped(ctx)
	defer release()
	n.meter.connections.Add(1)
	defer n.meter.closed.Add(1)
	_ = server.Serve(ctx, nc, n.node, server.Options{ // what goes wrong is logged there
		ContainerID: "messagehub", IdleTimeOut: n.options.IdleTimeOut, Patience: n.options.Patience, Logger: n.options.Logger,
		Authenticate: func(name, password string) bool {
			_, known := n.node.Keys.Login(name, password)
			return known || n.options.Anonymous
		},
		Frames: n.frameObserver(), TokenTimeout: tokenTimeout, Totals: n.totals, Authorized: authorized,
	})
}

// Close ends all connections and closes the store. Closing twice does no harm.
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
