package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/certificate"
	"github.com/messagehub/messagehub/cosmos/embedded/connlimit"
	"github.com/messagehub/messagehub/cosmos/embedded/httpserve"
)

// A cosmosEmulator is what the flags of messagehub emulator cosmos say.
type cosmosEmulator struct {
	listen, advertise, gateway string
	data                       string
	inMemory                   bool
	tls                        bool
	cert                       string
	logRequests                bool
	sweep                      time.Duration

	access                emulatorAccess
	key, consistency      string
	throttle, pessimistic bool
	latency               embedded.Latency
	stale                 int
	lag                   time.Duration
	rangeBytes            int64
	querySteps            int64
	queryMemory           int64
}

func (p *process) emulatorCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "emulator", Short: "Run one embedded engine alone, for any client"}
	cmd.AddCommand(p.emulatorCosmosCommand(), p.emulatorServiceBusCommand(), p.emulatorBlobCommand())
	return cmd
}

func (p *process) emulatorCosmosCommand() *cobra.Command {
	var e cosmosEmulator
	cmd := &cobra.Command{
		Use:   "cosmos",
		Short: "Run a Cosmos DB account",
		Long: "Run a Cosmos DB account (API for NoSQL) that any client can use.\n\n" +
			"A folder is one account. What was answered is on disk and survives kill -9.\n" +
			"GET /healthz answers 200 once the account can be used. SIGTERM completes writes, ends\n" +
			"queries and stops.\n\n" + strings.TrimSpace(keyHelp),
		Example: "  messagehub emulator cosmos --in-memory\n" +
			"  messagehub emulator cosmos --data ./account --tls --cert emulator.crt\n" +
			"  messagehub emulator cosmos --throttle --latency 2ms --latency-jitter 1ms --log-requests",
		Args: cobra.NoArgs,
	}
	e.addFlags(cmd.Flags())
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		return p.emulateCosmos(ctx, &e)
	})
	cmd.AddCommand(p.cosmosCheckCommand(), p.cosmosExportCommand(), p.cosmosImportCommand())
	return cmd
}

const defaultAccount = "./cosmos-data"

func (e *cosmosEmulator) addFlags(f *pflag.FlagSet) {
	f.StringVar(&e.listen, "listen", "127.0.0.1:8081", "serve on `HOST:PORT`")
	f.StringVar(&e.data, "data", defaultAccount, "keep the account in folder `DIR`")
	f.BoolVar(&e.inMemory, "in-memory", false, "keep the account in memory, until it stops")
	f.BoolVar(&e.tls, "tls", false, "serve HTTPS, with a self-signed certificate that is kept in the folder")
	f.StringVar(&e.cert, "cert", "", "write the certificate to `FILE`, for clients to trust")
	f.StringVar(&e.advertise, "advertise", "", "tell clients to send their requests to `HOST:PORT`; default: where they found the account")
	f.StringVar(&e.gateway, "gateway", "routing", "document ids are those of this gateway: routing, compute, or strict for what both can find")
	e.access.addFlags(f, "account `KEY` in base64")
	f.StringVar(&e.consistency, "consistency", "", "default `LEVEL` of the account: Strong, BoundedStaleness, Session, ConsistentPrefix, Eventual")
	f.BoolVar(&e.throttle, "throttle", false, "hold every physical partition to its throughput: 429 beyond it")
	f.BoolVar(&e.pessimistic, "pessimistic", false, "charge queries a point read for each document they load")
	f.DurationVar(&e.latency.Base, "latency", 0, "let every request for documents take this `TIME`")
	f.DurationVar(&e.latency.PerKB, "latency-per-kb", 0, "and this `TIME` for each kilobyte")
	f.DurationVar(&e.latency.Jitter, "latency-jitter", 0, "and up to this `TIME` more, at random")
	f.Uint64Var(&e.latency.Seed, "seed", 1, "of all that is random")
	f.IntVar(&e.stale, "stale", 0, "let reads without a session token be up to `N` commits old (in memory only)")
	f.DurationVar(&e.lag, "lag", 0, "let reads without a session token be up to `TIME` old (in memory only)")
	f.Int64Var(&e.rangeBytes, "range-bytes", 0, "split a physical partition that has more than `N` bytes of documents; default 50 GB")
	f.Int64Var(&e.querySteps, "query-steps", 50_000_000, "end a query page after `N` steps of 10 to 50 ns, and refuse a query that cannot continue")
	f.Int64Var(&e.queryMemory, "query-memory", 128<<20, "refuse a query that keeps more than `N` bytes for a page")
	f.DurationVar(&e.sweep, "sweep", time.Minute, "remove expired documents every so often")
	f.BoolVar(&e.logRequests, "log-requests", false, "print each request on stderr, with its status and its request units")
}

// options turns the flags into those of the engine.
func (e *cosmosEmulator) options() embedded.Options {
	o := embedded.Options{
		Dir: e.data, Key: e.key, Consistency: e.consistency, Throttle: e.throttle, Pessimistic: e.pessimistic, RangeBytes: e.rangeBytes,
		QuerySteps: e.querySteps, QueryMemory: e.queryMemory,
	}
	if e.inMemory {
		o.Dir = ""
	}
	if e.latency.Base > 0 || e.latency.PerKB > 0 || e.latency.Jitter > 0 {
		o.Latency = &e.latency
	}
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(e.latency.Seed, 1))
	upTo := func(n int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Int64N(n + 1)
	}
	if e.stale > 0 {
		o.Stale = func() int { return int(upTo(int64(e.stale))) }
	}
	if e.lag > 0 {
		o.Lag = func() time.Duration { return time.Duration(upTo(int64(e.lag))) }
	}
	return o
}

func (e *cosmosEmulator) door() (embedded.Door, error) {
	gateways := map[string]embedded.Gateway{"routing": embedded.Routing, "compute": embedded.Compute, "strict": embedded.Strict}
	gateway, ok := gateways[e.gateway]
	if !ok {
		return embedded.Door{}, fmt.Errorf("--gateway %q: want routing, compute or strict", e.gateway)
	}
	return embedded.Door{Gateway: gateway, Advertise: e.advertise}, nil
}

// certificate returns nil if there is to be none.
func (e *cosmosEmulator) certificate() (*certificate.Certificate, error) {
	if !e.tls {
		return nil, nil //nolint:nilnil // plain HTTP has none
	}
	folder := e.data
	if e.inMemory {
		folder = ""
	}
	return selfSigned(folder, e.cert, cmp.Or(e.advertise, e.listen))
}

// selfSigned returns a certificate for this machine and the hosts of addresses. It
// is kept in folder, unless that is "", and written to file, unless that is "".
func selfSigned(folder, file string, addresses ...string) (cert *certificate.Certificate, err error) {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	for _, address := range addresses {
		if host, _, err := net.SplitHostPort(address); err == nil && host != "" && !net.ParseIP(host).IsUnspecified() {
			hosts = append(hosts, host)
		}
	}
	if folder == "" {
		cert, err = certificate.New(hosts...)
	} else {
		cert, err = certificate.Load(folder, hosts...)
	}
	if err == nil && file != "" {
		err = cert.Write(file)
	}
	return cert, err
}

func (p *process) emulateCosmos(ctx context.Context, e *cosmosEmulator) (err error) {
	door, err := e.door()
	if err != nil {
		return p.usage("%w", err)
	}
	if e.cert != "" && !e.tls {
		return p.usage("--cert needs --tls")
	}
	if e.key, err = e.access.readKey(p); err != nil {
		return err
	}
	isKnown := cmp.Or(e.key, embedded.WellKnownKey) == embedded.WellKnownKey
	if isKnown {
		if err := e.access.checkAddress(e.listen, knownKey); err != nil {
			return p.usage("%w", err)
		}
	}
	engine, err := embedded.Open(e.options()) //nolint:contextcheck // opening is not to be given up half-way
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	cert, err := e.certificate()
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", e.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on %s: another process has this port; stop that one, or choose another port with --listen", e.listen)
	}
	if err != nil {
		return err
	}
	scheme := "http"
	options := httpserve.Options{
		Handler: e.access.checkHosts(listener.Addr(), p.emulatorHandler(e, engine.HandlerOf(door))), Server: "the account",
		Logger:    slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{ReplaceAttr: redactLogError})),
		MaxHeader: http.DefaultMaxHeaderBytes, // continuation tokens hold values of documents
		Grace:     stopLimit, CancelAfter: queryGrace,
	}
	if cert != nil {
		scheme, options.TLS = "https", cert.Config()
	}
	shown := "its own"
	if isKnown {
		shown = engine.Key()
	}
	fmt.Fprintf(p.out, "Cosmos DB emulator %s listens on %s://%s/ with key %s\n", version, scheme, listener.Addr(), shown)
	fmt.Fprintln(p.err, "ready")
	return e.run(ctx, engine, func(ctx context.Context) error { return httpserve.Serve(ctx, listener, options) })
}

// queryGrace is how long requests may take before they are cancelled, once the
// emulator is asked to stop.
const queryGrace = 250 * time.Millisecond

// stopLimit is how long a client may take to send the rest of a request.
const stopLimit = 5 * time.Second

// run serves and sweeps until the context ends. Then serve lets writes complete, and
// cancels the requests that can be: queries, and answers that are delayed.
func (e *cosmosEmulator) run(ctx context.Context, engine *embedded.Engine, serve func(context.Context) error) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- serve(serving) }()
	sweep := time.NewTicker(max(e.sweep, time.Millisecond))
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

// emulatorHandler adds to the account what is not Cosmos DB: health, and the
// log of requests.
func (p *process) emulatorHandler(e *cosmosEmulator, account http.Handler) http.Handler {
	var printing sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			fmt.Fprintln(w, "ok")
			return
		}
		if connlimit.OverLimit(r.Context()) {
			w.Header().Set("Connection", "close")
			http.Error(w, "the emulator has as many connections as its file descriptors allow", http.StatusServiceUnavailable)
			return
		}
		if !e.logRequests {
			account.ServeHTTP(w, r)
			return
		}
		began := time.Now()
		answer := &noted{ResponseWriter: w, status: http.StatusOK}
		account.ServeHTTP(answer, r)
		status := fmt.Sprint(answer.status)
		if sub := w.Header().Get("X-Ms-Substatus"); sub != "" && sub != "0" {
			status += "/" + sub
		}
		printing.Lock()
		defer printing.Unlock()
		fmt.Fprintf(p.err, "%s %s %s %s RU %s\n", r.Method, r.URL.EscapedPath(), status,
			cmp.Or(w.Header().Get("X-Ms-Request-Charge"), "0"), time.Since(began).Round(time.Microsecond))
	})
}

// A noted response remembers its status.
type noted struct {
	http.ResponseWriter
	status int
}

func (n *noted) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

// openAccount opens the account of a folder that has to be there.
func openAccount(dir string) (*embedded.Engine, error) {
	if _, err := os.Stat(filepath.Clean(dir)); err != nil {
		return nil, fmt.Errorf("no account in %s; name its folder with --data (%w)", dir, err)
	}
	return embedded.Open(embedded.Options{Dir: dir})
}
