package cosmos

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

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
		return o.notOpen(ctx, recipient, id, operation, gates)
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
		return o.notOpen(ctx, recipient, id, operation, gates)
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

// notOpen is what a Dequeue comes to that sees no open bundle: none, unless an
// earlier batch of its own has closed it, which an old copy does not show.
func (o *operation) notOpen(ctx context.Context, recipient domain.ActorID, id domain.BundleID, operation string, gates map[domain.Group]*gate) (closed repository.Acknowledged, err error) {
	err = o.whyNotOpen(ctx, recipient, id, gates)
	if domain.KindOf(err) != domain.NotFound || !o.inDoubt() {
		return closed, err
	}
	doc := &bundleDoc{}
	switch perr := o.patch(ctx, o.r.db.bundles, recipient.String(), id.String(), changesNothing(bundleDocument), doc); {
	case isNotFound(perr) || perr == nil && doc.Operation != operation:
		return closed, err
	case perr != nil:
		return closed, perr
	}
	closed.Bundle, err = doc.bundle()
	closed.Behind = o.r.behindDequeued(recipient, doc, gates)
	return closed, err
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

// bundleAndGates reads a bundle, nil if none exists, and all gates of its
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
	at.Unknown = g.At[d.Cabinet].Unknown
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
