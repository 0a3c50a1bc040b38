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

// A Relay publishes the stored changes of resources to their streams, and then deletes the stored
// changes. It may publish a change more than once, but the stream contains each change once.
//
// Every node runs a Relay, which publishes the changes that this node stores. One node at a time
// searches for changes that other nodes have not published.
type Relay struct {
	changes   repository.Changes
	streams   repository.Streams
	published func(domain.StreamName, []domain.Message, []repository.Appended)
	opts      RelayOptions

	due chan domain.Change // a Change with Version 0 requests that all changes of its resource are published
}

// RelayOptions configures a Relay. The zero value is valid.
type RelayOptions struct {
	Parallel int // maximum number of changes that are published concurrently; default 32
	// SearchOthers, if set, is called after each search for unpublished changes. It searches for
	// changes that this Relay does not publish, and reports whether it found any.
	SearchOthers   func(ctx context.Context) bool
	SearchInterval func(isIdle bool) time.Duration  // pause between searches for unpublished changes; default: about 10 s, or 30 s after a search that found none
	Backoff        func(failures int) time.Duration // pause between attempts to publish a change; default: 100 ms, doubled after each failure
	Clock          func() time.Time                 // default: time.Now
	Random         func() uint64                    // source for the jitter of pauses; default: rand.Uint64
	Logger         *slog.Logger                     // default: a logger that discards all messages
}

// NewRelay returns a Relay that observes changes, and calls published after each append. It
// publishes nothing until Run is called.
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
	if opts.SearchInterval == nil {
		opts.SearchInterval = func(isIdle bool) time.Duration {
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

// maxDue is the maximum number of queued changes. Changes that do not fit are found by a later
// search.
const maxDue = 10_000

// publishSoon queues a stored change without blocking.
func (r *Relay) publishSoon(c domain.Change) {
	select {
	case r.due <- c:
	default: // the queue is full; a search finds the change later
	}
}

// Run publishes changes until ctx ends, and returns nil. If a change cannot be published, it
// remains stored, and a later search finds it.
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
		timer := time.NewTimer(r.opts.SearchInterval(isIdle))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// turnDuration is the time after a search during which other nodes do not search for unpublished
// changes. It is shorter than the interval between two searches of one node.
const turnDuration = 8 * time.Second

// publishOverdue queues resources whose changes were not published, and reports whether it found
// any. If another node has just searched, it does nothing.
func (r *Relay) publishOverdue(ctx context.Context) bool {
	const limit, minAge = 1000, 10 * time.Second
	switch isTurn, err := r.changes.TakeTurn(ctx, r.opts.Clock(), turnDuration); {
	case err != nil: // search anyway, in case no other node does
		r.logWarning(ctx, "take the turn to look for changes", err)
	case !isTurn:
		return false
	}
	found, err := r.changes.Unpublished(ctx, r.opts.Clock().Add(-minAge), limit)
	if err != nil {
		r.logWarning(ctx, "look for changes", err)
	}
	for _, resource := range found {
		r.publishSoon(domain.Change{Resource: resource})
	}
	hasOthers := r.opts.SearchOthers != nil && r.opts.SearchOthers(ctx)
	return len(found) > 0 || hasOthers
}

// maxAttempts is the maximum number of attempts to publish a queued change. After that, the change
// waits until a search finds it.
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

// Publish publishes a change, and earlier changes that the stream lacks. If c.Version is 0, it
// publishes all changes of the resource. Run calls Publish for the changes that the Relay observes
// or finds. The call may be repeated.
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

// Notify publishes the notice that a watched bundle was dequeued or removed. The call may be
// repeated, because each version is published once. The event belongs to the trace of the Peek that
// opened the bundle. Notify fails with Unavailable until the stream contains the previous version.
func (r *Relay) Notify(ctx context.Context, n domain.Notice) error {
	c := domain.Change{Resource: domain.BundleOf(n.Recipient, n.Bundle), Version: n.Version, Event: n.Event(), At: n.Since}
	isGap, err := r.appendChange(domain.WithTraceContext(ctx, n.Peeked), &c)
	if err == nil && isGap {
		err = domain.Errorf(domain.Unavailable, "the change of bundle %s before version %d was not published yet", n.Bundle, n.Version)
	}
	return err
}

// moveChange appends a change to the stream, and then deletes the stored change. isGap reports that
// the stream lacks earlier changes; if so, moveChange does nothing.
func (r *Relay) moveChange(ctx context.Context, c *domain.Change) (isGap bool, err error) {
	if isGap, err = r.appendChange(ctx, c); err != nil || isGap {
		return isGap, err
	}
	return false, r.changes.RemoveChange(ctx, *c)
}

// appendChange appends a change to the stream. isGap reports that the stream lacks earlier changes;
// if so, appendChange does nothing.
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
	case repository.AppendDuplicate, repository.AppendConflict: // the stream already contains the change
	}
	return false, nil
}

func (r *Relay) logWarning(ctx context.Context, what string, err error, attrs ...slog.Attr) {
	if ctx.Err() == nil {
		r.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "changes of resources are not published for now",
			append(attrs, slog.String("what", what), slog.String("error", err.Error()))...)
	}
}
