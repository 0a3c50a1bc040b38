package single

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/messagehub/messagehub/bench/baseline/internal/items"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// eventsPerBatch is the maximum number of events in a batch. One operation of the batch writes the
// queue.
const eventsPerBatch = items.MaxBatch - 1

// Save implements [repository.DataAvailable].
func (r *Repository) Save(ctx context.Context, to domain.ActorID, events []domain.Event) (repository.Saved, error) {
	if err := items.Check(to, r.groups, events); err != nil {
		return repository.Saved{}, err
	}
	payloads, err := items.PutPayloads(ctx, r.options.Content, events)
	if err != nil || len(events) == 0 {
		return repository.Saved{}, err
	}
	s := &saveCall{r: r, to: to, now: r.options.Clock().UTC(), found: make(map[domain.EventID]domain.Digest)}
	if s.queue, err = r.readQueue(ctx, to); err != nil {
		return repository.Saved{}, err
	}
	for from := 0; from < len(events); from += eventsPerBatch {
		var batch []eventToStore
		for i := from; i < min(from+eventsPerBatch, len(events)); i++ {
			if c := (eventToStore{i, &events[i], payloads[i]}); s.recordIfNew(c) {
				batch = append(batch, c)
			}
		}
		if err := s.insertEvents(ctx, batch); err != nil {
			return repository.Saved{}, err
		}
	}
	slices.Sort(s.saved.Conflicts)
	return s.saved, nil
}

// A saveCall is the state of one call of Save. Only one goroutine may use it.
type saveCall struct {
	r     *Repository
	to    domain.ActorID
	now   time.Time
	queue *queueItem
	found map[domain.EventID]domain.Digest // digests of the events that were found so far: earlier events of this Save, and stored events
	saved repository.Saved
}

// An eventToStore is an event that may be new.
type eventToStore struct {
	index   int
	event   *domain.Event
	payload repository.Section
}

// recordIfNew reports whether c was not found before. It records a new event, and counts a
// duplicate or conflict.
func (s *saveCall) recordIfNew(c eventToStore) bool {
	earlier, again := s.found[c.event.ID]
	switch digest := c.event.Digest(); {
	case !again:
		s.found[c.event.ID] = digest
		return true
	case earlier == digest:
		s.saved.Duplicates++
	default:
		s.saved.Conflicts = append(s.saved.Conflicts, c.index)
	}
	return false
}

// insertEvents stores new events. It queries the stored events only after a rejected batch, because
// most batches have only new events.
func (s *saveCall) insertEvents(ctx context.Context, batch []eventToStore) error {
	for len(batch) > 0 {
		next := s.queue.clone()
		var b items.Batch
		for _, c := range batch {
			e := newEvent(c.event, c.payload, s.now)
			e.Sequence = next.countEvent(c.event, s.r.groups, s.now)
			b.Create(e)
		}
		next.putInto(&b)
		done, err := s.r.items.Batch(ctx, s.to.String(), b)
		switch {
		case err != nil:
			return err
		case done.Done:
			s.saved.Accepted += len(batch)
			s.queue = next
			s.queue.ETag = done.Last
			return nil
		case done.Refused < len(batch) && done.Status == http.StatusConflict:
			batch, err = s.removeStored(ctx, batch)
		case done.Refused == len(batch): // another caller has replaced the queue
			s.queue, err = s.r.readQueue(ctx, s.to)
		default:
			return domain.Errorf(domain.Unknown, "save: event %d was refused with status %d", batch[done.Refused].index, done.Status)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// countEvent counts an event and returns its sequence number.
func (q *queueItem) countEvent(e *domain.Event, groups domain.Groups, now time.Time) domain.Sequence {
	c := q.cabinetOf(e.Cabinet())
	if c == nil {
		group, _ := groups.GroupOf(e.Origin) // Check has verified the origin
		q.Cabinets = append(q.Cabinets, cabinetCount{Origin: e.Origin.String(), ContentType: e.ContentType.String(), Group: group.String()})
		c = &q.Cabinets[len(q.Cabinets)-1]
	}
	if c.countWaiting() == 0 {
		c.Since = now
	}
	c.Received++
	q.Last++
	return q.Last
}

// removeStored queries the stored events of a batch and records them. It returns the events that
// are not stored.
func (s *saveCall) removeStored(ctx context.Context, batch []eventToStore) ([]eventToStore, error) {
	ids := make([]string, len(batch))
	for i, c := range batch {
		ids[i] = c.event.ID.String()
	}
	query := items.Query{
		Text:   "SELECT c.id, c.digest FROM c WHERE c.recipient = @recipient",
		Params: map[string]any{"@recipient": s.to.String()},
	}
	query.AddIn("c.id", ids)
	stored, err := items.All[eventItem](ctx, s.r.items, s.to.String(), query)
	if err != nil {
		return nil, err
	}
	known := make(map[string]domain.Digest)
	for _, e := range stored {
		known[e.ID] = domain.Digest(e.Digest)
	}
	var left []eventToStore
	for _, c := range batch {
		digest, again := known[c.event.ID.String()]
		if !again {
			left = append(left, c)
			continue
		}
		s.found[c.event.ID] = digest
		s.recordIfNew(c)
	}
	return left, nil
}
