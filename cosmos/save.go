package cosmos

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Save implements repository.DataAvailable.
func (r *Repository) Save(ctx context.Context, recipient domain.ActorID, events []domain.Event) (repository.Saved, error) {
	for i := range events {
		if events[i].Recipient != recipient {
			return repository.Saved{}, domain.Errorf(domain.Invalid, "save: event %d is for %s, not for %s", i, events[i].Recipient, recipient)
		}
		if _, err := r.opts.Groups.Of(events[i].Origin); err != nil {
			return repository.Saved{}, fmt.Errorf("save: event %d: %w", i, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return repository.Saved{}, domain.Errorf(domain.Unavailable, "save: %w", err)
	}
	if len(events) == 0 {
		return repository.Saved{}, nil
	}
	w := r.writers.acquire(recipient)
	defer r.writers.release(w)
	return w.save(ctx, newPending(events))
}

// round carries out the Saves of one batch.
func (w *writer) round(ctx context.Context) {
	if w.reserved == nil {
		w.take()
	}
	o := w.r.begin("save")
	err := o.startOver(ctx, func() error { return w.try(ctx, o) })
	w.index.forget()
	if err != nil {
		// What a plan has left behind is undone by whoever comes next.
		batch := w.batch
		w.head, w.reserved, w.batch = nil, nil, nil
		answer(batch, classified("save for "+w.recipient.String(), err))
	}
}

// try takes the batch from wherever it stands to its commit.
func (w *writer) try(ctx context.Context, o *operation) error {
	if err := w.readHead(ctx, o); err != nil {
		return err
	}
	p := w.reserved
	if p == nil {
		if w.head.Intent != nil {
			return w.rollback(ctx, o)
		}
		if err := w.index.refresh(ctx, o, w.head); err != nil {
			return err
		}
		fresh, err := w.sift(ctx, o, w.batch, nil)
		if err != nil {
			return err
		}
		if len(fresh) == 0 {
			answer(w.batch, nil)
			w.batch = nil
			return nil
		}
		p = planSave(w.head, fresh, w.r.opts.DrawerCapacity, w.r.owner, w.r.newID)
		if err := w.writeHead(ctx, o, w.head.withIntent(p)); err != nil {
			return err
		}
	}
	w.reserved = nil // from here on, whoever starts over finds the intent in the head
	if err := w.carryOut(ctx, o, p); err != nil {
		if errors.Is(err, errMoved) {
			w.head = nil
		}
		return err
	}
	return w.commit(ctx, o, p)
}

// sift returns the events of batch that are new to the recipient, in order, and
// notes in each Save what becomes of the others. before are events that precede
// them and are not in the index yet.
func (w *writer) sift(ctx context.Context, o *operation, batch []*pending, before *plan) ([]numbered, error) {
	seen := make(map[domain.EventID]domain.Digest)
	if before != nil {
		for _, events := range before.events {
			for _, e := range events {
				seen[e.ID] = e.digest
			}
		}
	}
	var fresh []numbered
	cabinets := w.cabinetsWith(before)
	for _, p := range batch {
		p.saved, p.refused = repository.Saved{}, cabinets.take(w.recipient, p.events)
		if p.refused != nil {
			continue
		}
		for i := range p.events {
			e := &p.events[i]
			digest, known := seen[e.ID]
			if !known {
				var err error
				if digest, known, err = w.index.lookup(ctx, o, e.ID); err != nil {
					return nil, err
				}
			}
			switch {
			case !known:
				seen[e.ID] = p.digests[i]
				fresh = append(fresh, numbered{Event: e, digest: p.digests[i]})
				p.saved.Accepted++
				p.attempted[i] = true
			case digest != p.digests[i]:
				p.saved.Conflicts = append(p.saved.Conflicts, i)
			case p.attempted[i]:
				p.saved.Accepted++ // by an attempt whose commit was carried out although nobody was told
			default:
				p.saved.Duplicates++
			}
		}
	}
	return fresh, nil
}

// maxCabinets is how many cabinets a recipient can have. The head and the gates
// name them all, and a document takes 2 MB.
const maxCabinets = 1000

// cabinetNames are the cabinets that a recipient has, or is about to have.
type cabinetNames map[cabinetName]bool

func (w *writer) cabinetsWith(p *plan) cabinetNames {
	names := make(cabinetNames, len(w.head.Cabinets))
	for name := range w.head.Cabinets {
		names[name] = true
	}
	if p != nil {
		for _, part := range p.intent.Parts {
			names[part.Cabinet] = true
		}
	}
	return names
}

// take adds the cabinets of events, or none if they would be too many: a content
// type is a kind of data, and whoever makes one for every event has misread that.
func (names cabinetNames) take(recipient domain.ActorID, events []domain.Event) error {
	fresh := make(cabinetNames)
	for i := range events {
		if name := nameOf(events[i].Cabinet()); !names[name] {
			fresh[name] = true
		}
	}
	if len(fresh) > 0 && len(names)+len(fresh) > maxCabinets {
		return domain.Errorf(domain.Invalid,
			"content type: %s has events of %d kinds (origin and content type) and would get %d more, but %d are the most; use one content type for one kind of data",
			recipient, len(names), len(fresh), maxCabinets)
	}
	maps.Copy(names, fresh)
	return nil
}

// commit makes p visible. If more Saves have gathered, the same write reserves
// for them.
func (w *writer) commit(ctx context.Context, o *operation, p *plan) error {
	done := w.batch
	w.batch = nil
	w.take()
	next := w.head.committed()
	var following *plan
	if len(w.batch) > 0 {
		fresh, err := w.sift(ctx, o, w.batch, p)
		if err == nil && len(fresh) > 0 {
			following = planSave(next, fresh, w.r.opts.DrawerCapacity, w.r.owner, w.r.newID)
			next = next.withIntent(following)
		}
	}
	if err := w.writeHead(ctx, o, next); err != nil {
		w.batch = append(done, w.batch...)
		return err
	}
	w.index.add(w.r, p)
	w.reserved = following
	answer(done, nil)
	return nil
}

// carryOut writes everything of p but its visibility.
func (w *writer) carryOut(ctx context.Context, o *operation, p *plan) error {
	if err := w.insert(ctx, o, p); err != nil {
		return err
	}
	empty, err := w.count(ctx, o, p)
	if err != nil {
		return err
	}
	return w.point(ctx, o, p, empty)
}

// readHead sees to it that w.head is one that the store held at some time.
func (w *writer) readHead(ctx context.Context, o *operation) error {
	if w.head != nil {
		return nil
	}
	w.reserved = nil
	h, err := o.readHead(ctx, w.recipient)
	w.head = h
	return err
}

// readHead returns the head of recipient; before the first Save it is empty.
func (o *operation) readHead(ctx context.Context, recipient domain.ActorID) (*head, error) {
	h := &head{}
	etag, err := o.read(ctx, o.r.db.catalog, headKey(recipient), headID, h)
	if isNotFound(err) {
		return &head{ID: headID, PartitionKey: headKey(recipient)}, nil
	}
	if err != nil {
		return nil, err
	}
	h.etag = etag
	return h, nil
}

// writeHead replaces w.head by h, or fails with errMoved if it is no longer the
// head. A refusal is a question: it may have been this very write, sent twice.
func (w *writer) writeHead(ctx context.Context, o *operation, h *head) error {
	h.Operation = w.r.newID()
	etag, err := o.put(ctx, w.r.db.catalog, h.PartitionKey, headID, w.head.etag, h)
	if isRefused(err) {
		stored, rerr := o.readHead(ctx, w.recipient)
		switch {
		case rerr != nil:
			err = rerr
		case stored.Operation == h.Operation:
			etag, err = stored.etag, nil
		default:
			err = errMoved
		}
	}
	if err != nil {
		w.head = nil
		return err
	}
	h.etag = etag
	w.head = h
	return nil
}
