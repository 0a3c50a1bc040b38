// Package account gives a benchmark a Cosmos account to measure on, and counts what
// is asked of it.
//
// The account is the embedded engine behind real HTTP on a loopback port, with the
// physics of the service on: every physical partition gives its share of the
// throughput and no more, and answers take as long as their way would. Or it is any
// other account, by its endpoint; then the physics are its own, and nothing here is
// modelled.
//
// An Account hands out Lines. A Line is a way to the account that a client takes as its transport;
// it counts requests, request units, bytes and refusals, so that what two layouts do side by side
// is counted apart. An unmetered line leads past the physics of the embedded engine: it fills an
// account before something is measured. Where the account is not embedded there is no such way, and
// filling takes as long as it takes.
//
// An account is in memory, or in a folder that its opener removes. Its Close ends
// everything that Open began.
package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
)

// Options say which account, and what is modelled of it.
type Options struct {
	// Endpoint and Key are of an account that is there. Without a Key, Credential is
	// used. Without an Endpoint the engine is embedded.
	Endpoint   string
	Key        string
	Credential azcore.TokenCredential

	// Physics are those of the embedded engine. Default: none, it is as fast as it
	// can be and only counts.
	Physics *Physics

	// Dir is a folder for the documents of the embedded engine, which has nothing in it
	// yet. Then the heap of this process is not theirs. Default: they are in memory.
	Dir string

	// Synced makes each write wait until it is on the disk. Default: no write waits, for the
	// disk is not what is measured.
	Synced bool

	// Consistency is the default level of the embedded engine. Default: Strong.
	Consistency string

	// Clock is that of the embedded engine. Default: time.Now.
	Clock func() time.Time

	// Standard charges queries by the lower of the two published readings. Default:
	// the pessimistic profile.
	Standard bool
}

// Physics are what makes a real account slow, besides the limits of the throughput.
type Physics struct{ Latency embedded.Latency }

// DefaultPhysics are those of an account in the same region, as far as they can be for an account
// without one: 5 ms and 0.2 ms for each 16 KB, up to 2 ms more, and one answer of a hundred 20 ms
// late.
func DefaultPhysics(seed uint64) *Physics {
	return &Physics{Latency: embedded.Latency{
		Base: 5 * time.Millisecond, PerKB: 200 * time.Microsecond / 16, Jitter: 2 * time.Millisecond,
		Slow: 20 * time.Millisecond, SlowOf1000: 10, Seed: seed,
	}}
}

// An Account is a Cosmos account that is measured.
type Account struct {
	options  Options
	endpoint string
	key      string
	engine   *embedded.Engine // nil if the account is elsewhere
	pool     *http.Transport
	server   *http.Server
	serving  sync.WaitGroup
}

// Open opens an account, which Close closes.
func Open(ctx context.Context, o Options) (*Account, error) {
	a := &Account{options: o, endpoint: o.Endpoint, key: o.Key, pool: newTransport()}
	if o.Endpoint != "" {
		return a, nil
	}
	settings := embedded.Options{Dir: o.Dir, Unsynced: !o.Synced, Pessimistic: !o.Standard, Consistency: o.Consistency, Clock: o.Clock}
	if o.Physics != nil {
		settings.Throttle = true
		settings.Latency = &o.Physics.Latency
	}
	var err error
	if a.engine, err = embedded.Open(settings); err != nil { //nolint:contextcheck // opening what is in memory takes no time
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, a.engine.Close())
	}
	a.endpoint, a.key = "http://"+listener.Addr().String(), a.engine.Key()
	a.server = &http.Server{Handler: a.engine.Handler(), ReadHeaderTimeout: time.Minute}
	a.serving.Go(func() { _ = a.server.Serve(listener) }) // ends by Close
	return a, nil
}

// newTransport returns a transport that keeps as many connections as any scenario has requests
// under way, so that measured requests dial no connections except the first.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 4096, 4096
	return t
}

// Close closes the account, if it is embedded, and all connections.
func (a *Account) Close() error {
	a.pool.CloseIdleConnections()
	if a.engine == nil {
		return nil
	}
	err := a.server.Close()
	a.serving.Wait()
	return errors.Join(err, a.engine.Close())
}

// Endpoint is the URL of the account, for a node's configuration.
func (a *Account) Endpoint() string { return a.endpoint }

// Key is its key, "" if a credential is used.
func (a *Account) Key() string { return a.key }

// Embedded reports whether the account is a model.
func (a *Account) Embedded() bool { return a.engine != nil }

// Line returns a new way to the account, past nothing.
func (a *Account) Line() *Line { return &Line{next: &http.Client{Transport: a.pool}} }

// Unmetered returns a new way to the account past its physics, or an ordinary one
// if the account is elsewhere.
func (a *Account) Unmetered() *Line {
	if a.engine == nil {
		return a.Line()
	}
	return &Line{next: a.engine.TransportOf(embedded.EndpointOptions{Unmetered: true})}
}

// Connection is the hub's way over l to a database of the account.
func (a *Account) Connection(l *Line, database string) client.Connection {
	return client.Connection{
		Endpoint: a.endpoint, Key: a.key, Credential: a.options.Credential,
		Database: database, Transport: l, Consistency: a.Consistency(),
	}
}

// Consistency is what the embedded engine would say of itself; another account is
// asked, so it is "".
func (a *Account) Consistency() string {
	if a.engine != nil {
		return cmp.Or(a.options.Consistency, "Strong")
	}
	return ""
}

// Client returns a bare client over l that repeats nothing by itself.
func (a *Account) Client(l policy.Transporter) (*azcosmos.Client, error) {
	options := &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: l,
		Retry:     policy.RetryOptions{MaxRetries: -1, ShouldRetry: func(*http.Response, error) bool { return false }},
	}}
	if a.key == "" {
		return azcosmos.NewClient(a.endpoint, a.options.Credential, options)
	}
	key, err := azcosmos.NewKeyCredential(a.key)
	if err != nil {
		return nil, fmt.Errorf("key of the account at %s: %w", a.endpoint, err)
	}
	return azcosmos.NewClientWithKey(a.endpoint, key, options)
}

// Raise gives containers of a database a throughput, in request units a second, from
// which follows how many physical partitions they have: one for each 10,000.
func (a *Account) Raise(ctx context.Context, database string, throughput map[string]int32) error {
	client, err := a.Client(a.Unmetered())
	if err != nil {
		return err
	}
	defer client.Close()
	for name, units := range throughput {
		c, err := client.NewContainer(database, name)
		if err == nil {
			_, err = c.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(units), nil)
		}
		if err != nil {
			return fmt.Errorf("give %s/%s %d RU/s: %w", database, name, units, err)
		}
	}
	return nil
}

// Drop removes a database, if it is there, so that a run on an account that is not
// embedded leaves nothing behind.
func (a *Account) Drop(ctx context.Context, database string) error {
	client, err := a.Client(a.Unmetered())
	if err != nil {
		return err
	}
	defer client.Close()
	db, err := client.NewDatabase(database)
	if err == nil {
		_, err = db.Delete(ctx, nil)
	}
	if refused, ok := errors.AsType[*azcore.ResponseError](err); ok && refused.StatusCode == http.StatusNotFound {
		return nil
	}
	return err
}

// Where says what the account is, for a report.
func (a *Account) Where() string { return a.options.Where() }

// Where says what account these open, for a report.
func (o Options) Where() string {
	if o.Endpoint != "" {
		return "the account at " + o.Endpoint
	}
	if o.Physics == nil {
		return "the embedded engine without physics"
	}
	l := o.Physics.Latency
	return fmt.Sprintf("the embedded engine over HTTP, %v and %v for each 16 KB, up to %v more, %d of 1,000 answers %v late",
		l.Base, 16*l.PerKB, l.Jitter, l.SlowOf1000, cmp.Or(l.Slow, 0))
}
