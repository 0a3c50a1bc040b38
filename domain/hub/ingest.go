package hub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
)

// Ingested says what became of the events of an Ingest.
type Ingested struct {
	Accepted   int   // stored by this call
	Duplicates int   // stored before, or earlier in this call, with the same content
	Conflicts  []int // indexes, ascending, of events stored before with other content
}

// A Fault is what is wrong with one event of an Ingest.
type Fault struct {
	Index int
	Field string // of the event: id, origin or payload
	Err   error
}

// A RejectionError lists every fault of an Ingest that stored nothing, in the order
// of the events. Its kind is Conflict if all that is wrong is that one id stands
// for different contents, else Invalid.
type RejectionError struct{ Faults []Fault }

func (r *RejectionError) Error() string {
	return fmt.Sprintf("%d of the events cannot be stored; the first is event %d: %v", len(r.Faults), r.Faults[0].Index, r.Faults[0].Err)
}

// Ingest stores events, each recipient's in the order given. If the events
// themselves are at fault it stores nothing and fails with a *RejectionError.
//
// Recipients are stored independently of each other. If that fails for some of
// them the error says so, and Ingested counts what was stored for the others;
// the caller sends the same events again, and none will be stored twice.
func (h *Hub) Ingest(ctx context.Context, events []domain.Event) (Ingested, error) {
	if err := h.Check(events); err != nil {
		return Ingested{}, err
	}
	var (
		mu    sync.Mutex
		total Ingested
		errs  = make(map[int]error) // by the first event concerned
	)
	var g errgroup.Group // without a shared context: one recipient's trouble is not another's
	g.SetLimit(h.opts.Parallel)
	for recipient, at := range byRecipient(events) {
		g.Go(func() error {
			own := make([]domain.Event, len(at))
			for i, index := range at {
				own[i] = events[index]
			}
			saved, err := h.events.Save(ctx, recipient, own)
			if saved.Accepted > 0 || err != nil { // after a failure, some may be stored
				h.wake(own)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs[at[0]] = fmt.Errorf("save %d events for %s: %w", len(own), recipient, err)
				return nil
			}
			total.Accepted += saved.Accepted
			total.Duplicates += saved.Duplicates
			for _, i := range saved.Conflicts {
				total.Conflicts = append(total.Conflicts, at[i])
			}
			return nil
		})
	}
	_ = g.Wait()
	slices.Sort(total.Conflicts)
	return total, joined(errs)
}

// joined returns the first few of errs, by event, and the number of the others. What
// may pass comes before NewerFormat, that before Damaged, and that before Invalid; the
// first decides on the kind: as long as there is any that passes, sending the same
// again stores more.
func joined(errs map[int]error) error {
	if len(errs) == 0 {
		return nil
	}
	const most = 3
	var first []error
	lasting := func(i int) int {
		switch domain.KindOf(errs[i]) {
		case domain.Invalid:
			return 3
		case domain.Damaged:
			return 2
		case domain.NewerFormat:
			return 1
		default:
			return 0
		}
	}
	order := slices.Sorted(maps.Keys(errs))
	slices.SortStableFunc(order, func(a, b int) int { return lasting(a) - lasting(b) })
	for _, i := range order {
		if len(first) == most {
			first = append(first, fmt.Errorf("and the like for %d other recipients", len(errs)-most))
			break
		}
		first = append(first, errs[i])
	}
	return domain.Errorf(domain.KindOf(first[0]), "%w", errors.Join(first...))
}

// byRecipient returns the indexes of each recipient's events, in order.
func byRecipient(events []domain.Event) map[domain.ActorID][]int {
	at := make(map[domain.ActorID][]int)
	for i := range events {
		r := events[i].Recipient
		at[r] = append(at[r], i)
	}
	return at
}

// Check returns the *RejectionError with which Ingest would refuse events, or nil. It
// asks no store. An edge that has faults of its own to report calls it to report
// these along with them.
func (h *Hub) Check(events []domain.Event) error {
	type key struct {
		recipient domain.ActorID
		id        domain.EventID
	}
	first := make(map[key]int, len(events))
	named := make(map[int]bool) // the first events of an id that are among the faults already
	var faults []Fault
	kind := domain.Conflict
	invalid := func(i int, field string, err error) {
		faults, kind = append(faults, Fault{i, field, err}), domain.Invalid
	}
	for i := range events {
		e := &events[i]
		if err := e.Check(); err != nil {
			field, _, _ := strings.Cut(err.Error(), ":")
			invalid(i, field, err)
			continue
		}
		if _, err := h.opts.Groups.Of(e.Origin); err != nil {
			invalid(i, "origin", err)
			continue
		}
		if h.contentMode(e.Origin) == domain.Inline && e.Payload == nil {
			invalid(i, "payload", domain.Errorf(domain.Invalid,
				"payload: missing; the content of %s is sent along with its events", e.Origin))
			continue
		}
		k := key{e.Recipient, e.ID}
		earlier, again := first[k]
		if !again {
			first[k] = i
			continue
		}
		if events[earlier].Digest() == e.Digest() {
			continue
		}
		err := domain.Errorf(domain.Conflict, "id: %s stands for different contents in this request", e.ID)
		if !named[earlier] {
			named[earlier] = true
			faults = append(faults, Fault{earlier, "id", err})
		}
		faults = append(faults, Fault{i, "id", err})
	}
	if len(faults) == 0 {
		return nil
	}
	slices.SortStableFunc(faults, func(a, b Fault) int { return a.Index - b.Index })
	return domain.Errorf(kind, "%w", &RejectionError{faults})
}
