package original

import (
	"context"
	"sync/atomic"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/bench/baseline/internal/items"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Save implements [repository.DataAvailable].
func (r *Repository) Save(ctx context.Context, to domain.ActorID, events []domain.Event) (repository.Saved, error) {
	if err := items.Check(to, r.groups, events); err != nil {
		return repository.Saved{}, err
	}
	return r.Ingest(ctx, events)
}

// An ingestedEvent is an event of a batch with its sequence number.
type ingestedEvent struct {
	*domain.Event
	number  domain.Sequence
	payload repository.Section
	became  saveOutcome
}

// A saveOutcome is the result of saving an event.
type saveOutcome int

const (
	undecided saveOutcome = iota
	accepted
	duplicate
	conflicting
)

// Ingest saves a batch of events, which may be for several recipients. The original
// did this every few seconds with up to 125 events from its queue. The events must
// pass Check.
func (r *Repository) Ingest(ctx context.Context, batch []domain.Event) (repository.Saved, error) {
	payloads, err := items.PutPayloads(ctx, r.options.Content, batch)
	if err != nil || len(batch) == 0 {
		return repository.Saved{}, err
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return repository.Saved{}, domain.Errorf(domain.Unavailable, "save: wait for a turn: %w", ctx.Err())
	}
	last, err := r.Watermark(ctx, domain.ActorID{})
	if err != nil {
		return repository.Saved{}, err
	}
	events := make([]ingestedEvent, len(batch))
	cabinets := make(map[domain.CabinetKey][]*ingestedEvent)
	for i := range batch {
		last++
		events[i] = ingestedEvent{Event: &batch[i], number: last, payload: payloads[i]}
		key := batch[i].Cabinet()
		cabinets[key] = append(cabinets[key], &events[i])
	}
	all, saving := errgroup.WithContext(ctx)
	for key, events := range cabinets {
		all.Go(func() error { return r.saveCabinet(saving, key, events) })
	}
	if err := all.Wait(); err != nil {
		return repository.Saved{}, err
	}
	var saved repository.Saved
	for i := range events {
		switch events[i].became {
		case accepted:
			saved.Accepted++
		case duplicate:
			saved.Duplicates++
		default:
			saved.Conflicts = append(saved.Conflicts, i)
		}
	}
	return saved, r.catalog.Upsert(ctx, watermarkKey, watermark{watermarkID, watermarkKey, last})
}

// saveCabinet appends events to a cabinet.
func (r *Repository) saveCabinet(ctx context.Context, key domain.CabinetKey, events []*ingestedEvent) error {
	d, count, err := r.lastDrawer(ctx, key)
	if err != nil {
		return err
	}
	for i := 0; i < len(events); {
		if d == nil {
			d = &drawerItem{ID: uuid.NewString(), PartitionKey: cabinetKey(key), OrderBy: events[i].number}
			if err := r.cabinets.Create(ctx, d.PartitionKey, d); err != nil {
				return err
			}
		}
		inserted, err := r.insert(ctx, events[i], d.ID)
		if err != nil {
			return err
		}
		if !inserted {
			i++
			continue
		}
		if err := r.point(ctx, key, d, count, events[i]); err != nil {
			return err
		}
		i++
		count++
		filled, err := r.fill(ctx, events[i:i+min(len(events)-i, r.options.DrawerCapacity-count)], d.ID)
		if err != nil {
			return err
		}
		// fill returns the number of new events. If some events are duplicates, the loop advances
		// by too few events, and repeats the last ones, which are then detected as duplicates.
		i += filled
		if count += filled; count == r.options.DrawerCapacity {
			d, count = nil, 0
		}
	}
	return nil
}

// lastDrawer returns the last drawer of a cabinet and its number of events, or nil if that drawer
// is full or missing.
func (r *Repository) lastDrawer(ctx context.Context, key domain.CabinetKey) (*drawerItem, int, error) {
	d, found, err := items.First[drawerItem](ctx, r.cabinets, cabinetKey(key), items.Query{
		Text:   "SELECT TOP 1 * FROM c WHERE c.position < @capacity ORDER BY c.orderBy DESC",
		Params: map[string]any{"@capacity": r.options.DrawerCapacity},
	})
	if err != nil || !found {
		return nil, 0, err
	}
	count, _, err := items.First[int](ctx, r.cabinets, d.ID, items.Query{Text: "SELECT VALUE COUNT(1) FROM c"})
	if err != nil || count >= r.options.DrawerCapacity {
		return nil, 0, err
	}
	return &d, count, nil
}

// point writes a catalog entry for an event if no unacknowledged event precedes it in its drawer.
// It reads the drawer after the event is written. So either point finds the change of a concurrent
// Dequeue, or that Dequeue finds the event.
func (r *Repository) point(ctx context.Context, key domain.CabinetKey, d *drawerItem, before int, e *ingestedEvent) error {
	now, _, err := items.First[drawerItem](ctx, r.cabinets, d.PartitionKey, items.Query{
		Text:   "SELECT * FROM c WHERE c.id = @id",
		Params: map[string]any{"@id": d.ID},
	})
	if err != nil || now.Position != before {
		return err
	}
	return r.upsertEntry(ctx, newEntry(key, e.number))
}

func newEntry(key domain.CabinetKey, next domain.Sequence) catalogEntry {
	return catalogEntry{uuid.NewString(), catalogKey(key.Recipient.String(), key.Origin.String()), key.ContentType.String(), next}
}

func (r *Repository) upsertEntry(ctx context.Context, e catalogEntry) error {
	return r.catalog.Upsert(ctx, e.PartitionKey, e)
}

// fill inserts events into a drawer, many concurrently, and returns the number of new ones.
func (r *Repository) fill(ctx context.Context, events []*ingestedEvent, drawer string) (int, error) {
	var filled atomic.Int64
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(concurrentInserts)
	for _, e := range events {
		all.Go(func() error {
			inserted, err := r.insert(ctx, e, drawer)
			if inserted {
				filled.Add(1)
			}
			return err
		})
	}
	err := all.Wait()
	return int(filled.Load()), err
}

// insert puts an event into a drawer, unless it was received before.
func (r *Repository) insert(ctx context.Context, e *ingestedEvent, drawer string) (bool, error) {
	found, err := r.receive(ctx, e, drawer)
	if err != nil {
		return false, err
	}
	if e.became == undecided {
		e.became = found
	}
	if found != accepted {
		return false, nil
	}
	return true, r.cabinets.Create(ctx, drawer, newEvent(e, drawer))
}
