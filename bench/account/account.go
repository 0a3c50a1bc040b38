// Package account provides a Cosmos account for benchmarks, and counts the requests to it.
//
// The account is the embedded engine behind real HTTP on a loopback port. It can simulate the
// physics of the service: every physical partition is limited to its share of the throughput, and
// responses have the latency of a network. An existing account, named by its
// endpoint, can be used instead; its limits and latencies are not simulated.
//
// An Account creates Lines. A Line is the transport of a client; it counts requests, request units,
// bytes and refusals, so that concurrent layouts are counted separately. An unmetered line bypasses
// the physics of the embedded engine, to fill an account before a measurement. An account that is
// not embedded has no unmetered lines, so filling it takes longer.
//
// An account is in memory, or in a folder that the caller removes. Close releases everything that
// Open acquired.
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

// Options select an existing account, or configure an embedded one.
type Options struct {
	// Endpoint and Key select an existing account. Without a Key, Credential is used.
	// Without an Endpoint the engine is embedded.
	Endpoint   string
	Key        string
	Credential azcore.TokenCredential

	// Physics are the limits and latencies of the embedded engine. Default: the engine responds
	// immediately, and only counts requests.
	Physics *Physics

	// Dir is an empty folder in which the embedded engine stores its documents, so that they are
	// not in the heap of this process. Default: the documents are in memory.
	Dir string

	// Synced makes each write wait until it is on the disk. Default: writes do not wait,
	// because the disk is not measured.
	Synced bool

	// Consistency is the default level of the embedded engine. Default: Strong.
	Consistency string

	// Clock is the clock of the embedded engine. Default: time.Now.
	Clock func() time.Time

	// Standard charges queries by the lower of two published descriptions of
	// the charges. Default: the higher description, the pessimistic profile.
	Standard bool
}

// Physics make the embedded engine as slow as a real account, in addition to the
// limits of its throughput.
type Physics struct{ Latency embedded.Latency }

// DefaultPhysics returns estimates for an account in the same region, which are not based on
// measurements of a real account: 5 ms and 0.2 ms for each 16 KB, up to 2 ms of jitter, and a delay of 20 ms for one
// response in a hundred.
func DefaultPhysics(seed uint64) *Physics {
	return &Physics{Latency: embedded.Latency{
		Base: 5 * time.Millisecond, PerKB: 200 * time.Microsecond / 16, Jitter: 2 * time.Millisecond,
		Slow: 20 * time.Millisecond, SlowOf1000: 10, Seed: seed,
	}}
}

// An Account is the Cosmos account of a measurement.
type Account struct {
	options  Options
	endpoint string
	key      string
	engine   *embedded.Engine // nil if the account is not embedded
	pool     *http.Transport
	server   *http.Server
	serving  sync.WaitGroup
}

// Open opens an account. The caller calls Close.
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
	if a.engine, err = embedded.Open(settings); err != nil { //nolint:contextcheck // opening an engine in memory takes no time
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, a.engine.Close())
	}
	a.endpoint, a.key = "http://"+listener.Addr().String(), a.engine.Key()
	a.server = &http.Server{Handler: a.engine.Handler(), ReadHeaderTimeout: time.Minute}
	a.serving.Go(func() { _ = a.server.Serve(listener) }) // Serve returns after Close
	return a, nil
}

// newTransport returns a transport that keeps more idle connections than any scenario has
// concurrent requests, so that only the first measured requests dial.
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

// Endpoint returns the URL of the account, for a node's configuration.
func (a *Account) Endpoint() string { return a.endpoint }

// Key returns the key of the account, or "" if a credential is used.
func (a *Account) Key() string { return a.key }

// Embedded reports whether the account is the embedded engine.
func (a *Account) Embedded() bool { return a.engine != nil }

// Line returns a new line to the account. Latencies and limits apply to its requests.
func (a *Account) Line() *Line { return &Line{next: &http.Client{Transport: a.pool}} }

// Unmetered returns a new line that bypasses the physics, or an ordinary line if
// the account is not embedded.
func (a *Account) Unmetered() *Line {
	if a.engine == nil {
		return a.Line()
	}
	return &Line{next: a.engine.TransportOf(embedded.EndpointOptions{Unmetered: true})}
}

// Connection returns the settings with which a hub connects over l to a
// database of the account.
func (a *Account) Connection(l *Line, database string) client.Connection {
	return client.Connection{
		Endpoint: a.endpoint, Key: a.key, Credential: a.options.Credential,
		Database: database, Transport: l, Consistency: a.Consistency(),
	}
}

// Consistency returns the consistency level of the embedded engine. For another account it returns
// "", so that the client reads the level from the account.
func (a *Account) Consistency() string {
	if a.engine != nil {
		return cmp.Or(a.options.Consistency, "Strong")
	}
	return ""
}

// Client returns a bare client over l, without retries.
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

// Raise sets the throughput of containers of a database, in request units per
// second. A container has one physical partition for each 10,000.
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

// Drop removes a database, if it exists, so that no data of a run remains on an account that is not
// embedded.
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

// Where describes the account, for a report.
func (a *Account) Where() string { return a.options.Where() }

// Where describes the account that these options open, for a report.
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
