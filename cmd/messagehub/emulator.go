package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/emulator"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/cosmos/embedded"
)

// A cosmosEmulator contains the flags of messagehub emulator cosmos.
type cosmosEmulator struct {
	listen, advertise, gateway string
	data                       string
	inMemory                   bool
	tls                        bool
	cert                       string
	logRequests                bool
	sweep                      time.Duration

	access                emulatorAccess
	consistency           string
	throttle, pessimistic bool
	strictIndex           bool
	orderByOnlyIndexed    bool
	latency               embedded.Latency
	stale                 int
	lag                   time.Duration
	rangeBytes            int64
	querySteps            int64
	queryMemory           int64
}

func (p *process) emulatorCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "emulator", Short: "Run an emulator of Cosmos DB, Service Bus or Blob Storage"}
	cmd.AddCommand(p.emulatorCosmosCommand(), p.emulatorServiceBusCommand(), p.emulatorBlobCommand())
	return cmd
}

func (p *process) emulatorCosmosCommand() *cobra.Command {
	var e cosmosEmulator
	cmd := &cobra.Command{
		Use:   "cosmos",
		Short: "Run a Cosmos DB account",
		Long: "Run a Cosmos DB account (API for NoSQL) that any client can use.\n\n" +
			"A folder is one account. Acknowledged writes are on disk and survive kill -9.\n" +
			"GET /healthz answers 200 once the account can be used. SIGTERM completes writes, ends\n" +
			"queries and stops.\n\n" + strings.TrimSpace(keyHelp),
		Example: "  messagehub emulator cosmos --in-memory\n" +
			"  messagehub emulator cosmos --data ./account --tls --cert emulator.crt\n" +
			"  messagehub emulator cosmos --throttle --latency 2ms --latency-jitter 1ms --log-requests",
		Args: checkName,
	}
	e.addFlags(cmd.Flags())
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		if err := p.checkFolder(cmd.Flags(), e.inMemory); err != nil {
			return err
		}
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		o, err := e.options(p)
		if err != nil {
			return err
		}
		return o.Run(ctx)
	})
	cmd.AddCommand(p.cosmosCheckCommand(), p.cosmosExportCommand(), p.cosmosImportCommand())
	return cmd
}

const defaultAccount = "./cosmos-data"

func (e *cosmosEmulator) addFlags(f *pflag.FlagSet) {
	f.StringVar(&e.listen, "listen", "127.0.0.1:8081", "serve on `HOST:PORT`")
	f.StringVar(&e.data, "data", defaultAccount, "store the account in folder `DIR`")
	f.BoolVar(&e.inMemory, "in-memory", false, "store the account in memory only")
	f.BoolVar(&e.tls, "tls", false, "serve HTTPS, with a self-signed certificate that is stored in the folder")
	f.StringVar(&e.cert, "cert", "", "write the certificate to `FILE`, for clients to trust")
	f.StringVar(&e.advertise, "advertise", "", "address for the requests of clients, `HOST:PORT`; default: the address that the client used")
	f.StringVar(&e.gateway, "gateway", "routing", "accept the document ids of this `GATEWAY`: routing, compute, or strict for ids that both accept")
	e.access.addFlags(f, "account `KEY` in base64")
	f.StringVar(&e.consistency, "consistency", "", "consistency `LEVEL` of the account: Strong, BoundedStaleness, Session, ConsistentPrefix, Eventual")
	f.BoolVar(&e.throttle, "throttle", false, "limit every physical partition to its throughput, and answer 429 above it")
	f.BoolVar(&e.pessimistic, "pessimistic", false, "charge queries a point read for each document they load")
	f.BoolVar(&e.strictIndex, "strict-index", false, "charge a query in a partition for all others, too, if the partition key is not indexed")
	f.BoolVar(&e.orderByOnlyIndexed, "order-by-only-indexed", false, "omit documents without the property of ORDER BY, as Azure did until 2022")
	f.DurationVar(&e.latency.Base, "latency", 0, "let every request about documents take this `TIME`")
	f.DurationVar(&e.latency.PerKB, "latency-per-kb", 0, "additional latency of this `TIME` for each kilobyte")
	f.DurationVar(&e.latency.Jitter, "latency-jitter", 0, "additional random latency of up to this `TIME`")
	f.Uint64Var(&e.latency.Seed, "seed", 1, "seed of all random values, `N`")
	f.IntVar(&e.stale, "stale", 0, "let reads without a session token be up to `N` commits old (in memory only)")
	f.DurationVar(&e.lag, "lag", 0, "let reads without a session token be up to `TIME` old (in memory only)")
	f.Int64Var(&e.rangeBytes, "range-bytes", 0, "split a physical partition that has more than `N` bytes of documents; default 50 GB")
	f.Int64Var(&e.querySteps, "query-steps", 50_000_000, "end a query page after `N` steps of 10 to 50 ns, and refuse a query that cannot continue")
	f.Int64Var(&e.queryMemory, "query-memory", 128<<20, "refuse a query that needs more than `N` bytes of memory for a page")
	f.DurationVar(&e.sweep, "sweep", time.Minute, "`TIME` between two removals of expired documents")
	f.BoolVar(&e.logRequests, "log-requests", false, "print each request on stderr, with its status and its request units")
}

// options converts the flags to options of the emulator.
func (e *cosmosEmulator) options(p *process) (*emulator.Cosmos, error) {
	gateways := map[string]embedded.Gateway{"routing": embedded.Routing, "compute": embedded.Compute, "strict": embedded.Strict}
	gateway, ok := gateways[e.gateway]
	if !ok {
		return nil, p.usage("--gateway %q: want routing, compute or strict", e.gateway)
	}
	if e.cert != "" && !e.tls {
		return nil, p.usage("--cert needs --tls")
	}
	key, err := e.access.readKey(p)
	if err != nil {
		return nil, err
	}
	o := &emulator.Cosmos{
		Options: e.access.options(p), Listen: e.listen,
		Engine: embedded.Options{
			Dir: e.data, Version: version, Key: key, Consistency: e.consistency, Throttle: e.throttle, Pessimistic: e.pessimistic, StrictIndex: e.strictIndex, RangeBytes: e.rangeBytes,
			OrderByOnlyIndexed: e.orderByOnlyIndexed,
			QuerySteps:         e.querySteps, QueryMemory: e.queryMemory,
		},
		Endpoint: embedded.EndpointOptions{Gateway: gateway, Advertise: e.advertise}, TLS: e.tls, CertFile: e.cert,
		MaxStale: e.stale, MaxLag: e.lag, Seed: e.latency.Seed,
		Sweep: e.sweep, LogRequests: e.logRequests,
	}
	if e.inMemory {
		o.Engine.Dir = ""
	}
	if e.latency.Base != 0 || e.latency.PerKB != 0 || e.latency.Jitter != 0 {
		o.Engine.Latency = &e.latency
	}
	if err := o.Validate(); err != nil {
		return nil, p.usage("%w", err)
	}
	return o, nil
}

// openAccount opens a Cosmos DB account whose folder already exists.
func openAccount(dir string) (*embedded.Engine, error) {
	if _, err := os.Stat(filepath.Clean(dir)); err != nil {
		return nil, fmt.Errorf("no account in %s; name its folder with --data (%w)", dir, err)
	}
	return embedded.Open(embedded.Options{Dir: dir})
}
