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
	Accepted   int   // stored by this call
	Duplicates int   // stored before, or earlier in this call, with the same content
	Conflicts  []int // indexes, ascending, of events stored before with other content
}

// A Fault is the reason why an event of an Ingest is invalid.
type Fault struct {
	Index int
	Field string // field of the event: id, origin or payload
	Err   error
}

// A RejectionError lists every fault of an Ingest that stored nothing, in the order of the
// events. Its kind is Conflict if every fault is an id that is used for different contents,
// else Invalid.
type RejectionError struct{ Faults []Fault }

func (r *RejectionError) Error() string {
	return fmt.Sprintf("%d of the events cannot be stored; the first is event %d: %v", len(r.Faults), r.Faults[0].Index, r.Faults[0].Err)
}

// Ingest stores events, in the given order for each recipient. If an event is invalid, it stores
// nothing and fails with a *RejectionError.
//
// The events of different recipients are stored independently. If storing fails for some
// recipients, the error is an *UnstoredError, and Ingested counts the events that were stored
// for the others. The caller retries with the same events; each event is stored once.
func (h *Hub) Ingest(ctx context.Context, events []domain.Event) (IngestResult, error) {
	if err := h.Check(events); err != nil {
		return IngestResult{}, err
	}
	var (
		mu     sync.Mutex
		total  IngestResult
		failed []SaveFailure
	)
	var g errgroup.Group // without a shared context: the failure of one recipient does not cancel the others
	g.SetLimit(h.opts.Parallel)
	for recipient, at := range byRecipient(events) {
		g.Go(func() error {
			own := make([]domain.Event, len(at))
			for i, index := range at {
				own[i] = events[index]
			}
			saved, err := h.events.Save(ctx, recipient, own)
			if saved.Accepted > 0 || err != nil { // after a failure, some events may be stored
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

// A SaveFailure describes the failed Save of a recipient. If the outcome of the Save is unknown, its
// events may be stored.
type SaveFailure struct {
	Events []int // indexes, ascending
	Err    error
}

// An UnstoredError reports the recipients whose Saves failed. The failures are ordered:
// temporary errors, NewerFormat, Damaged, Invalid. The UnstoredError has the kind of the first
// failure: if one error is temporary, a retry may store more events.
type UnstoredError struct{ Failures []SaveFailure }

// Error returns the first few errors and the number of the others.
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

// unstoredError returns the *UnstoredError of failures with its kind; nil without failures.
func unstoredError(failures []SaveFailure) error {
	if len(failures) == 0 {
		return nil
	}
	slices.SortFunc(failures, func(a, b SaveFailure) int {
		return cmp.Or(rankPermanence(a.Err)-rankPermanence(b.Err), a.Events[0]-b.Events[0])
	})
	return domain.Errorf(domain.KindOf(failures[0].Err), "%w", &UnstoredError{failures})
}

// rankPermanence returns the rank of an error. Errors that a retry cannot resolve have the
// higher ranks.
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

// byRecipient returns the indexes of the events by recipient, in order.
func byRecipient(events []domain.Event) map[domain.ActorID][]int {
	at := make(map[domain.ActorID][]int)
	for i := range events {
		r := events[i].Recipient
		at[r] = append(at[r], i)
	}
	return at
}

// Check returns the *RejectionError with which Ingest would refuse events, or nil. It reads
// nothing from the store. An edge that found other faults calls it to report all faults
// together.
func (h *Hub) Check(events []domain.Event) error {
	type key struct {
		recipient domain.ActorID
		id        domain.EventID
	}
	first := make(map[key]int, len(events))
	named := make(map[int]bool) // indexes of events that are the first with their id and have a fault already
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
