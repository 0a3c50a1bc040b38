package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// clone returns a copy of g that can be changed and written in its place.
func (g *gate) clone() *gate {
	c := *g
	c.At = maps.Clone(g.At)
	if c.At == nil {
		c.At = make(map[cabinetName]place)
	}
	c.ETag = ""
	return &c
}

// Add implements repository.Bundles.
func (r *Repository) Add(ctx context.Context, bundle domain.Bundle, from repository.Run) (domain.Bundle, error) {
	run, ok := from.(*run)
	if !ok {
		return bundle, domain.Errorf(domain.Invalid, "add bundle: the run is not of this store")
	}
	if bundle.Count < 1 || bundle.Count > run.yielded {
		return bundle, domain.Errorf(domain.Invalid, "add bundle: it takes %d events of the %d that the run has yielded", bundle.Count, run.yielded)
	}
	if bundle.Opened.IsZero() {
		bundle.Opened = r.opts.Clock().UTC().Truncate(time.Millisecond)
	}
	o := r.begin("peek")
	operation := r.newID()
	if run.gate == nil { // of an open bundle, so there is nothing to open
		doc := newBundleDoc(&bundle, operation, nil, 0)
		err := o.whyNotAdded(ctx, doc, &failure{err: errors.New("the group has an open bundle")})
		return bundle, classified("open bundle "+doc.ID, err)
	}
	ranges := run.ranges(bundle.Count)
	doc := newBundleDoc(&bundle, operation, ranges, 0)
	if next := run.next(bundle.Count); next != nil {
		doc.NextSaved = millisOf(next.Saved)
		if end := ranges[len(ranges)-1]; end.To < run.limitOf(end.Drawer) {
			doc.Next = next.Sequence
		}
	}
	doc.Behind = run.behindNew(bundle.Count)
	doc.Before, doc.Start = run.gate.Last, run.gate.At[doc.Cabinet]
	opened := run.gate.clone()
	opened.Operation, opened.Generation = operation, run.gate.Generation+1
	opened.Open, opened.Opened, opened.First = doc.ID, bundle.Opened, bundle.First
	doc.openedBy(opened)

	_, err := o.batch(ctx, r.db.bundles, doc.Recipient, false, func(b *azcosmos.TransactionalBatch) {
		b.CreateItem(encoded(doc), nil)
		putInBatch(b, opened.ID, run.gate.ETag, encoded(opened))
	})
	if isRefused(err) {
		err = o.whyNotAdded(ctx, doc, failureOf(err))
	}
	if err != nil {
		return bundle, o.outcome(fmt.Sprintf("open bundle %s of %s", doc.ID, doc.Recipient), err)
	}
	return bundle, nil
}

// whyNotAdded tells a lost race from an id in use, and either from success: the
// batch may have been refused because it had been carried out before.
func (o *operation) whyNotAdded(ctx context.Context, doc *bundleDoc, refused *failure) error {
	lost := domain.Errorf(domain.Conflict, "the group moved on since it was read: %w", refused)
	if refused.operation != 0 {
		return lost // the gate's condition; the bundle was not there
	}
	var stored bundleDoc
	_, err := o.read(ctx, o.r.db.bundles, doc.Recipient, doc.ID, &stored)
	switch {
	case isNotFound(err):
		return lost // a stale read; the next look decides
	case err != nil:
		return err
	case stored.Operation != doc.Operation:
		return repository.ErrBundleIDInUse
	case stored.State != stateOpen:
		return lost // opened by this call, and dequeued by now
	}
	return nil
}

// encoded returns the JSON of a document, which always has one.
func encoded(doc any) []byte {
	b, err := json.Marshal(doc)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", doc, err)) // strings, numbers and times only
	}
	return b
}

// putInBatch creates an item, or replaces the one that has etag.
func putInBatch(b *azcosmos.TransactionalBatch, id string, etag azcore.ETag, doc []byte) {
	if etag == "" {
		b.CreateItem(doc, nil)
		return
	}
	b.ReplaceItem(id, doc, &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &etag})
}

// limitOf returns the slots of a drawer that the run knows to be filled.
func (r *run) limitOf(drawer string) int {
	for _, s := range r.parts {
		if s.Drawer == drawer {
			return s.To
		}
	}
	return 0
}

// Acknowledge implements repository.Bundles.
func (r *Repository) Acknowledge(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (repository.Acknowledged, error) {
	o := r.begin("dequeue")
	operation := r.newID()
	var closed repository.Acknowledged
	err := o.startOver(ctx, func() (err error) {
		closed, err = o.acknowledge(ctx, recipient, id, operation)
		return err
	})
	return closed, o.outcome("dequeue", err)
}

func errNotOpen(id domain.BundleID) error {
	return domain.Errorf(domain.NotFound, "bundle %s is not open for this actor", id)
}

func (o *operation) acknowledge(ctx context.Context, recipient domain.ActorID, id domain.BundleID, operation string) (closed repository.Acknowledged, err error) {
	doc, gates, err := o.bundleAndGates(ctx, recipient, id)
	if err == nil && anyFrozen(gates) {
		err = repository.ErrFrozen
	}
	if err != nil {
		return closed, err
	}
	if doc == nil {
		return closed, o.whyNotOpen(ctx, recipient, id, gates)
	}
	bundle, err := doc.bundle()
	if err != nil {
		return closed, err
	}
	closed.Bundle = bundle
	if doc.State != stateOpen {
		if doc.Operation == operation {
			closed.Behind = o.r.behindDequeued(recipient, doc, gates)
			return closed, nil
		}
		return closed, o.whyNotOpen(ctx, recipient, id, gates)
	}
	g := gates[bundle.Group]
	if g == nil || g.Open != doc.ID {
		return closed, errMoved // the two contradict each other: they were read at different times
	}
	if bundle.IsUnanswered() {
		return closed, o.whyUnanswered(ctx, recipient, id)
	}
	dequeued, through := doc.closed(stateDequeued, operation, o.r.opts.Retention), g.through(doc, operation)
	notice := newNotice(doc, through, &bundle, o.r.opts.Clock())
	_, err = o.batch(ctx, o.r.db.bundles, recipient.String(), false, func(b *azcosmos.TransactionalBatch) {
		putInBatch(b, doc.ID, doc.etag, encoded(dequeued))
		putInBatch(b, g.ID, g.ETag, encoded(through))
		if notice != nil {
			b.CreateItem(encoded(notice), nil)
		}
	})
	if isRefused(err) {
		return closed, errMoved // by another Dequeue, or by this one: the next look tells
	}
	if err != nil {
		return closed, err
	}
	o.r.hints.afterDequeue(bundle.Cabinet, doc, through.At[doc.Cabinet])
	if doc.Next > 0 {
		o.r.known.sawFirst(bundle.Cabinet, through.At[doc.Cabinet], doc.Next)
	}
	closed.Behind = o.r.behindDequeued(recipient, doc, gates)
	return closed, nil
}

// whyUnanswered says of a bundle that looks unanswered that it is, unless that is
// but an old copy of it.
func (o *operation) whyUnanswered(ctx context.Context, recipient domain.ActorID, id domain.BundleID) error {
	if o.r.db.readsMayBeStale() {
		doc, err := o.openNow(ctx, recipient, id)
		if domain.KindOf(err) == domain.NotFound || err == nil && doc.Object != "" {
			return errMoved // answered, or closed, perhaps by this very call
		}
		if err != nil {
			return err
		}
	}
	return repository.ErrUnanswered
}

// whyNotOpen says of a bundle that does not look open that it is not, once the
// gates prove it: it may have been opened, or opened again by a Replay, since the
// moment that the copy shows.
func (o *operation) whyNotOpen(ctx context.Context, recipient domain.ActorID, id domain.BundleID, gates map[domain.Group]*gate) error {
	if o.r.db.readsMayBeStale() {
		if err := o.confirm(ctx, recipient, gates); err != nil {
			return err
		}
	}
	for _, g := range gates {
		if g.Open == id.String() {
			return errMoved
		}
	}
	return errNotOpen(id)
}

// bundleAndGates reads a bundle, nil if there is none, and all gates of its
// recipient, side by side.
func (o *operation) bundleAndGates(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (*bundleDoc, map[domain.Group]*gate, error) {
	doc := &bundleDoc{}
	gates := make(map[domain.Group]*gate)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		etag, err := o.read(ctx, o.r.db.bundles, recipient.String(), id.String(), doc)
		if isNotFound(err) {
			doc, err = nil, nil
			return err
		}
		if err == nil {
			doc.etag = etag
		}
		return err
	})
	g.Go(func() error { return o.readGates(ctx, recipient, o.r.opts.Groups.All(), gates) })
	err := g.Wait()
	return doc, gates, err
}

// openedBy notes which generation of its gate has opened d, for a bundle that leaves
// a notice whenever it is closed.
func (d *bundleDoc) openedBy(g *gate) {
	if d.Content == string(domain.Request) {
		d.Opening = g.Generation
	}
}

// closed returns d as it is once it is no longer open. Cosmos removes it when it
// has been that for the time of retention.
func (d *bundleDoc) closed(state, operation string, retention time.Duration) *bundleDoc {
	c := *d
	if retention > 0 {
		c.TTL = int(max(retention.Round(time.Second)/time.Second, 1))
	}
	c.State, c.Operation = state, operation
	return &c
}

// through returns g as it is once bundle d has passed it.
func (g *gate) through(d *bundleDoc, operation string) *gate {
	c := g.clone()
	end := d.Ranges[len(d.Ranges)-1]
	c.Operation, c.Generation = operation, g.Generation+1
	c.Open, c.Opened, c.First, c.Last = "", time.Time{}, 0, d.ID
	at := place{
		Ordinal: end.Ordinal, Slot: end.To, Sequence: d.Last,
		Total: g.At[d.Cabinet].Total + int64(d.Count), NextSaved: d.NextSaved,
	}
	if doubt := g.At[d.Cabinet].Doubt; doubt > d.Last {
		at.Doubt = doubt
	}
	c.At[d.Cabinet] = at
	return c
}

// confirm proves by conditional writes that the gates are as they were read, so
// that a bundle that none of them has open is not open. It writes those too
// that were not there, for a stale read may have missed one.
func (o *operation) confirm(ctx context.Context, recipient domain.ActorID, gates map[domain.Group]*gate) error {
	_, err := o.batch(ctx, o.r.db.bundles, recipient.String(), false, func(b *azcosmos.TransactionalBatch) {
		for _, group := range o.r.opts.Groups.All() {
			g := gates[group]
			confirmed := g.clone()
			confirmed.Generation++
			confirmed.Operation = o.r.newID()
			putInBatch(b, g.ID, g.ETag, encoded(confirmed))
		}
	})
	if isRefused(err) {
		return errMoved
	}
	return err
}
