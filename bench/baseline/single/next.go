package single

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/bench/baseline/internal/items"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	// perPage is the number of events in a page. A larger page would make small bundles read more
	// events than they need; a smaller page would make large bundles need more requests.
	perPage = 1_000
	// perRun is the maximum number of events in a run for a new bundle.
	perRun = 60_000
)

// NextUnacknowledged implements [repository.DataAvailable].
func (r *Repository) NextUnacknowledged(ctx context.Context, recipient domain.ActorID, groups []domain.Group) (repository.Next, error) {
	q, err := r.readQueue(ctx, recipient)
	if err != nil {
		return repository.Next{}, err
	}
	requested := make([]string, len(groups))
	for i, g := range groups {
		requested[i] = g.String()
	}
	next := repository.Next{Waiting: q.backlogOf(requested, nil, 0).Events}
	switch {
	case q.Last == 0:
		return repository.Next{}, repository.ErrNoMailbox
	case next.Waiting == 0:
		return repository.Next{}, domain.ErrNoData
	}
	if open := q.findLongestOpen(requested); open != "" {
		b, err := r.readBundle(ctx, recipient, open)
		if err != nil {
			return repository.Next{}, err
		}
		next.Open, next.Run = &b, r.runOf(q, &b, requested)
		return next, nil
	}
	c, err := r.firstCabinet(ctx, q, requested)
	if err != nil {
		return repository.Next{}, err
	}
	next.Run, err = r.runFrom(q, c, requested)
	return next, err
}

// findLongestOpen returns the bundle of groups that has been open longest, or "" if no bundle is
// open.
func (q *queueItem) findLongestOpen(groups []string) string {
	var longest groupGate
	for _, group := range groups {
		g := q.Groups[group]
		if g.Open != "" && (longest.Open == "" || cmp.Or(g.Opened.Compare(longest.Opened), cmp.Compare(g.First, longest.First)) < 0) {
			longest = g
		}
	}
	return longest.Open
}

// firstCabinet returns the cabinet of groups with the earliest waiting event. At least one event
// must be waiting.
func (r *Repository) firstCabinet(ctx context.Context, q *queueItem, groups []string) (*cabinetCount, error) {
	var candidates []*cabinetCount
	for i := range q.Cabinets {
		if c := &q.Cabinets[i]; c.countWaiting() > 0 && slices.Contains(groups, c.Group) {
			candidates = append(candidates, c)
		}
	}
	if len(candidates) == 1 {
		return candidates[0], nil
	}
	numbers := make([]domain.Sequence, len(candidates))
	all, ctx := errgroup.WithContext(ctx)
	for i, c := range candidates {
		all.Go(func() error {
			number, found, err := items.First[domain.Sequence](ctx, r.items, q.Recipient, items.Query{
				Text:   "SELECT TOP 1 VALUE c.sequence FROM c" + inOrder,
				Params: c.rangeParameters(c.Position, q.Last),
			})
			if err == nil && !found {
				err = domain.Errorf(domain.Damaged, "queue of %s: %d events of %s wait behind number %d, but there is none", q.Recipient, c.countWaiting(), c.ContentType, c.Position)
			}
			numbers[i] = number
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	return candidates[slices.Index(numbers, slices.Min(numbers))], nil
}

// inOrder selects the events of a cabinet whose sequence numbers are greater than @after and at
// most @last.
const inOrder = " WHERE c.origin = @origin AND c.contentType = @contentType AND c.sequence > @after AND c.sequence <= @last ORDER BY c.sequence"

func (c *cabinetCount) rangeParameters(after, last domain.Sequence) map[string]any {
	return map[string]any{"@origin": c.Origin, "@contentType": c.ContentType, "@after": after, "@last": last}
}

// A cabinetRun is a range of events of a cabinet. Only one goroutine may use it.
type cabinetRun struct {
	r          *Repository
	queue      *queueItem
	key        domain.CabinetKey
	group      domain.Group
	cabinet    *cabinetCount
	generation int64 // generation of the group's gate
	requested  []string
	after      domain.Sequence // exclusive lower bound of the run's sequence numbers
	last       domain.Sequence // inclusive upper bound of the run's sequence numbers
	most       int
	yielded    []domain.Sequence // numbers of the events that were read, in any iteration
}

// runFrom returns a run of the waiting events of a cabinet.
func (r *Repository) runFrom(q *queueItem, c *cabinetCount, requested []string) (*cabinetRun, error) {
	key, err := items.ParseCabinet(q.Recipient, c.Origin, c.ContentType)
	if err != nil {
		return nil, domain.Errorf(domain.Damaged, "queue of %s: %w", q.Recipient, err)
	}
	group, err := r.groups.GroupOf(key.Origin)
	return &cabinetRun{
		r: r, queue: q, key: key, group: group, cabinet: c, generation: q.Groups[c.Group].Generation, requested: requested,
		after: c.Position, last: q.Last, most: perRun,
	}, err
}

// runOf returns the run of an open bundle.
func (r *Repository) runOf(q *queueItem, b *domain.Bundle, requested []string) *cabinetRun {
	return &cabinetRun{
		r: r, queue: q, key: b.Cabinet, group: b.Group, cabinet: q.cabinetOf(b.Cabinet), generation: -1, requested: requested,
		after: b.First - 1, last: b.Last, most: b.Count,
	}
}

// Group implements [repository.Run].
func (r *cabinetRun) Group() domain.Group { return r.group }

// Cabinet implements [repository.Run].
func (r *cabinetRun) Cabinet() domain.CabinetKey { return r.key }

// Folder implements [repository.Run]. This layout does not delete old events,
// so the folder is constant.
func (r *cabinetRun) Folder() string {
	return fmt.Sprintf("cabinets/%s/%s/%x", r.key.Recipient, r.key.Origin, r.key.ContentType.String())
}

// Saves implements [repository.Run]. The store has no traces.
func (r *cabinetRun) Saves(int, int) []domain.TraceContext { return nil }

// BacklogAfter implements [repository.Run].
func (r *cabinetRun) BacklogAfter(n int) domain.Backlog {
	return r.queue.backlogOf(r.requested, r.cabinet, n)
}

// Events implements [repository.Run].
func (r *cabinetRun) Events(ctx context.Context) iter.Seq2[repository.StoredEvent, error] {
	query := items.Query{
		Text: "SELECT c.id, c.recipient, c.sequence, c.origin, c.contentType, c.documentType, c.supportsBundling, c.weight, c.saved, c.payload FROM c" +
			inOrder + " OFFSET 0 LIMIT " + strconv.Itoa(r.most),
		Params: r.cabinet.rangeParameters(r.after, r.last),
		Page:   perPage,
	}
	return func(yield func(repository.StoredEvent, error) bool) {
		n := 0
		for item, err := range items.Each[eventItem](ctx, r.r.items, r.key.Recipient.String(), query) {
			var e repository.StoredEvent
			if err == nil {
				e, err = item.storedEvent()
			}
			if err != nil {
				yield(repository.StoredEvent{}, fmt.Errorf("read events: %w", err))
				return
			}
			if n == len(r.yielded) {
				r.yielded = append(r.yielded, e.Sequence)
			}
			n++
			if !yield(e, nil) {
				return
			}
		}
	}
}
