package hub

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
)

// IngestResult is the result of an Ingest.
type IngestResult struct {
	Accepted   int   // Accepted is the number of events that this call has stored
	Duplicates int   // Duplicates is the number of events that were already stored with the same content
	Conflicts  []int // Conflicts are the ascending indexes of events that are already stored with different content
}

// A Fault tells why an event is invalid.
type Fault struct {
	Index int
	Field string // field of the event: id, origin or payload
	Err   error
}

// A RejectionError lists all faults, in the order of the events, if Ingest has stored nothing. Its kind is Conflict if
// every fault is that an id is used for different contents, otherwise Invalid.
type RejectionError struct{ Faults []Fault }

func (r *RejectionError) Error() string {
	return fmt.Sprintf("%d of the events cannot be stored; the first is event %d: %v", len(r.Faults), r.Faults[0].Index, r.Faults[0].Err)
}

// Ingest stores events. For each recipient, they are stored in the given order. If an event is invalid, Ingest stores
// nothing and returns a *RejectionError.
//
// Each recipient's events are stored independently. If some Saves fail, the error is an *UnstoredError, and the result
// counts the events that were stored. The caller should retry with the same events, which are then stored only once.
func (h *Hub) Ingest(ctx context.Context, events []domain.Event) (IngestResult, error) {
	if err := h.Check(events); err != nil {
		return IngestResult{}, err
	}
	var (
		mu     sync.Mutex
		total  IngestResult
		failed []SaveFailure
	)
	var g errgroup.Group // do not use errgroup.WithContext, because a failed Save must not cancel the rest
	g.SetLimit(h.opts.Parallel)
	for recipient, at := range byRecipient(events) {
		g.Go(func() error {
			own := make([]domain.Event, len(at))
			for i, index := range at {
				own[i] = events[index]
			}
			saved, err := h.events.Save(ctx, recipient, own)
			if saved.Accepted > 0 || err != nil { // also after an error, because some events may be stored
				h.wakeListeners(own)
				h.opts.Saved(recipient)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, SaveFailure{at, fmt.Errorf("save %d events for %s: %w", len(own), recipient, err)})
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
	return total, unstoredError(failed)
}

// A SaveFailure is a failed Save for one recipient. If the outcome of the Save is unknown, the events may be stored.
type SaveFailure struct {
	Events []int // indexes, ascending
	Err    error
}

// An UnstoredError reports the recipients whose Saves failed. Failures are sorted: temporary errors, NewerFormat,
// Damaged, Invalid. The kind of the UnstoredError is that of the first failure, so it is temporary if a retry may help.
type UnstoredError struct{ Failures []SaveFailure }

// Error returns the text of the first few failures and the number of all remaining ones.
func (u *UnstoredError) Error() string {
	const limit = 3
	var lines []string
	for i := range u.Failures {
		if i == limit {
			lines = append(lines, fmt.Sprintf("and the like for %d other recipients", len(u.Failures)-limit))
			break
		}
		lines = append(lines, u.Failures[i].Err.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors of all recipients.
func (u *UnstoredError) Unwrap() []error {
	errs := make([]error, len(u.Failures))
	for i := range u.Failures {
		errs[i] = u.Failures[i].Err
	}
	return errs
}

// unstoredError returns failures as an *UnstoredError with a kind. It returns nil if none exist.
func unstoredError(failures []SaveFailure) error {
	if len(failures) == 0 {
		return nil
	}
	slices.SortFunc(failures, func(a, b SaveFailure) int {
		return cmp.Or(rankPermanence(a.Err)-rankPermanence(b.Err), a.Events[0]-b.Events[0])
	})
	return domain.Errorf(domain.KindOf(failures[0].Err), "%w", &UnstoredError{failures})
}

// rankPermanence ranks errors: the less a retry can help, the higher the rank.
func rankPermanence(err error) int {
	switch domain.KindOf(err) {
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

// byRecipient returns, for each recipient, the indexes of its events in order.
func byRecipient(events []domain.Event) map[domain.ActorID][]int {
	at := make(map[domain.ActorID][]int)
	for i := range events {
		r := events[i].Recipient
		at[r] = append(at[r], i)
	}
	return at
}

// Check returns the *RejectionError that Ingest would return for events, or nil. It reads no store. Callers that have
// found faults themselves use it to report all faults together.
func (h *Hub) Check(events []domain.Event) error {
	type key struct {
		recipient domain.ActorID
		id        domain.EventID
	}
	first := make(map[key]int, len(events))
	named := make(map[int]bool) // indexes of events with a fault that are the first with their id
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
		if _, err := h.opts.Groups.GroupOf(e.Origin); err != nil {
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
