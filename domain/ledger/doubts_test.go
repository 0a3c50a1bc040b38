package ledger_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// runDoubts runs body while Doubts.Run is running, and waits until all doubts are settled.
func runDoubts(t *testing.T, body func(t *testing.T, d *ledger.Doubts, stored *store)) {
	synctest.Test(t, func(t *testing.T) {
		stored := newStore()
		d := ledger.NewDoubts(memory.NewObjects(), stored, ledger.Options{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			d.Run(ctx)
		}()
		body(t, d, stored)
		stop()
		<-ended
	})
}

// sleepFor advances the clock of the synctest bubble by d.
func sleepFor(d time.Duration) { <-time.After(d) }

func created(t *testing.T, text, eTag string) domain.ObjectEvent {
	return domain.ObjectEvent{
		Type: domain.ObjectCreated, Sequencer: sequencer(t, text), Time: time.Now(), ObjectFacts: domain.ObjectFacts{ETag: eTag},
	}
}

// makeDoubtful creates an object in doubt: the sequencer of its second event is shorter than that
// of the first event, so the second event counts as earlier.
func makeDoubtful(t *testing.T, d *ledger.Doubts, key string) domain.ObjectName {
	t.Helper()
	name := nameOf(t, "bucket", key)
	ingest(t, d, name, created(t, "000", `"1"`))
	ingest(t, d, name, created(t, "ff", `"2"`))
	return name
}

func object(t *testing.T, d *ledger.Doubts, name domain.ObjectName) domain.Object {
	t.Helper()
	o, err := d.Object(t.Context(), name)
	require.NoError(t, err)
	return o
}

func TestDoubtIsSettledByTheStore(t *testing.T) {
	for eTag, want := range map[string]string{`"1"`: `"1"`, `"2"`: `"2"`, "": ""} {
		runDoubts(t, func(t *testing.T, d *ledger.Doubts, stored *store) {
			stored.put("a", eTag, domain.ObjectFacts{})
			answer := make(chan struct{})
			stored.onRequest = func() { <-answer }
			o := object(t, d, makeDoubtful(t, d, "a"))
			require.EqualValues(t, 2, o.Events, "Ingest does not wait for the store")
			close(answer)
			synctest.Wait()
			o = object(t, d, o.Name)
			require.False(t, o.Doubt)
			require.EqualValues(t, 3, o.Events)
			if want == "" {
				require.Nil(t, o.Current)
			} else {
				require.Equal(t, want, o.Current.ETag)
			}
			// The lengths of these sequencers differ from the length of an earlier event's
			// sequencer, ff. Doubts does not ingest these events, so it does not read the store,
			// which contains older content.
			ingest(t, d.Objects, o.Name, created(t, "111", `"3"`))
			ingest(t, d.Objects, o.Name, created(t, "222", `"4"`))
			require.Equal(t, `"4"`, object(t, d, o.Name).Current.ETag)
		})
	}
}

func TestDoubtRemainsWithoutAResponse(t *testing.T) {
	t.Run("a content that no event has reported", func(t *testing.T) {
		runDoubts(t, func(t *testing.T, d *ledger.Doubts, stored *store) {
			stored.put("a", `"3"`, domain.ObjectFacts{})
			name := makeDoubtful(t, d, "a")
			synctest.Wait()
			require.True(t, object(t, d, name).Doubt)
			ingest(t, d, name, created(t, "fff", `"3"`)) // its event
			synctest.Wait()
			require.False(t, object(t, d, name).Doubt)
			require.Equal(t, `"3"`, object(t, d, name).Current.ETag)
		})
	})
	t.Run("no store", func(t *testing.T) {
		runDoubts(t, func(t *testing.T, d *ledger.Doubts, stored *store) {
			name := nameOf(t, "elsewhere", "a")
			ingest(t, d, name, created(t, "000", `"1"`))
			ingest(t, d, name, created(t, "ff", `"2"`))
			synctest.Wait()
			require.True(t, object(t, d, name).Doubt)
			require.Equal(t, 1, stored.n)
		})
	})
	t.Run("a store that refuses", func(t *testing.T) {
		runDoubts(t, func(t *testing.T, d *ledger.Doubts, stored *store) {
			stored.put("a", `"2"`, domain.ObjectFacts{})
			for range 10 {
				stored.failing = append(stored.failing, domain.Errorf(domain.Unavailable, "refused"))
			}
			name := makeDoubtful(t, d, "a")
			sleepFor(time.Hour)
			require.True(t, object(t, d, name).Doubt)
			require.Equal(t, 4, stored.n)
		})
	})
}

// If a store throttles a request, the request is repeated after a pause.
func TestDoubtIsSettledWhenTheStoreResponds(t *testing.T) {
	runDoubts(t, func(t *testing.T, d *ledger.Doubts, stored *store) {
		stored.put("a", `"2"`, domain.ObjectFacts{})
		stored.failing = []error{domain.Errorf(domain.Busy, "throttled"), domain.Errorf(domain.Unavailable, "refused")}
		name := makeDoubtful(t, d, "a")
		synctest.Wait()
		require.True(t, object(t, d, name).Doubt)
		sleepFor(5 * time.Second)
		synctest.Wait()
		require.False(t, object(t, d, name).Doubt)
		require.Equal(t, `"2"`, object(t, d, name).Current.ETag)
	})
}

// An event that arrives during the request may be newer than the state in the response, so the
// request is repeated.
func TestDoubtIsSettledIfTheObjectChangesDuringTheRequest(t *testing.T) {
	runDoubts(t, func(t *testing.T, d *ledger.Doubts, stored *store) {
		stored.put("a", `"2"`, domain.ObjectFacts{})
		name := nameOf(t, "bucket", "a")
		stored.onRequest = func() {
			switch stored.n {
			case 1:
				ingest(t, d, name, domain.ObjectEvent{Type: domain.ObjectDeleted, Sequencer: sequencer(t, "fe"), Time: time.Now()})
			case 2:
				delete(stored.objects, "a")
			}
		}
		makeDoubtful(t, d, "a")
		synctest.Wait()
		require.Equal(t, 2, stored.n)
		require.False(t, object(t, d, name).Doubt)
		require.Nil(t, object(t, d, name).Current)
	})
}

// Many objects are in doubt. Those that do not fit into the queue remain in doubt, and Ingest does
// not block.
func TestDoubtsAreBounded(t *testing.T) {
	d := ledger.NewDoubts(memory.NewObjects(), newStore(), ledger.Options{}) // Run is not called
	var reports []repository.ObjectReport
	for i := range 1500 {
		name := nameOf(t, "bucket", fmt.Sprint(i))
		reports = append(reports, repository.ObjectReport{Name: name, ObjectEvent: created(t, "000", `"1"`)}, repository.ObjectReport{Name: name, ObjectEvent: created(t, strings.Repeat("f", 2), `"2"`)})
	}
	results, err := d.Ingest(t.Context(), reports)
	require.NoError(t, err)
	for _, r := range results {
		require.True(t, r.Doubt)
	}
}
