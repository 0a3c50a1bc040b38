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

// A Courier brings notices from the outbox to domains and subscribers: each at least once, and
// those of a recipient, group and audience in the order in which its bundles were closed. The
// notice that a bundle was removed is in no order with others. A notice is removed from the
// outbox after it was delivered. A crash in between delivers it once more, with the same
// identity.
//
// Every node runs a Courier. It is notified of the bundles that its own node closes, and looks
// periodically for notices that other nodes have left. Two Couriers that serve the same
// recipient may deliver a notice twice, never out of order.
type Courier struct {
	outbox   repository.Outbox
	notifier Notifier
	opts     CourierOptions

	due chan domain.ActorID // recipients that no worker processes yet

	mu    sync.Mutex
	known map[domain.ActorID]bool // due, or being processed; true: has new notices since
	stuck map[domain.ActorID]StuckNotices
}

// CourierOptions configure a Courier. The zero value has the defaults.
type CourierOptions struct {
	Parallel int                           // recipients at a time; default 32
	Look     func(idle bool) time.Duration // how long to wait before looking for what was left behind; default about 10 s, and 30 s if nothing was found
	Random   func() uint64                 // for jitter; default: the system's
	Clock    func() time.Time              // default: the system's
	Logger   *slog.Logger                  // default: nothing is logged
}

// NewCourier returns a Courier. It does nothing until Run is called.
func NewCourier(outbox repository.Outbox, notifier Notifier, opts CourierOptions) *Courier {
	if opts.Parallel <= 0 {
		opts.Parallel = 32 // each serves a recipient for three writes in a row: 8 would all be busy when a write takes 25 ms
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
	const most = 10_000 // recipients in due; deliverOverdue finds the others
	return &Courier{outbox: outbox, notifier: notifier, opts: opts, due: make(chan domain.ActorID, most), known: make(map[domain.ActorID]bool), stuck: make(map[domain.ActorID]StuckNotices)}
}

// Tell notifies the Courier that recipient has notices in the outbox. It does not block.
func (c *Courier) Tell(recipient domain.ActorID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.known[recipient]; ok {
		c.known[recipient] = true
		return
	}
	select {
	case c.due <- recipient:
		c.known[recipient] = false
	default: // deliverOverdue finds it
	}
}

// Run delivers notices until ctx ends. It returns nil: a notice that cannot be delivered stays
// in the outbox.
func (c *Courier) Run(ctx context.Context) error {
	var carrying sync.WaitGroup
	defer carrying.Wait()
	for range c.opts.Parallel {
		carrying.Go(func() {
			for {
				select {
				case recipient := <-c.due:
					c.processRecipient(ctx, recipient)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for {
		idle := !c.deliverOverdue(ctx)
		timer := time.NewTimer(c.opts.Look(idle))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// deliverOverdue finds recipients whose notices were not delivered by the node that closed
// their bundles, and reports whether there were any.
func (c *Courier) deliverOverdue(ctx context.Context) bool {
	const most, young = 1000, 10 * time.Second
	waiting, err := c.outbox.Waiting(ctx, c.opts.Clock().Add(-young), most)
	if err != nil {
		c.logWarning(ctx, "look for notices", err)
	}
	for _, recipient := range waiting {
		c.Tell(recipient)
	}
	if err == nil && len(waiting) < most {
		c.forgetStuck(waiting)
	}
	return len(waiting) > 0
}

// processRecipient delivers the notices of a recipient until no new ones arrive.
func (c *Courier) processRecipient(ctx context.Context, recipient domain.ActorID) {
	for again := true; again; {
		c.mu.Lock()
		c.known[recipient] = false
		c.mu.Unlock()
		c.deliverNotices(ctx, recipient)
		c.mu.Lock()
		if again = c.known[recipient] && ctx.Err() == nil; !again {
			delete(c.known, recipient)
		}
		c.mu.Unlock()
	}
}

// deliverNotices delivers the notices of a recipient until the rest wait behind a notice that
// cannot be delivered. Such a notice stops its own group and audience only. Notices that a
// stale read shows again are not delivered again.
func (c *Courier) deliverNotices(ctx context.Context, recipient domain.ActorID) {
	type sequence struct {
		group   domain.Group
		to      domain.Audience
		removed domain.BundleID // each removal is a separate sequence
	}
	stuck := make(map[sequence]bool)
	through := make(map[sequence]int64) // the number of the last notice that was delivered
	var left []domain.Notice            // notices that could not be delivered
	for progress := true; progress; {
		notices, err := c.outbox.Notices(ctx, recipient)
		if err != nil {
			c.logWarning(ctx, "read the notices of a recipient", err, slog.String("actor", recipient.String()))
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
			if err := c.deliverNotice(ctx, n); err != nil {
				c.logWarning(ctx, "deliver a notice", err, slog.String("actor", recipient.String()),
					slog.String("origin", n.Origin.String()), slog.String("bundle_id", n.Bundle.String()))
				stuck[of] = true
				left = append(left, n)
				continue
			}
			through[of], progress = n.Number, true
		}
	}
	c.noteStuck(recipient, left)
}

// deliverNotice delivers a notice, and then removes it from the outbox.
func (c *Courier) deliverNotice(ctx context.Context, n domain.Notice) error {
	if err := c.notifier.Notify(ctx, n); err != nil {
		return err
	}
	return c.outbox.Delivered(ctx, n)
}

func (c *Courier) logWarning(ctx context.Context, what string, err error, attrs ...slog.Attr) {
	isLogged := domain.KindOf(err) == domain.NewerFormat // the store logs it, once for each mailbox
	if ctx.Err() == nil && !isLogged {
		c.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "notices stay in the outbox for now",
			append(attrs, slog.String("what", what), slog.String("error", err.Error()))...)
	}
}
