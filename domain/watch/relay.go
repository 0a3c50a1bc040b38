package watch

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Relay publishes the changes of resources to their streams, and then removes them. It may
// publish a change more than once, but the stream has it exactly once.
//
// Every node runs a Relay. It observes the changes that its own node stores. One node at a time
// looks for changes that nodes have not published.
type Relay struct {
	changes   repository.Changes
	streams   repository.Streams
	published func(domain.StreamName, []domain.Message, []repository.Appended)
	opts      RelayOptions

	due chan domain.Change // with Version 0: all changes of a resource
}

// RelayOptions set up a Relay. The zero value is valid.
type RelayOptions struct {
	Parallel int // changes at a time; default 32
	// Looks, if set, is called when it is the turn of this node to look for changes. It looks
	// for changes of another kind, and reports whether it has found any.
	Looks   func(ctx context.Context) bool
	Look    func(isIdle bool) time.Duration  // pause before the next look; default about 10 s, and 30 s if the last look found no changes
	Backoff func(failures int) time.Duration // pause before a change is tried again; default 100 ms, and twice as long each time
	Clock   func() time.Time                 // default: the system's
	Random  func() uint64                    // for jitter; default: the system's
	Logger  *slog.Logger                     // default: nothing is logged
}

// NewRelay returns a Relay that observes changes, and calls published after each append. It
// does nothing until Run is called.
func NewRelay(changes repository.Changes, streams repository.Streams, published func(domain.StreamName, []domain.Message, []repository.Appended), opts RelayOptions) *Relay {
	if opts.Parallel <= 0 {
		opts.Parallel = 32
	}
	if opts.Random == nil {
		opts.Random = rand.Uint64
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Look == nil {
		opts.Look = func(isIdle bool) time.Duration {
			d := 10 * time.Second
			if isIdle {
				d *= 3
			}
			return d - d/10 + time.Duration(opts.Random()%uint64(d/5)) //nolint:gosec // positive
		}
	}
	if opts.Backoff == nil {
		opts.Backoff = func(failures int) time.Duration { return 100 * time.Millisecond << min(failures-1, 6) }
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Relay{changes, streams, published, opts, make(chan domain.Change, maxDue)}
	changes.Observe(r.publishSoon)
	return r
}

// maxDue is the limit for the changes in memory. A look finds the others.
const maxDue = 10_000

// publishSoon queues a stored change. It does not block.
func (r *Relay) publishSoon(c domain.Change) {
	select {
	case r.due <- c:
	default: // a look will find it
	}
}

// Run publishes changes until ctx ends. It returns nil: changes that cannot be published wait.
func (r *Relay) Run(ctx context.Context) error {
	var publishing sync.WaitGroup
	defer publishing.Wait()
	for range r.opts.Parallel {
		publishing.Go(func() {
			for {
				select {
				case c := <-r.due:
					r.publishUntilDone(ctx, c)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for {
		isIdle := !r.publishOverdue(ctx)
		timer := time.NewTimer(r.opts.Look(isIdle))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// turn is the time after a look in which no other node looks for changes. It is shorter than
// the interval between two looks of a node.
const turn = 8 * time.Second

// publishOverdue finds resources with changes that their nodes have not published, and reports
// whether there are any. It does nothing if another node has just looked.
func (r *Relay) publishOverdue(ctx context.Context) bool {
	const limit, young = 1000, 10 * time.Second
	switch isTurn, err := r.changes.TakeTurn(ctx, r.opts.Clock(), turn); {
	case err != nil: // it may be the turn of this node, so look
		r.logWarning(ctx, "take the turn to look for changes", err)
	case !isTurn:
		return false
	}
	found, err := r.changes.Unpublished(ctx, r.opts.Clock().Add(-young), limit)
	if err != nil {
		r.logWarning(ctx, "look for changes", err)
	}
	for _, resource := range found {
		r.publishSoon(domain.Change{Resource: resource})
	}
	hasOthers := r.opts.Looks != nil && r.opts.Looks(ctx)
	return len(found) > 0 || hasOthers
}

// maxAttempts is the number of attempts before a change is left to the next look.
const maxAttempts = 5

func (r *Relay) publishUntilDone(ctx context.Context, c domain.Change) {
	for failures := 1; ; failures++ {
		err := r.Publish(ctx, c)
		if err == nil || ctx.Err() != nil {
			return
		}
		if failures == maxAttempts || domain.KindOf(err) == domain.Damaged || domain.KindOf(err) == domain.NewerFormat {
			r.logWarning(ctx, "publish a change", err, slog.String("resource", c.Resource.String()))
			return
		}
		timer := time.NewTimer(r.opts.Backoff(failures))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// Publish publishes a change, and earlier changes that are missing in the stream. With Version
// 0, it publishes all changes of the resource. Run calls it for the changes that it observes or
// finds. It may be repeated.
func (r *Relay) Publish(ctx context.Context, c domain.Change) error {
	if c.Version > 0 {
		if isGap, err := r.moveChange(ctx, &c); err != nil || !isGap {
			return err
		}
	}
	all, err := r.changes.Changes(ctx, c.Resource)
	if err != nil {
		return err
	}
	for i := range all {
		isGap, err := r.moveChange(ctx, &all[i])
		if err != nil {
			return err
		}
		if isGap {
			return domain.Errorf(domain.Unavailable, "change %d of %s is not visible yet", all[i].Version-1, c.Resource)
		}
		if all[i].Version == c.Version {
			return nil
		}
	}
	if c.Version > 0 {
		return domain.Errorf(domain.Unavailable, "change %d of %s is not visible yet", c.Version, c.Resource)
	}
	return nil
}

// Notify publishes the notice that a watched bundle was dequeued or removed. It may be
// repeated: a version is published once. The event belongs to the trace of the Peek that opened
// the bundle. Notify fails with Unavailable until the previous version is in the stream.
func (r *Relay) Notify(ctx context.Context, n domain.Notice) error {
	c := domain.Change{Resource: domain.BundleOf(n.Recipient, n.Bundle), Version: n.Version, Event: n.Event(), At: n.Since}
	isGap, err := r.appendChange(domain.WithTraceContext(ctx, n.Peeked), &c)
	if err == nil && isGap {
		err = domain.Errorf(domain.Unavailable, "the change of bundle %s before version %d was not published yet", n.Bundle, n.Version)
	}
	return err
}

// moveChange appends a change to the stream and removes it. isGap reports that earlier changes
// are missing in the stream.
func (r *Relay) moveChange(ctx context.Context, c *domain.Change) (isGap bool, err error) {
	if isGap, err = r.appendChange(ctx, c); err != nil || isGap {
		return isGap, err
	}
	return false, r.changes.RemoveChange(ctx, *c)
}

// appendChange appends a change to the stream. isGap reports that earlier changes are missing
// there.
func (r *Relay) appendChange(ctx context.Context, c *domain.Change) (isGap bool, err error) {
	stream, messages := c.Resource.Stream(), []domain.Message{c.Message()}
	appended, err := r.streams.Append(ctx, stream, messages)
	if err != nil {
		return false, err
	}
	switch appended[0].Outcome {
	case repository.AppendGap:
		return true, nil
	case repository.AppendedNow:
		r.published(stream, messages, appended)
	case repository.AppendDuplicate, repository.AppendConflict: // the change is in the stream already
	}
	return false, nil
}

func (r *Relay) logWarning(ctx context.Context, what string, err error, attrs ...slog.Attr) {
	if ctx.Err() == nil {
		r.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "changes of resources are not published for now",
			append(attrs, slog.String("what", what), slog.String("error", err.Error()))...)
	}
}
