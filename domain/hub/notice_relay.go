package hub

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A NoticeRelay delivers notices from the outbox to domains and subscribers, at least once each. For a recipient, group
// and audience, it delivers them in the order in which the bundles were closed; notices of removed bundles are not
// ordered. It removes a notice after the delivery. If the node dies in between, the notice is delivered again with the
// same identity.
//
// Every node runs a NoticeRelay. It learns of bundles that its node closes, and also looks for notices that other nodes
// have not delivered. Two NoticeRelays for the same recipient may deliver a notice twice, but never out of order.
type NoticeRelay struct {
	outbox   repository.Outbox
	notifier Notifier
	opts     NoticeRelayOptions

	due chan domain.ActorID // recipients that no worker is processing yet

	mu    sync.Mutex
	known map[domain.ActorID]bool // recipients that are in due or being processed; true if notices were added since processing began
	stuck map[domain.ActorID]StuckNotices
}

// NoticeRelayOptions configure a NoticeRelay. A zero value selects the default.
type NoticeRelayOptions struct {
	Parallel int                           // maximum number of recipients to process at the same time; default 32
	Look     func(idle bool) time.Duration // pause before the next look for overdue notices; default about 10 s, or 30 s after a look that found none
	Random   func() uint64                 // source of random numbers for jitter; default: math/rand/v2
	Clock    func() time.Time              // default: the system clock
	Logger   *slog.Logger                  // default: log lines are discarded
}

// NewNoticeRelay returns a NoticeRelay. It delivers nothing until Run is called.
func NewNoticeRelay(outbox repository.Outbox, notifier Notifier, opts NoticeRelayOptions) *NoticeRelay {
	if opts.Parallel <= 0 {
		opts.Parallel = 32 // about 400 recipients per second, with three consecutive writes of 25 ms for each
	}
	if opts.Random == nil {
		opts.Random = rand.Uint64
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Look == nil {
		opts.Look = func(idle bool) time.Duration {
			d := 10 * time.Second
			if idle {
				d *= 3
			}
			return withJitter(d, opts.Random)
		}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	const limit = 10_000 // maximum number of recipients in due; deliverOverdue finds the rest
	return &NoticeRelay{outbox: outbox, notifier: notifier, opts: opts, due: make(chan domain.ActorID, limit), known: make(map[domain.ActorID]bool), stuck: make(map[domain.ActorID]StuckNotices)}
}

// Enqueue tells the NoticeRelay that the outbox has notices for recipient. It does not block.
func (r *NoticeRelay) Enqueue(recipient domain.ActorID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.known[recipient]; ok {
		r.known[recipient] = true
		return
	}
	select {
	case r.due <- recipient:
		r.known[recipient] = false
	default: // the channel is full; deliverOverdue will find the recipient
	}
}

// Run delivers notices until ctx ends, and returns nil. Notices that cannot be delivered stay in the outbox.
func (r *NoticeRelay) Run(ctx context.Context) error {
	var workers sync.WaitGroup
	defer workers.Wait()
	for range r.opts.Parallel {
		workers.Go(func() {
			for {
				select {
				case recipient := <-r.due:
					r.processRecipient(ctx, recipient)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for {
		idle := !r.deliverOverdue(ctx)
		timer := time.NewTimer(r.opts.Look(idle))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// deliverOverdue looks for notices that the node which closed the bundle has not delivered. It reports whether there
// are any.
func (r *NoticeRelay) deliverOverdue(ctx context.Context) bool {
	const limit, young = 1000, 10 * time.Second
	waiting, err := r.outbox.Waiting(ctx, r.opts.Clock().Add(-young), limit)
	if err != nil {
		r.logWarning(ctx, "look for notices", err)
	}
	for _, recipient := range waiting {
		r.Enqueue(recipient)
	}
	if err == nil && len(waiting) < limit {
		r.forgetStuck(waiting)
	}
	return len(waiting) > 0
}

// processRecipient delivers the notices of a recipient, until no more are enqueued.
func (r *NoticeRelay) processRecipient(ctx context.Context, recipient domain.ActorID) {
	for again := true; again; {
		r.mu.Lock()
		r.known[recipient] = false
		r.mu.Unlock()
		r.deliverNotices(ctx, recipient)
		r.mu.Lock()
		if again = r.known[recipient] && ctx.Err() == nil; !again {
			delete(r.known, recipient)
		}
		r.mu.Unlock()
	}
}

// deliverNotices delivers the notices of a recipient. A notice that cannot be delivered blocks only later notices of
// the same group and audience. It skips notices that were already delivered, which a stale read may return.
func (r *NoticeRelay) deliverNotices(ctx context.Context, recipient domain.ActorID) {
	type sequence struct {
		group   domain.Group
		to      domain.Audience
		removed domain.BundleID // each removed bundle is its own sequence
	}
	stuck := make(map[sequence]bool)
	through := make(map[sequence]int64) // number of the last delivered notice of each sequence
	var left []domain.Notice            // notices that could not be delivered
	for progress := true; progress; {
		notices, err := r.outbox.Notices(ctx, recipient)
		if err != nil {
			r.logWarning(ctx, "read the notices of a recipient", err, slog.String("actor", recipient.String()))
			return
		}
		progress, left = false, nil
		for _, n := range notices {
			of := sequence{group: n.Group, to: n.Audience}
			if n.Audience == domain.ForWatchersOfRemoval {
				of.removed = n.Bundle
			}
			if last, isDelivered := through[of]; isDelivered && n.Number <= last {
				continue
			}
			if stuck[of] {
				left = append(left, n)
				continue
			}
			if err := r.deliverNotice(ctx, n); err != nil {
				r.logWarning(ctx, "deliver a notice", err, slog.String("actor", recipient.String()),
					slog.String("origin", n.Origin.String()), slog.String("bundle_id", n.Bundle.String()))
				stuck[of] = true
				left = append(left, n)
				continue
			}
			through[of], progress = n.Number, true
		}
	}
	r.noteStuck(recipient, left)
}

// deliverNotice delivers a notice, and then removes it from the outbox.
func (r *NoticeRelay) deliverNotice(ctx context.Context, n domain.Notice) error {
	if err := r.notifier.Notify(ctx, n); err != nil {
		return err
	}
	return r.outbox.Delivered(ctx, n)
}

func (r *NoticeRelay) logWarning(ctx context.Context, what string, err error, attrs ...slog.Attr) {
	isLogged := domain.KindOf(err) == domain.NewerFormat // the store logs this error itself, once per mailbox
	if ctx.Err() == nil && !isLogged {
		r.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "notices stay in the outbox for now",
			append(attrs, slog.String("what", what), slog.String("error", err.Error()))...)
	}
}
