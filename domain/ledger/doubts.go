package ledger

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Doubts is a store of objects that also settles doubts about their current states. Ingest collects
// the names of objects in doubt. Run requests the state of each of these objects from its source, and
// stores the state as an event with the reason Confirmed.
//
//	Ingest ─▶ names of objects in doubt ─▶ Run: read the object, request its state, ingest
//
// The names are stored only in memory, and their number is limited. An object whose state was not
// requested remains in doubt until its next event, or until a crawl finds that it has changed.
type Doubts struct {
	repository.Objects
	source repository.Source
	opts   Options

	names   chan domain.ObjectName
	mu      sync.Mutex
	waiting map[domain.ObjectName]struct{} // the names that are in the channel names
}

const (
	maxDoubts      = 1000 // maximum number of names that wait for Run
	maxRequests    = 4    // maximum number of requests for one object, which may change repeatedly, or whose store may not respond
	firstPause     = time.Second
	settleDeadline = 2 * time.Minute
)

// NewDoubts returns a Doubts that stores events in the store objects, and requests the states of
// objects in doubt from source.
func NewDoubts(objects repository.Objects, source repository.Source, opts Options) *Doubts {
	return &Doubts{
		Objects: objects, source: source, opts: opts.withDefaults(),
		names: make(chan domain.ObjectName, maxDoubts), waiting: make(map[domain.ObjectName]struct{}),
	}
}

// Ingest implements [repository.Objects].
func (d *Doubts) Ingest(ctx context.Context, reports []repository.ObjectReport) ([]repository.ObjectResult, error) {
	results, err := d.Objects.Ingest(ctx, reports)
	for i := range results {
		if results[i].Doubt {
			d.addDoubt(reports[i].Name)
		}
	}
	return results, err
}

// addDoubt queues an object's name for Run, unless the queue is full.
func (d *Doubts) addDoubt(name domain.ObjectName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, waits := d.waiting[name]; waits {
		return
	}
	select {
	case d.names <- name:
		d.waiting[name] = struct{}{}
	default:
		d.opts.Logger.Warn("too many objects are in doubt; this object is not checked against its store", "bucket", name.Bucket(), "key", domain.Shorten(name.Key()))
	}
}

// Run requests the states of the queued objects, one after another, until ctx ends.
func (d *Doubts) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-d.names:
			d.mu.Lock()
			delete(d.waiting, name) // delete before the read: if an event arrives during the read, Ingest must queue the name again
			d.mu.Unlock()
			if err := d.settleDoubt(ctx, name); err != nil && ctx.Err() == nil {
				d.opts.Logger.Warn("the state of an object is in doubt, and its store cannot confirm it", "bucket", name.Bucket(), "key", domain.Shorten(name.Key()), "error", err)
			}
		}
	}
}

// settleDoubt requests an object's state from the source, and stores it. If the object changes
// during the request, settleDoubt repeats the request, because the change may be newer than the
// state.
func (d *Doubts) settleDoubt(ctx context.Context, name domain.ObjectName) (err error) {
	ctx, cancel := context.WithTimeout(ctx, settleDeadline)
	defer cancel()
	pause, hasChanged := firstPause, false
	for range maxRequests {
		before, err := d.Object(ctx, name)
		if err != nil || !before.Doubt && !hasChanged {
			return err
		}
		isStored, failure := d.confirmState(ctx, &before)
		if err = failure; err == nil {
			if !isStored {
				return nil
			}
			after, err := d.Object(ctx, name)
			if hasChanged = err == nil && after.Events > before.Events+1; !hasChanged {
				return err
			}
			continue
		}
		if kind := domain.KindOf(err); kind != domain.Busy && kind != domain.Unavailable && kind != domain.Uncertain {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
			pause *= 4
		}
	}
	return err
}

// confirmState requests an object's state from the source, and stores it as an event. It returns
// false if the object remains in doubt.
func (d *Doubts) confirmState(ctx context.Context, o *domain.Object) (isStored bool, err error) {
	found := d.opts.Clock()
	stored, err := d.source.Stat(ctx, o.Name, nil)
	isGone := domain.KindOf(err) == domain.NotFound
	switch {
	case errors.Is(err, repository.ErrNoStore), err == nil && stored.ETag == "": // the ETag can be missing: objects in a folder have none
		return false, nil
	case err != nil && !isGone:
		return false, err
	}
	event, isKnown := o.Confirm(stored.ETag, found)
	if !isKnown {
		d.opts.Logger.Debug("the store has content that no event has reported, of an object whose state is in doubt", "bucket", o.Name.Bucket(), "key", domain.Shorten(o.Name.Key()))
		return false, nil
	}
	results, err := d.Objects.Ingest(ctx, []repository.ObjectReport{{Name: o.Name, ObjectEvent: event}})
	if err == nil {
		err = results[0].Err
	}
	return err == nil, err
}
