package ledger

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Doubts is a store of objects whose Ingest also collects the objects in doubt. Run asks their
// source for the current state, and stores it as another event, of reason Confirmed.
//
//	Ingest ─▶ names of objects in doubt ─▶ Run: read the object, ask the store, ingest
//
// The names are in memory only, and their number is limited. An object whose state was not
// requested remains in doubt until its next event, or until a crawl finds it changed.
type Doubts struct {
	repository.Objects
	source repository.Source
	opts   Options

	names   chan domain.ObjectName
	mu      sync.Mutex
	waiting map[domain.ObjectName]struct{} // the objects in names
}

const (
	maxDoubts      = 1000 // limit for the waiting names
	maxAsked       = 4    // limit for the requests for an object that changes meanwhile, or whose store does not answer
	firstAskPause  = time.Second
	settleDeadline = 2 * time.Minute
)

// WatchDoubts returns Doubts over objects that ask source for the current state.
func WatchDoubts(objects repository.Objects, source repository.Source, opts Options) *Doubts {
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

// addDoubt queues an object for Run, unless the queue is full.
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
		d.opts.Logger.Warn("too many objects are in doubt; this object is not checked against its store", "bucket", name.Bucket(), "key", domain.Clip(name.Key()))
	}
}

// Run asks for one object after the other until ctx ends.
func (d *Doubts) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-d.names:
			d.mu.Lock()
			delete(d.waiting, name) // an event that arrives from now on may be missing in the next read
			d.mu.Unlock()
			if err := d.settleDoubt(ctx, name); err != nil && ctx.Err() == nil {
				d.opts.Logger.Warn("the state of an object is in doubt, and its store cannot confirm it", "bucket", name.Bucket(), "key", domain.Clip(name.Key()), "error", err)
			}
		}
	}
}

// settleDoubt asks the source for the state of an object. It asks again if the object has
// changed meanwhile, because the change may be later than the answer.
func (d *Doubts) settleDoubt(ctx context.Context, name domain.ObjectName) (err error) {
	ctx, cancel := context.WithTimeout(ctx, settleDeadline)
	defer cancel()
	pause, hasChanged := firstAskPause, false
	for range maxAsked {
		before, err := d.Object(ctx, name)
		if err != nil || !before.Doubt && !hasChanged {
			return err
		}
		isStored, failure := d.askStore(ctx, &before)
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

// askStore asks the source for the state of an object, and ingests the answer. It returns false
// if the object is still in doubt.
func (d *Doubts) askStore(ctx context.Context, o *domain.Object) (isStored bool, err error) {
	found := d.opts.Clock()
	stored, err := d.source.Stat(ctx, o.Name, nil)
	isGone := domain.KindOf(err) == domain.NotFound
	switch {
	case errors.Is(err, repository.ErrNoStore), err == nil && stored.ETag == "": // as in a folder
		return false, nil
	case err != nil && !isGone:
		return false, err
	}
	event, isKnown := o.Confirm(stored.ETag, found)
	if !isKnown {
		d.opts.Logger.Debug("the store has content that no event has reported, of an object whose state is in doubt", "bucket", o.Name.Bucket(), "key", domain.Clip(o.Name.Key()))
		return false, nil
	}
	results, err := d.Objects.Ingest(ctx, []repository.ObjectReport{{Name: o.Name, ObjectEvent: event}})
	if err == nil {
		err = results[0].Err
	}
	return err == nil, err
}
