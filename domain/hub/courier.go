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
// notice that a bundle was removed is in no order with others. A notice leaves the outbox after it
// was delivered, so a crash in between brings it once more, with the same identity.
//
// Every node runs a Courier. It is told of what its own node closes, and looks every
// now and then for what other nodes have left behind. Two that carry for the same
// recipient bring notices twice, and never a later one without an earlier one.
type Courier struct {
	outbox   repository.Outbox
	notifier Notifier
	opts     CourierOptions

	due chan domain.ActorID // recipients that nobody carries for

	mu    sync.Mutex
	known map[domain.ActorID]bool // due, or carried for; true: told of again meanwhile
	stuck map[domain.ActorID]StuckNotices
}

// CourierOptions set up a Courier. The zero value will do.
type CourierOptions struct {
	Parallel int                           // recipients at a time; default 32
	Look     func(idle bool) time.Duration // how long to wait before looking for what was left behind; default about 10 s, and 30 s if nothing was found
	Random   func() uint64                 // for jitter; default: the system's
	Clock    func() time.Time              // default: the system's
	Logger   *slog.Logger                  // default: none
}

// NewCourier returns a Courier that does nothing until it is Run.
func NewCourier(outbox repository.Outbox, notifier Notifier, opts CourierOptions) *Courier {
	if opts.Parallel <= 0 {
		opts.Parallel = 32 // each carries a recipient for three writes in a row: of 8, all are busy when writes take 25 ms
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
	const most = 10_000 // told of and not yet carried for; the others are found by looking
	return &Courier{outbox: outbox, notifier: notifier, opts: opts, due: make(chan domain.ActorID, most), known: make(map[domain.ActorID]bool), stuck: make(map[domain.ActorID]StuckNotices)}
}

// Tell says that a recipient has notices in the outbox. It does not wait.
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
	default: // it will be found
	}
}

// Run carries until ctx ends. It never fails: what cannot be delivered waits.
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

// deliverOverdue finds recipients with notices that those who were told of them have not
// delivered, and reports whether there were any.
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

// processRecipient delivers what is in the outbox for a recipient.
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

// deliverNotices delivers until only notices are left that wait behind one that cannot be
// delivered: that group and audience is left for later, the others continue. What an old read
// shows again is not delivered again.
func (c *Courier) deliverNotices(ctx context.Context, recipient domain.ActorID) {
	type sequence struct {
		group   domain.Group
		to      domain.Audience
		removed domain.BundleID // each removal is a sequence of its own
	}
	stuck := make(map[sequence]bool)
	through := make(map[sequence]int64) // the number of the last notice that was delivered
	var left []domain.Notice            // that could not be delivered
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

// deliverNotice brings one notice, and then takes it out of the outbox.
func (c *Courier) deliverNotice(ctx context.Context, n domain.Notice) error {
	if err := c.notifier.Notify(ctx, n); err != nil {
		return err
	}
	return c.outbox.Delivered(ctx, n)
}

func (c *Courier) logWarning(ctx context.Context, what string, err error, attrs ...slog.Attr) {
	isLogged := domain.KindOf(err) == domain.NewerFormat // by the store, once for each mailbox
	if ctx.Err() == nil && !isLogged {
		c.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "notices stay in the outbox for now",
			append(attrs, slog.String("what", what), slog.String("error", err.Error()))...)
	}
}
