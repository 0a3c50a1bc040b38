package emulator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/certificate"
	"github.com/messagehub/messagehub/cosmos/embedded/httpserve"
)

// Cosmos configures the emulator of a Cosmos DB account.
type Cosmos struct {
	Options

	Listen   string           // HOST:PORT
	Engine   embedded.Options // Engine.Stale and Engine.Lag are ignored: Run sets them
	Endpoint embedded.EndpointOptions
	TLS      bool   // serve HTTPS, with a self-signed certificate
	CertFile string // file that receives the certificate; "": no file

	// MaxStale and MaxLag limit the staleness of reads without a session token:
	// in commits, and in time. The staleness of each read is random.
	MaxStale int
	MaxLag   time.Duration
	Seed     uint64 // seed of the random staleness

	Sweep       time.Duration // interval between removals of expired documents
	LogRequests bool          // print each request to Err
}

func (c *Cosmos) hasKnownKey() bool {
	return cmp.Or(c.Engine.Key, embedded.WellKnownKey) == embedded.WellKnownKey
}

// Run serves the account until ctx ends. It fails if the options are invalid.
func (c *Cosmos) Run(ctx context.Context) (err error) {
	if err := c.Validate(); err != nil {
		return err
	}
	engine, err := embedded.Open(c.engineOptions()) //nolint:contextcheck // opening is not to be given up half-way
	if err != nil {
		return openError(c.Engine.Dir, err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	cert, err := c.certificate()
	if err != nil {
		return err
	}
	listener, err := openListener(ctx, c.Listen)
	if err != nil {
		return err
	}
	scheme := "http"
	options := httpserve.Options{
		Handler: c.checkHosts(listener.Addr(), c.handler(engine.HandlerOf(c.Endpoint))), Server: "the account",
		Logger:    c.Logger,
		MaxHeader: http.DefaultMaxHeaderBytes, // large, because continuation tokens contain values of documents
		Grace:     stopLimit, CancelAfter: queryGrace,
	}
	if cert != nil {
		scheme, options.TLS = "https", cert.Config()
	}
	shown := ownKey
	if c.hasKnownKey() {
		shown = engine.Key()
	}
	url := fmt.Sprintf("%s://%s/", scheme, listener.Addr())
	fmt.Fprintf(c.Out, "Cosmos DB emulator %s listens on %s with key %s\n", c.Version, url, shown)
	c.Logger.InfoContext(ctx, "ready", "url", url)
	return c.serveAndSweep(ctx, engine, func(ctx context.Context) error { return httpserve.Serve(ctx, listener, options) })
}

// engineOptions returns the options of the engine, with functions that choose
// the random staleness of a read.
func (c *Cosmos) engineOptions() embedded.Options {
	o := c.Engine
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(c.Seed, 1))
	upTo := func(n int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Int64N(n + 1)
	}
	if c.MaxStale > 0 {
		o.Stale = func() int { return int(upTo(int64(c.MaxStale))) }
	}
	if c.MaxLag > 0 {
		o.Lag = func() time.Duration { return time.Duration(upTo(int64(c.MaxLag))) }
	}
	return o
}

// certificate returns the self-signed certificate, or nil without TLS.
func (c *Cosmos) certificate() (*certificate.Certificate, error) {
	if !c.TLS {
		return nil, nil //nolint:nilnil // plain HTTP has none
	}
	return selfSigned(c.Engine.Dir, c.CertFile, cmp.Or(c.Endpoint.Advertise, c.Listen))
}

// queryGrace is the time after a stop signal for which running queries may
// continue before they are cancelled.
const queryGrace = 250 * time.Millisecond

// stopLimit is the time after a stop signal within which a client must send the
// rest of its request.
const stopLimit = 5 * time.Second

// serveAndSweep serves requests and removes expired documents until ctx ends.
// Then it completes running writes, and cancels queries and delayed responses.
func (c *Cosmos) serveAndSweep(ctx context.Context, engine *embedded.Engine, serve func(context.Context) error) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- serve(serving) }()
	sweep := time.NewTicker(max(c.Sweep, time.Millisecond))
	defer sweep.Stop()
	for {
		select {
		case <-sweep.C:
			if _, err := engine.Sweep(ctx); err != nil && ctx.Err() == nil {
				stop()
				return errors.Join(fmt.Errorf("remove expired documents: %w", err), <-served)
			}
		case err := <-served:
			return err
		}
	}
}
