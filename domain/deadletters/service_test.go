package deadletters_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/deadletters"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

const (
	events  = "events"
	replies = "replies"
)

var by = deadletters.AdminAction{Who: "an operator", Why: "a test"}

// A fakeBus is a bus on which only the queue "events" has dead letters.
type fakeBus struct {
	letters []deadletters.DeadLetter
	resent  []int64
	failsAt int64 // number of the dead letter at which an action fails; 0: no action fails
	peeks   int
}

func (b *fakeBus) Peek(_ context.Context, queue string, after int64, limit int) (found []deadletters.DeadLetter, err error) {
	b.peeks++
	for _, l := range b.letters {
		if queue == events && l.Number > after && len(found) < limit {
			found = append(found, l)
		}
	}
	return found, nil
}

func (b *fakeBus) Read(_ context.Context, _ string, number int64) (*deadletters.Content, error) {
	for _, l := range b.letters {
		if l.Number == number {
			return &deadletters.Content{DeadLetter: l, Body: []byte("body")}, nil
		}
	}
	return nil, domain.Errorf(domain.NotFound, "no dead letter %d", number)
}

func (b *fakeBus) Resend(_ context.Context, _ string, numbers []int64, _ string) (int, error) {
	return b.carryOut(numbers, func(n int64) { b.resent = append(b.resent, n) })
}

func (b *fakeBus) Delete(_ context.Context, _ string, numbers []int64) (int, error) {
	return b.carryOut(numbers, func(int64) {})
}

func (b *fakeBus) carryOut(numbers []int64, act func(int64)) (n int, err error) {
	for _, number := range numbers {
		if number == b.failsAt {
			return n, domain.Errorf(domain.Busy, "dead letter %d is locked", number)
		}
		at := slices.IndexFunc(b.letters, func(l deadletters.DeadLetter) bool { return l.Number == number })
		if at >= 0 {
			act(number)
			b.letters = slices.Delete(b.letters, at, at+1)
			n++
		}
	}
	return n, nil
}

func (b *fakeBus) Count(string) (int64, bool) { return int64(len(b.letters)), true }

// actionStore is embedded in faultyActions under an unexported name.
type actionStore interface{ repository.DeadLetterActions }

// faultyActions is a store of records whose calls return the errors that a test sets.
type faultyActions struct {
	actionStore
	beginErr, endErr error
}

func (o *faultyActions) BeginDeadLetterAction(ctx context.Context, order repository.DeadLetterAction) (repository.DeadLetterAction, error) {
	if o.beginErr != nil {
		return repository.DeadLetterAction{}, o.beginErr
	}
	return o.actionStore.BeginDeadLetterAction(ctx, order)
}

func (o *faultyActions) EndDeadLetterAction(ctx context.Context, order repository.DeadLetterAction) error {
	if o.endErr != nil {
		return o.endErr
	}
	return o.actionStore.EndDeadLetterAction(ctx, order)
}

type world struct {
	*testing.T
	*deadletters.Service
	bus     *fakeBus
	actions *faultyActions
	logs    bytes.Buffer
}

// newWorld returns a service with n dead letters. Their reasons alternate between damaged and
// invalid.
func newWorld(t *testing.T, n int) *world {
	w := &world{T: t, bus: &fakeBus{}, actions: &faultyActions{actionStore: memory.New(memory.Options{})}}
	for i := range n {
		w.bus.letters = append(w.bus.letters, deadletters.DeadLetter{Number: int64(i + 1), MessageID: "m", Reason: []string{"damaged", "invalid"}[i%2]})
	}
	w.Service = deadletters.New(deadletters.Options{
		Queues: []deadletters.Queue{{Name: events, Use: "events"}, {Name: replies, NoResend: "no request waits for it"}},
		Bus:    w.bus, Actions: w.actions, Logger: slog.New(slog.NewTextHandler(&w.logs, nil)),
	})
	return w
}

// records returns the records of the queue as texts, the oldest first.
func (w *world) records() (lines []string) {
	found, err := w.Records(w.Context(), events, 100)
	require.NoError(w, err)
	for _, r := range slices.Backward(found) {
		require.Equal(w, by, r.AdminAction)
		lines = append(lines, strings.Join([]string{r.What, r.Reason, r.MessageID, r.Outcome}, " "))
	}
	return lines
}

func TestList_ReturnsPages(t *testing.T) {
	w := newWorld(t, 7)
	page, err := w.List(t.Context(), events, deadletters.Query{Limit: 3})
	require.NoError(t, err)
	require.Len(t, page.DeadLetters, 3)
	require.EqualValues(t, 3, page.Next)
	page, err = w.List(t.Context(), events, deadletters.Query{After: 3, Limit: 100})
	require.NoError(t, err)
	require.Len(t, page.DeadLetters, 4)
	require.Zero(t, page.Next)
	page, err = w.List(t.Context(), events, deadletters.Query{Reason: "invalid", Limit: 2})
	require.NoError(t, err)
	require.EqualValues(t, 4, page.Next)
	require.EqualValues(t, 2, page.DeadLetters[0].Number)
}

// The reason is rare, so the page is not full when the limit of reads is reached.
func TestList_ReadsUpToALimit(t *testing.T) {
	w := newWorld(t, 1500)
	page, err := w.List(t.Context(), events, deadletters.Query{Reason: "rare", Limit: 100})
	require.NoError(t, err)
	require.Empty(t, page.DeadLetters)
	require.EqualValues(t, 1000, page.Next)
	require.Equal(t, 10, w.bus.peeks)
}

func TestRequests_AreValidated(t *testing.T) {
	w := newWorld(t, 1)
	kindOf := func(err error) domain.Kind { return domain.KindOf(err) }
	_, err := w.List(t.Context(), "other", deadletters.Query{Limit: 1})
	require.Equal(t, domain.NotFound, kindOf(err))
	for _, q := range []deadletters.Query{{}, {Limit: 101}, {Limit: 1, After: -1}} {
		_, err = w.List(t.Context(), events, q)
		require.Equal(t, domain.Invalid, kindOf(err))
	}
	_, err = w.Records(t.Context(), "other", 1)
	require.Equal(t, domain.NotFound, kindOf(err))
	_, err = w.ReadContent(t.Context(), events, 1, deadletters.AdminAction{})
	require.Equal(t, domain.Invalid, kindOf(err))
	require.Equal(t, domain.NotFound, kindOf(w.Resend(t.Context(), events, 2, by)))
	require.Equal(t, domain.NotFound, kindOf(w.Delete(t.Context(), "other", 1, by)))
	require.Equal(t, domain.Conflict, kindOf(w.Resend(t.Context(), replies, 1, by)))
	for _, of := range []deadletters.Selection{{Through: 1}, {Reason: "damaged"}, {Reason: "damaged", After: 2, Through: 2}} {
		_, err = w.DeleteSome(t.Context(), events, of, by)
		require.Equal(t, domain.Invalid, kindOf(err))
	}
	require.Empty(t, w.records())
	require.Len(t, w.bus.letters, 1)
}

func TestActions_LeaveRecords(t *testing.T) {
	w := newWorld(t, 4)
	found, err := w.ReadContent(t.Context(), events, 1, by)
	require.NoError(t, err)
	require.Equal(t, "body", string(found.Body))
	require.NoError(t, w.Resend(t.Context(), events, 1, by))
	require.NoError(t, w.Delete(t.Context(), events, 2, by))
	w.bus.failsAt = 3
	require.Equal(t, domain.Busy, domain.KindOf(w.Delete(t.Context(), events, 3, by)))
	require.Equal(t, []string{
		"look damaged m done", "resend damaged m done", "delete invalid m done", "delete damaged m busy: dead letter 3 is locked",
	}, w.records())
	require.Equal(t, []int64{1}, w.bus.resent)
	require.Contains(t, w.logs.String(), "operator's order about dead letters failed")
}

func TestAnAction_RequiresAStoredRecord(t *testing.T) {
	w := newWorld(t, 2)
	w.actions.beginErr = errors.New("the store is away")
	_, err := w.ReadContent(t.Context(), events, 1, by)
	require.ErrorIs(t, err, w.actions.beginErr)
	require.ErrorIs(t, w.Resend(t.Context(), events, 1, by), w.actions.beginErr)
	_, err = w.DeleteSome(t.Context(), events, deadletters.Selection{Reason: "damaged", Through: 9}, by)
	require.ErrorIs(t, err, w.actions.beginErr)
	require.Len(t, w.bus.letters, 2)
}

func TestAnOutcomeThatIsNotStored_IsLogged(t *testing.T) {
	w := newWorld(t, 2)
	w.actions.endErr = errors.New("the store is away")
	require.NoError(t, w.Delete(t.Context(), events, 1, by), "it was done")
	require.Equal(t, []string{"delete damaged m "}, w.records())
	require.Contains(t, w.logs.String(), "is not in its record")
}

// The caller repeats the action with the returned Next until Next is 0.
func TestActionsOnSeveralDeadLetters_ContinueUntilNoneRemains(t *testing.T) {
	w := newWorld(t, 450)
	of, sum, calls := deadletters.Selection{Reason: "damaged", Through: 401}, 0, 0
	for {
		p, err := w.ResendSome(t.Context(), events, of, by)
		require.NoError(t, err)
		require.Empty(t, p.Failure)
		w.bus.letters = append(w.bus.letters, deadletters.DeadLetter{Number: int64(451 + calls), Reason: "damaged"}) // a message that was sent again becomes a dead letter again
		sum, calls = sum+p.Letters, calls+1
		if of.After = p.Next; p.Next == 0 {
			break
		}
	}
	require.Equal(t, 201, sum)
	require.Equal(t, 3, calls)
	require.Len(t, w.records(), 3)
	require.EqualValues(t, 401, w.bus.resent[200])
}

func TestActionsOnSeveralDeadLetters_ReportWhereTheyEnded(t *testing.T) {
	w := newWorld(t, 10)
	w.bus.failsAt = 5
	p, err := w.DeleteSome(t.Context(), events, deadletters.Selection{Reason: "damaged", Through: 10}, by)
	require.NoError(t, err)
	require.Equal(t, deadletters.Progress{Letters: 2, Failure: "dead letter 5 is locked"}, p)
	_, err = w.DeleteSome(t.Context(), events, deadletters.Selection{Reason: "damaged", Through: 10}, by)
	require.Equal(t, domain.Busy, domain.KindOf(err))
	require.Equal(t, []string{"delete damaged  busy: dead letter 5 is locked", "delete damaged  busy: dead letter 5 is locked"}, w.records())
}

func TestQueues_CountTheirDeadLetters(t *testing.T) {
	w := newWorld(t, 3)
	states := w.Queues()
	require.Len(t, states, 2)
	require.Equal(t, deadletters.QueueState{Queue: deadletters.Queue{Name: events, Use: "events"}, DeadLetters: 3, IsKnown: true}, states[0])
}
