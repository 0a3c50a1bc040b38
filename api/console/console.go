package console

import (
	"context"
	"crypto/rand"
	"io"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/api/internal/hubmetrics"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// Options configure a Console. If the field of an optional feature is nil, the console omits the
// feature, or its pages say that this hub does not support the feature. If Receivers is set,
// Subscriptions, Deliveries, Replays and Journal must be set too.
type Options struct {
	Version string // version of the program

	Operator    Operator // required
	Mailboxes   MailboxLister
	Find        Finder
	DeadLetters DeadLetters
	Check       hub.Checker

	Receivers     ReceiverLister // required for the pages of receivers, together with Journal
	Subscriptions Subscriptions
	Deliveries    Deliveries
	Replays       Replayer
	Watches       Watches
	Broker        Broker
	Objects       Objects // required for the pages of objects, together with Journal
	Journal       Journal

	Nodes      NodeLister
	SendSample SampleSender
	Settings   []Setting
	Gatherer   prometheus.Gatherer   // metrics from which the charts are drawn; default: the charts are empty
	Registerer prometheus.Registerer // counts sample traffic; default: sample traffic is not counted

	// SessionKey is the secret from which the key for session cookies is derived. Nodes with the
	// same secret accept each other's sessions. It must be long enough to resist guessing, because
	// the owner of a cookie can test guesses offline. Default: a random secret, so sessions end
	// with the process.
	SessionKey string
	SignIn     *identity.CodeFlow // signs operators in at an issuer; default: operators sign in only with a token
	IsSecure   bool               // whether browsers reach the hub only over HTTPS

	Clock  func() time.Time // default: time.Now
	Random io.Reader        // default: crypto/rand
}

// An Operator has the use cases of operators for the mailbox of one actor. [hub.Operator]
// implements it.
type Operator interface {
	// Inspect returns the mailbox as it is stored.
	Inspect(ctx context.Context, actor domain.ActorID) (hub.Inspection, error)
	// Bundle returns an open or closed bundle that is still stored.
	Bundle(ctx context.Context, actor domain.ActorID, id domain.BundleID) (*hub.RetainedBundle, error)
	// ViewBundle records that an operator reads the body of a bundle, and returns up to limit bytes
	// of the body.
	ViewBundle(ctx context.Context, actor domain.ActorID, id domain.BundleID, limit int64, by hub.AdminAction) (*hub.BodyExcerpt, error)
	// Notices returns the notices in the outbox of the actor.
	Notices(ctx context.Context, actor domain.ActorID) (hub.NoticeReport, error)
	// PendingRequest returns this node's pending content request for a bundle. It returns false if
	// none exists.
	PendingRequest(actor domain.ActorID, id domain.BundleID) (hub.PendingRequest, bool)
	// Records returns up to limit records of orders, newest first.
	Records(ctx context.Context, actor domain.ActorID, limit int) ([]hub.Record, error)
	// Release withdraws an open bundle.
	Release(ctx context.Context, actor domain.ActorID, id domain.BundleID, by hub.AdminAction) error
	// Skip closes an open bundle that its actor has not confirmed.
	Skip(ctx context.Context, actor domain.ActorID, id domain.BundleID, by hub.AdminAction) error
	// Replay reopens the bundle that was closed last.
	Replay(ctx context.Context, actor domain.ActorID, group domain.Group, by hub.AdminAction) (domain.Bundle, error)
	// Freeze makes Peek and Dequeue fail for an actor.
	Freeze(ctx context.Context, actor domain.ActorID, by hub.AdminAction) error
	// FindFreeze returns the record of the order that froze the mailbox, or nil if it is not
	// frozen.
	FindFreeze(ctx context.Context, actor domain.ActorID) (*hub.Record, error)
	// Thaw ends a freeze.
	Thaw(ctx context.Context, actor domain.ActorID, by hub.AdminAction) error
	// Abandon skips the next events of a cabinet if the store has lost them.
	Abandon(ctx context.Context, cabinet domain.CabinetKey, by hub.AdminAction) (hub.Loss, error)
}

// A Console serves pages for operators. It is safe for concurrent use.
type Console struct {
	opts   Options
	sealer *sealer

	sampled *hubmetrics.Events // counts the events of sample traffic
	samples samples
	check   check
	work    sync.WaitGroup // counts the goroutines that requests have started
}

// New returns a Console, without starting goroutines.
func New(opts Options) *Console {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Random == nil {
		opts.Random = rand.Reader
	}
	if opts.Gatherer == nil {
		opts.Gatherer = prometheus.Gatherers{}
	}
	return &Console{opts: opts, sealer: newSealer(opts.SessionKey, opts.Clock, opts.Random), sampled: hubmetrics.NewEvents(opts.Registerer, hubmetrics.Console)}
}

// An edge is a Console together with the Host that serves it.
type edge struct {
	*Console
	host Host
}

// Mount adds the pages to r, and a redirect from / to the first page.
func (c *Console) Mount(r chi.Router, host Host) {
	e := &edge{c, host}
	r.Get("/", redirectToConsole)
	r.Get(root, redirectToConsole)
	r.Get(root+"/assets/{file}", e.serveAsset)
	for _, p := range pages {
		serve := e.serve(&p)
		r.Method(p.method, root+p.path, serve)
		if p.method == get {
			r.Head(root+p.path, serve)
		}
	}
	missing := e.serve(&pageRoute{path: "/*", role: look, serve: func(*visit) error { return errNoPage }})
	r.Get(root+"/*", missing)
	r.Head(root+"/*", missing)
}
