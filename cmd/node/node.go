package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/broker/failsafe"
	"github.com/messagehub/messagehub/api/console"
	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/api/loglevel"
	"github.com/messagehub/messagehub/api/servicebus/ingest"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/connlimit"
	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
	"github.com/messagehub/messagehub/cosmos/level"
	cosmossurvey "github.com/messagehub/messagehub/cosmos/survey"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/survey"
)

// Options configure what operators cannot configure. The zero value is valid
// for a process that serves.
type Options struct {
	Logger   *slog.Logger    // default: none
	LogLevel *loglevel.Level // level of Logger, which operators may change; default: a level without effect
	Listener net.Listener    // default: a listener on Config.Listen; the Node closes it
	Version  string          // version of the program, which a metric reports
	Revision string          // commit of the program, which a metric reports; default: the commit that the go command recorded
	Grace    time.Duration   // time for requests in progress after Run was asked to stop; default 25 s

	// Wrappers for metering and fault injection. WrapTransport wraps the
	// connection between the hub and the embedded engine, WrapBus each
	// connection between the hub and the embedded bus, and WrapHandler the
	// handler of HTTP requests.
	WrapTransport func(policy.Transporter) policy.Transporter
	WrapBus       func(net.Conn) net.Conn
	WrapHandler   func(http.Handler) http.Handler

	// Transport and DialBus replace the network between the hub and remote
	// services. Transport sends requests to Cosmos DB and Blob Storage. DialBus
	// connects to the namespace; it returns a connection that transports AMQP
	// from the first byte.
	Transport policy.Transporter
	DialBus   func(context.Context) (net.Conn, error)

	// Dial and LookUp replace the network for calls that use neither Transport
	// nor DialBus. LookUp returns the addresses of a host name, and Dial
	// connects to one of them. Without LookUp, Dial receives the host name.
	// Default: the functions of the operating system.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	LookUp func(ctx context.Context, host string) ([]netip.Addr, error)

	// Proxy returns the proxy for an HTTP request, or nil for no proxy. By
	// default, HTTPS_PROXY, HTTP_PROXY and NO_PROXY specify the proxy. AMQP
	// uses no proxy.
	Proxy func(*http.Request) (*url.URL, error)

	// PullOnly disables subscriptions, events and calls of receivers, for
	// programs that test or measure other parts.
	PullOnly bool

	SurveyEvery time.Duration // time between two rounds of the survey; default 10 s, or 2 s on the embedded engine

	DrawerCapacity int           // maximum number of events in a drawer, which must be the same on all nodes; default 10,000
	Unfiltered     int           // see cosmos.Options
	SweepEvery     time.Duration // time between two sweeps; default about 1 h

	ReadinessInterval time.Duration // time between two runs of the readiness checks; default 5 s; if negative, no checks run and the node is always ready

	Levels        level.Table   // store levels that the node supports; default: the levels of this version
	LevelInterval time.Duration // time between two reads of the store's level; default and maximum 10 s

	Ingestion ingest.Limits // limits for the messages in memory; zero fields select defaults

	// Traces records spans of requests and messages. By default no spans are
	// recorded, but callers' trace contexts are still propagated.
	Traces trace.TracerProvider

	// Registry registers the node's metrics. Default: the result of
	// [NewRegistry].
	Registry *prometheus.Registry

	Clock  func() time.Time // default: the system clock
	Random func() uint64    // source of ids and jitter; default: a random source

	folder   *datafolder.Identity // identity of the data folder; nil without a data folder
	network  *network
	identity func() (azcore.TokenCredential, error)
	contents *ownContents
	reports  *contentReports // may be nil

	certificate *certificate // certificate is nil for plain HTTP

	busRetryDelay time.Duration // pause before a Service Bus client repeats a call; 0 for the default of package servicebus

	pushFor    time.Duration                         // how long the node begins calls of receivers; 0 for as long as it runs
	wrapCaller func(delivery.Caller) delivery.Caller // wraps the caller of receivers, unless nil
}

// setConnections initializes the node's network and Azure identity.
func (o *Options) setConnections(cfg *config.Config) {
	o.network = newNetwork(o)
	o.identity = sync.OnceValues(func() (azcore.TokenCredential, error) { return identityOver(o.network.services, cfg.Production) })
}

// currentTime returns the current time of the node's clock.
func (o *Options) currentTime() time.Time {
	if o.Clock == nil {
		return time.Now()
	}
	return o.Clock()
}

// randomFraction returns a random number in [0, 1).
func (o *Options) randomFraction() float64 { return float64(o.Random()>>11) / (1 << 53) }

// A Node is one running hub that serves HTTP.
type Node struct {
	opts        Options
	listener    net.Listener
	store       *nodeStore
	survey      *cosmossurvey.Survey
	isSurveyOn  bool // isSurveyOn means that the configuration turns the survey on
	domains     *domains
	push        *push
	objects     *objects
	parties     *brokerSetup
	hub         *hub.Hub
	api         *api.Server
	console     *console.Console
	ready       *readiness
	drainDelay  time.Duration
	level       *levelWatch
	actors      *actorRegistry
	senders     *identity.Authenticator // senders is nil if the hub trusts the header X-Actor-Id
	handler     *drainHandler
	failSafe    *failsafe.Worker // failSafe is nil if no worker is configured
	connections *connlimit.Limiter
	operators   *operatorListener // operators is nil if all routes are on one listener
	registry    *prometheus.Registry

	data           string // path of the data folder
	adminTokenFile string // file that contains the operators' token; "" without such a file
}

// Open builds a node. It accepts connections, but their requests wait until Run
// serves them. An error is one line that contains the fault and the remedy. A
// caller that does not call Run must call Close.
func Open(ctx context.Context, cfg config.Config, opts Options) (_ *Node, err error) {
	opts.Logger = withTraceIDs(cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)))
	opts.Grace = cmp.Or(opts.Grace, 25*time.Second)
	opts.setConnections(&cfg)
	if opts.Random == nil {
		opts.Random = rand.Uint64
	}
	n := &Node{opts: opts, listener: opts.Listener, registry: opts.Registry, data: cfg.Data, drainDelay: cfg.DrainDelay}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close(ctx))
		}
	}()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	for _, warning := range cfg.Warnings() {
		opts.Logger.Warn("the configuration is not safe", "what", warning)
	}
	if opts.certificate, err = loadCertificate(cfg.TLS, opts.Logger); err != nil {
		return nil, err
	}
	if n.listener == nil {
		if n.listener, err = openListener(ctx, cfg.Listen, "listen"); err != nil {
			return nil, err
		}
	}
	if n.operators, err = openOperators(ctx, &cfg); err != nil {
		return nil, err
	}
	if n.registry == nil {
		n.registry = NewRegistry()
	}
	registerBuildInfo(n.registry, opts.Version, cmp.Or(opts.Revision, recordedRevision()))
	n.registry.MustRegister(certificateTimes{opts.certificate})
	opts.contents, opts.reports = newOwnContents(n.registry), newContentReports(&cfg, &opts, n.registry)
	n.opts.contents, n.opts.reports, n.opts.certificate = opts.contents, opts.reports, opts.certificate
	if n.store, err = openStore(ctx, &cfg, &opts, n.registry); err != nil {
		return nil, err
	}
	if n.level, err = n.watchLevel(ctx, &cfg); err != nil {
		return nil, err
	}
	if err := n.store.freeze(ctx, &cfg, opts.Logger); err != nil {
		return nil, err
	}
	if n.objects, err = openObjects(ctx, &cfg, &opts, n.store, n.registry); err != nil {
		return nil, err
	}
	if n.push, err = openPush(ctx, &cfg, &opts, n.store, n.URL(), n.objects.changes, n.registry); err != nil {
		return nil, err
	}
	n.parties = newBrokerSetup(&cfg, n.push.broker, &opts)
	n.parties.storeAllOnce(ctx)
	if n.domains, err = openDomains(ctx, &cfg, &opts, n.store, n.push, n.registry); err != nil {
		return nil, err
	}
	n.isSurveyOn = cfg.Survey.Units > 0
	n.survey = openSurvey(&cfg, &opts, n.store, n.registry)
	n.store.ObserveRemovals(n.domains.noticeRelay.Enqueue)
	n.opts.folder = opts.folder
	logFolder(opts.folder, &cfg, opts.Logger)
	connections := connectionLimits(&cfg)
	h := hub.New(n.store, n.store, n.store.content, hub.Options{
		Groups: cfg.Groups(), Content: cfg.Content(), Logger: opts.Logger,
		Requester: n.domains.requests, Exchange: n.store.exchange, Answers: n.store, NoticeRelay: n.domains.noticeRelay,
		Missing:    opts.contents.countMissing,
		MaxContent: int64(cfg.Limits.Content), Random: opts.Random, Saved: n.push.notifySaved, Listeners: waitingPeeks(&cfg, connections.Limit, opts.Logger),
	})
	n.hub = h
	opts.contents.hub.Store(h)
	n.domains.openIngestion(&cfg, &opts, h, n.registry)
	n.objects.receive(&cfg, &opts, n.domains.bus, n.registry)
	n.ready = newReadiness(n.readinessChecks(&cfg), opts.ReadinessInterval, opts.Logger, n.registry)
	n.ready.runChecks(ctx) // /readyz needs these results for its first response
	n.connections = connlimit.New(connections)
	registerConnections(n.registry, n.connections)
	token := n.adminToken(&cfg)
	if err := n.openFailSafe(&cfg, token); err != nil {
		return nil, err
	}
	n.actors, n.senders = n.openIdentity(&cfg)
	operator := hub.NewOperator(h, n.store, opts.Logger)
	mailboxes := survey.New(n.survey)
	check := newCheckMetrics(n.registry).observeChecker(n.store.checkStore, n.opts.currentTime)
	finder, letters := n.findService(), newDeadLetters(&cfg, &opts, n.domains, n.store, n.registry)
	n.console = n.newConsole(&cfg, operator, mailboxes, finder, letters, check, token)
	n.api = api.New(api.Options{
		Hub:       h,
		Operator:  operator,
		Console:   n.console,
		Check:     check,
		Mailboxes: mailboxes,
		Backup:    n.backUp, NoBackup: backupObstacle(&cfg),

		Subscriptions: n.push.subscriptions, Replays: n.push.replays,
		Events:     n.push.events,
		Outcomes:   n.push.outcomes,
		Deliveries: n.push.deliveries,
		Find:       finder,
		Broker:     n.push.broker,
		Watches:    n.push.watches.useCases(),
		Objects:    n.objects.ledger,

		DeadLetters: letters,

		Identity:   n.senders,
		AdminToken: token.Reveal(), AdminTokens: adminTokens(&cfg),
		Logger:     opts.Logger,
		LogLevel:   opts.LogLevel,
		Traces:     opts.Traces,
		Registerer: n.registry,
		Gatherer:   n.registry,
		Ready:      n.ready.Ready,
		OverLimit:  connlimit.OverLimit,
		Warnings:   n.warnings,
		Build:      n.buildInfo,
		NoProxies:  !cfg.Insecure && !cfg.OIDC.IsOn(),

		TrustedProxies: cfg.Limits.TrustedProxies,
		Limits: api.Limits{
			RequestBody: int64(cfg.Limits.RequestBody),
			Payload:     int(cfg.Limits.Payload),
			Events:      cfg.Limits.Events,

			PayloadDepth: cfg.Limits.PayloadDepth, PayloadNumber: cfg.Limits.PayloadNumber,

			Bodies: int64(cfg.Limits.Bodies), BodiesPerAddress: int64(cfg.Limits.BodiesPerAddress),
			Answers: int64(cfg.Limits.Answers), AnswersPerActor: int64(cfg.Limits.AnswersPerActor),
			MinRate: int64(cfg.Limits.MinRate),

			Requests: cfg.Limits.Requests, EventsPerSecond: cfg.Limits.EventsPerSecond,
		},
	})
	set := api.AllRoutes
	if n.operators != nil {
		set = api.PublicRoutes
		n.operators.handler = n.newDrainHandler(&cfg, api.OperatorRoutes, n.operators.listener.Addr())
	}
	n.handler = n.newDrainHandler(&cfg, set, n.listener.Addr())
	return n, nil
}

// NewRegistry returns a registry that already contains metrics of the Go
// runtime and of the process.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// newDrainHandler returns the handler for a listener on addr that serves this
// set of routes.
func (n *Node) newDrainHandler(cfg *config.Config, set api.RouteSet, addr net.Addr) *drainHandler {
	handler := n.api.HandlerOf(set, ownHosts(cfg, addr))
	if cfg.TLS.IsOn() {
		handler = api.StrictTransport(handler)
	}
	if n.opts.WrapHandler != nil {
		handler = n.opts.WrapHandler(handler)
	}
	return &drainHandler{next: handler}
}

// adminToken returns the operators' token from the configuration or, if the
// configuration contains none, from the data folder. Without a token, all
// requests to operators' routes are refused.
func (n *Node) adminToken(cfg *config.Config) config.Secret {
	if cfg.Admin.Token != "" || len(cfg.Admin.Tokens) > 0 {
		return cfg.Admin.Token
	}
	token, err := ensureAdminToken(cfg, n.opts.Logger)
	if err != nil {
		n.opts.Logger.Warn("the hub has no token for its operators, so their routes are closed; set admin.token (MESSAGEHUB_ADMIN_TOKEN), or repair the data folder, and restart the hub", "error", err)
		return ""
	}
	n.adminTokenFile = AdminTokenFile(cfg.Data)
	return token
}

// adminTokens returns the operators' tokens that the configuration contains only
// as hashes.
func adminTokens(cfg *config.Config) []api.AdminToken {
	tokens := make([]api.AdminToken, len(cfg.Admin.Tokens))
	for i, t := range cfg.Admin.Tokens {
		tokens[i] = api.AdminToken{Name: t.Name, SHA256: t.SHA256}
	}
	return tokens
}

// AdminTokenFile returns the path of the file in which the node stored the
// operators' token that it generated. It returns "" if the configuration
// contains a token, or no token exists.
func (n *Node) AdminTokenFile() string { return n.adminTokenFile }

// Addr returns the address at which the node listens.
func (n *Node) Addr() net.Addr { return n.listener.Addr() }

// URL returns the node's URL for clients on this machine.
func (n *Node) URL() string { return n.urlAt(n.listener.Addr()) }

func (n *Node) urlAt(addr net.Addr) string {
	scheme := "http://"
	if n.opts.certificate != nil {
		scheme = "https://"
	}
	return scheme + reachableAddress(addr.String())
}

// Gatherer returns the node's metrics.
func (n *Node) Gatherer() prometheus.Gatherer { return n.registry }

// Close releases the resources that Open acquired. It need not be called after
// Run.
func (n *Node) Close() error { return n.close(context.Background()) }

func (n *Node) close(ctx context.Context) error {
	var err error
	if n.listener != nil {
		if cerr := n.listener.Close(); !errors.Is(cerr, net.ErrClosed) {
			err = cerr
		}
	}
	err = errors.Join(err, n.operators.close())
	if n.hub != nil {
		n.hub.Close()
	}
	n.push.close()
	n.level.leaveStore(ctx)
	err = errors.Join(err, n.domains.close(ctx), n.store.close())
	n.opts.network.close()
	return err
}

// BusAddr returns the address of the embedded bus's listener for domains, or
// nil without a listener.
func (n *Node) BusAddr() net.Addr { return addrOf(n.domains.bus.listener) }

// BlobAddr returns the address of the embedded exchange's listener for domains,
// or nil without a listener.
func (n *Node) BlobAddr() net.Addr { return addrOf(n.store.exchange.listener) }

func addrOf(l net.Listener) net.Addr {
	if l == nil {
		return nil
	}
	return l.Addr()
}

func (n *Node) newServer(requests context.Context, handler http.Handler, addr net.Addr, connections *connlimit.Limiter) *http.Server {
	server := &http.Server{ //nolint:gosec // Harden sets its timeouts, and says why not all of them
		Handler:     handler,
		BaseContext: func(net.Listener) context.Context { return requests },
		ErrorLog:    slog.NewLogLogger(n.opts.Logger.Handler(), slog.LevelWarn),
	}
	api.Harden(server)
	n.setProtocols(server, addr)
	connections.Attach(server)
	return server
}

// Run serves until ctx ends, then drains and closes the node. It returns nil
// after a drain, even if requests were aborted; aborted requests are logged.
func (n *Node) Run(ctx context.Context) error {
	work := context.WithoutCancel(ctx)
	requests, cutOff := context.WithCancel(work)
	defer cutOff()
	server := n.newServer(requests, n.handler, n.listener.Addr(), n.connections)
	polls := n.api.ParkPolls(server) //nolint:contextcheck // a poll has the context of its server
	operators := n.newOperatorServer(requests)

	background, stopBackground := context.WithCancel(work)
	defer stopBackground()
	intake, stopIntake := context.WithCancelCause(work)
	defer stopIntake(nil)
	parts, failed := errgroup.WithContext(ctx)
	parts.Go(func() error { return n.store.Run(background) })
	parts.Go(func() error { n.runSurvey(background); return nil })
	parts.Go(func() error { return n.domains.noticeRelay.Run(background) })
	parts.Go(func() error { n.console.Run(background); return nil })
	parts.Go(func() error { return n.ready.Run(background) })
	parts.Go(func() error { return n.level.run(background) })
	parts.Go(func() error { n.runIdentity(background); return nil })
	parts.Go(func() error { n.objects.runReports(background, n.opts.reports); return nil })
	parts.Go(func() error { return n.domains.bus.serve(background) })
	parts.Go(func() error { return n.store.exchange.serve(background) })
	var stoppable sync.WaitGroup
	stoppable.Go(func() { _ = n.domains.ingestion.Run(intake) }) // Run of the ingestion returns no error
	stoppable.Go(func() { n.objects.receiveEvents(intake) })
	pushing, stopPushing := context.WithCancel(work)
	defer stopPushing()
	stoppable.Go(func() { n.push.run(pushing) })
	stoppable.Go(func() { n.objects.run(pushing) })
	stoppable.Go(func() { n.runFailSafe(pushing) })
	stoppable.Go(func() { n.parties.retryPending(pushing) })
	parts.Go(func() error {
		_ = server.Serve(polls) // Serve returns only after the server was closed
		return nil
	})
	parts.Go(func() error {
		if err := n.serve(server, n.listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve on %s: %w", n.Addr(), err)
		}
		return nil
	})

	parts.Go(func() error { return n.serveOperators(operators) })
	parts.Go(func() error {
		select {
		case err := <-n.store.diskFailed:
			return err
		case err := <-n.domains.bus.failed():
			return err
		case err := <-n.store.exchange.failed():
			return err
		case <-background.Done():
			return nil
		}
	})

	<-failed.Done() // ctx ended, or a part failed
	n.api.SetDraining()
	grace, intakeEnds := n.opts.Grace, error(nil)
	if ctx.Err() == nil {
		grace, intakeEnds = 0, ingest.ErrAtOnce // after a failure, requests in progress are aborted
	}
	stopIntake(intakeEnds)
	stopPushing()
	n.opts.Logger.Info("draining", "grace_ms", grace.Milliseconds())
	if ctx.Err() != nil {
		n.serveUntilMoved(work)
	}
	graceCtx, cancel := context.WithTimeout(work, grace)
	defer cancel()
	n.api.WaitForPolls(graceCtx) // the server completes Peeks that are still waiting
	if err := server.Shutdown(graceCtx); err != nil {
		n.opts.Logger.Warn("requests under way were cut off", "grace_ms", grace.Milliseconds(), "error", err)
		cutOff()
		_ = server.Close()
	}
	n.api.WaitForPolls(work)
	n.stopOperators(graceCtx, operators) // the operators' listener is last, so that health probes are answered until the end
	n.handler.closeAndWait()
	stoppable.Wait()
	stopBackground()
	err := parts.Wait()
	if err = errors.Join(err, n.close(work)); err == nil {
		n.opts.Logger.Info("stopped")
	}
	return err
}
