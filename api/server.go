package api

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/semaphore"

	"github.com/messagehub/messagehub/api/console"
	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/api/loglevel"
	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/deadletters"
	"github.com/messagehub/messagehub/domain/find"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/inspect"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/domain/outcome"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/domain/replay"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/domain/survey"
	"github.com/messagehub/messagehub/domain/watch"
)

// Options of a Server. Hub, Operator and Mailboxes are required.
type Options struct {
	Hub            *hub.Hub
	Operator       *hub.Operator
	Backup         func(ctx context.Context, w io.Writer) error // writes an archive of all data
	NoBackup       string                                       // reason why backups are impossible; "" if they are possible
	Check          hub.Checker                                  // checks the stored data; nil if this is impossible
	Subscriptions  *subscribe.Service                           // subscriptions; nil if the hub has none
	Replays        *replay.Service                              // replays deliveries; nil if this is impossible
	Events         *publish.Service                             // publishes events; nil if the hub accepts none
	Outcomes       *outcome.Service                             // outcomes of events for waiting senders; nil if no sender waits
	Console        *console.Console                             // pages for operators; nil if the hub has none
	Mailboxes      *survey.Service                              // required
	Deliveries     *inspect.Service                             // reads deliveries; nil if this is impossible
	Find           *find.Service                                // searches for ids; nil if this is impossible
	Broker         *broker.Service                              // webhook broker; nil if the hub has none
	Watches        *watch.Service                               // watches; nil if the hub has none
	Objects        *ledger.Service                              // ledger of objects; nil if the hub has none
	DeadLetters    *deadletters.Service                         // dead letters of a bus; nil if the hub has no bus
	Identity       *identity.Authenticator                      // verifies the senders of requests; if nil, the header X-Actor-Id and AdminToken identify them
	AdminToken     string                                       // bearer token of operators; if "", only AdminTokens are accepted
	AdminTokens    []AdminToken                                 // further tokens with the same rights as AdminToken
	Logger         *slog.Logger                                 // default: discards
	LogLevel       *loglevel.Level                              // level of Logger, which operators may change; default: a level that affects no log
	Registerer     prometheus.Registerer                        // registers the metrics; default: a new registry, which also becomes the Gatherer
	Gatherer       prometheus.Gatherer                          // source of /metrics; default: Registerer, if it is a Gatherer
	Ready          func(context.Context) error                  // returns the readiness for each /readyz, and must return a cached result; default: ready
	Warnings       func() []FailedCheck                         // returns warnings for each /readyz, and must return a cached result; default: none
	Build          func() *Build                                // describes the program and the store level for /readyz; default: no description
	Limits         Limits
	OverLimit      func(context.Context) bool // reports whether the connection of a request exceeds the limit, so that only probes are served; default: false
	IsOwnHost      func(host string) bool     // reports whether a Host header names this machine; other hosts are refused; default: no check
	TrustedProxies []netip.Prefix             // proxies whose X-Forwarded-For is trusted; default: none
	NoProxies      bool                       // whether requests that a proxy has forwarded are refused
	Deadline       time.Duration              // time limit of a request; default 30 s
	Clock          func() time.Time           // clock for durations in logs and metrics; default time.Now
	Traces         trace.TracerProvider       // records the spans of requests; default: no spans are recorded
	NewRequestID   func() string              // returns the id of a new request; default: 26 random letters and digits
}

// Limits contains limits of requests. A zero field selects its default.
type Limits struct {
	RequestBody int64 // maximum bytes of a request's body; default 32 MB
	Payload     int   // maximum bytes of one payload without insignificant white space; default 1 MB

	PayloadDepth  int // maximum levels of nesting in one payload; default 64
	PayloadNumber int // maximum characters of a number in a payload; default 400

	Events int   // maximum events of one request; default 10,000
	Peeks  int64 // maximum concurrent requests that use the store, of which an actor may have half; default 32

	// Bodies is the maximum number of bytes of large request bodies in memory at the same time.
	// BodiesPerAddress is the maximum from one address. Bodies of up to 64 KB share an additional
	// quarter of these numbers. The default of Bodies is 128 MB, or four times RequestBody if that
	// is more. The default of BodiesPerAddress is half of Bodies, or RequestBody if that is more.
	Bodies, BodiesPerAddress int64

	// Answers is the maximum number of bytes of large responses in memory while their clients read
	// them. AnswersPerActor is the maximum for one actor. Small responses share an additional
	// quarter of these numbers. The default of Answers is 72 MB, and the default of AnswersPerActor
	// is a third of Answers.
	Answers, AnswersPerActor int64

	MinRate int64 // minimum bytes per second that a client must send or read; default 4 KB

	Wait time.Duration // maximum time for which a Peek waits for data; default 1 min

	Requests        int // maximum requests of one client per second; 0 means no limit
	EventsPerSecond int // maximum events of one client per second, averaged over requests; 0 means no limit

	FailedLogins int // failed logins of operators per minute after which an address is refused; default 10
	FailedTokens int // invalid tokens per second after which no new token from an address is verified; default 20
}

const (
	kilobyte = 1 << 10
	megabyte = 1 << 20
)

// A Server serves the HTTP requests of domains, actors and operators. It is safe for concurrent
// use. It starts no goroutine and need not be closed.
type Server struct {
	opts                       Options
	metrics                    *edgeMetrics
	tracer                     *tracing.Tracer
	peeks                      *perActorLimiter
	smallBodies, largeBodies   *memoryPool
	smallAnswers, largeAnswers *memoryPool
	checks, backups            *semaphore.Weighted
	logins                     *failedLogins
	requests, events           *buckets // rate limits for each client; nil if there is no limit
	badTokens                  *buckets // per address
	refusals                   logSampler
	polls                      polls
	handler                    http.Handler
	draining                   context.Context //nolint:containedctx // ends with SetDraining
	drain                      context.CancelFunc
}

// New returns a Server for opts.Hub. It panics if another Server has registered its metrics with
// opts.Registerer.
func New(opts Options) *Server {
	opts.setDefaults()
	limits, timeout := &opts.Limits, opts.Deadline/4
	s := &Server{
		opts: opts, metrics: newMetrics(opts.Registerer), tracer: tracing.New(opts.Traces, "api"),
		peeks: newPerActorLimiter(newLimiter(limits.Peeks, timeout, "too many other bundles are being fetched"),
			max(1, limits.Peeks/2)),
		checks: semaphore.NewWeighted(1), backups: semaphore.NewWeighted(1),
		logins: newFailedLogins(opts.Limits.FailedLogins),

		requests: newBuckets("requests", limits.Requests, 1),
		events:   newBuckets("events", limits.EventsPerSecond, limits.Events),

		badTokens: newBuckets("tokens", limits.FailedTokens, 1),
	}
	s.smallBodies, s.largeBodies = newMemoryPools(limits.Bodies, limits.BodiesPerAddress, memoryLimits{
		timeout: timeout, rate: limits.MinRate, onCut: s.metrics.stalled.WithLabelValues("requests").Inc,
		full:    "request bodies take all the memory that there is for them",
		cutsOwn: true, // true, because many clients may share the address of a proxy
	})
	s.smallAnswers, s.largeAnswers = newMemoryPools(limits.Answers, limits.AnswersPerActor, memoryLimits{
		timeout: timeout, rate: limits.MinRate, onCut: s.metrics.stalled.WithLabelValues("answers").Inc,
		full:      "answers that their clients have not read take all the memory that there is for them",
		stallTime: time.Duration(float64(writeStep) / float64(limits.MinRate) * float64(time.Second)),
	})
	s.draining, s.drain = context.WithCancel(context.Background())
	routes := s.routes(AllRoutes, opts.IsOwnHost)
	for _, route := range append(patternsOf(routes), unmatched) {
		s.metrics.addRoute(route)
	}
	s.handler = routes
	return s
}

// Handler returns the handler of all routes.
func (s *Server) Handler() http.Handler { return s.handler }

// SetDraining makes /readyz report that the node should not receive requests. It ends waits for
// data, checks and backups. The server still serves requests that arrive.
func (s *Server) SetDraining() {
	s.drain()
	s.polls.drain()
	s.logUnlogged(s.refusals.endWindows(s.opts.Clock(), true))
}

func (o *Options) setDefaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registerer == nil {
		registry := prometheus.NewRegistry()
		o.Registerer = registry
		if o.Gatherer == nil {
			o.Gatherer = registry
		}
	}
	if o.Gatherer == nil {
		var ok bool
		if o.Gatherer, ok = o.Registerer.(prometheus.Gatherer); !ok {
			o.Gatherer = prometheus.Gatherers{}
		}
	}
	if o.Build == nil {
		o.Build = func() *Build { return nil }
	}
	if o.Warnings == nil {
		o.Warnings = func() []FailedCheck { return nil }
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) error { return nil }
	}
	if o.Limits.RequestBody <= 0 {
		o.Limits.RequestBody = 32 * megabyte
	}
	if o.Limits.Payload <= 0 {
		o.Limits.Payload = megabyte
	}
	if o.Limits.Events <= 0 {
		o.Limits.Events = 10_000
	}
	if o.Limits.Bodies <= 0 {
		o.Limits.Bodies = max(128*megabyte, 4*o.Limits.RequestBody)
	}
	if o.Limits.BodiesPerAddress <= 0 {
		o.Limits.BodiesPerAddress = o.Limits.Bodies / 2
	}
	largest := roundUp(o.Limits.RequestBody, largeStep)
	o.Limits.Bodies, o.Limits.BodiesPerAddress = max(o.Limits.Bodies, largest), max(o.Limits.BodiesPerAddress, largest)
	if o.Limits.Answers <= 0 {
		o.Limits.Answers = 72 * megabyte
	}
	if o.Limits.AnswersPerActor <= 0 {
		o.Limits.AnswersPerActor = o.Limits.Answers / 3
	}
	if o.Limits.MinRate <= 0 {
		o.Limits.MinRate = 4 * kilobyte
	}
	if o.Limits.Peeks <= 0 {
		o.Limits.Peeks = 32
	}
	if o.Limits.Wait <= 0 {
		o.Limits.Wait = time.Minute
	}
	if o.Limits.FailedLogins <= 0 {
		o.Limits.FailedLogins = 10
	}
	if o.Limits.FailedTokens <= 0 {
		o.Limits.FailedTokens = 20
	}
	if o.Deadline <= 0 {
		o.Deadline = 30 * time.Second
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.LogLevel == nil {
		o.LogLevel = loglevel.New(slog.LevelInfo, o.Clock)
	}
	if o.NewRequestID == nil {
		o.NewRequestID = rand.Text
	}
}

// Harden sets the limits of srv that apply before a handler runs: the time for headers, the time of
// idle connections, and the size of headers.
//
// It sets neither ReadTimeout nor WriteTimeout, and the caller must not set them. Each is one fixed
// duration: if it is short enough to stop a hanging client, it would also interrupt a large bundle
// on a slow connection. The deadline of a request handles both cases.
func Harden(srv *http.Server) {
	srv.ReadHeaderTimeout = 10 * time.Second
	srv.IdleTimeout = 2 * time.Minute
	srv.MaxHeaderBytes = 32 * kilobyte
}
