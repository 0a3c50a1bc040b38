//go:build unix

package crashsites

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/ledger"
)

func sentTo(actor, origin string, ids ...string) *crashLedger {
	l := newCrashLedger()
	for _, id := range ids {
		l.Send(ledger.Event{Recipient: actor, ID: id, Cabinet: origin})
	}
	return l
}

func TestCrashLedger_AcceptsCorrectAnswers(t *testing.T) {
	l := sentTo("a", manifest, "1", "2", "3")
	require.NoError(t, l.notePeeked("a", "b1", []byte(`[{"id":"1"},{"id":"2"}]`), l.Now()))
	require.NoError(t, l.notePeeked("a", "b1", []byte(`[{"id":"1"},{"id":"2"}]`), l.Now()))
	l.noteDequeued("a", "b1")
	require.NoError(t, l.notePeeked("a", "b2", []byte(`[{"id":"3"}]`), l.Now()))
	l.noteDequeued("a", "b2")
	n, _ := l.countOutstanding("a")
	require.Zero(t, n)
	require.True(t, l.Check().OK())
}

func TestCrashLedger_ReportsViolations(t *testing.T) {
	const first = `[{"id":"1"},{"id":"2"}]`
	for _, tc := range []struct {
		wrong     string
		bundles   []string
		leaveOpen bool
	}{
		{wrong: "lost: a 3", bundles: []string{first}},
		{wrong: "lost: a 1", bundles: []string{first}, leaveOpen: true},
		{wrong: "duplicated: a 2", bundles: []string{first, `[{"id":"2"}]`}},
		{wrong: "event 1 comes where event 0 should", bundles: []string{`[{"id":"2"}]`}},
		{wrong: "event \"4\" was never sent to this actor", bundles: []string{`[{"id":"4"}]`}},
		{wrong: "its body is not a list of events", bundles: []string{""}},
		{wrong: "it has no events", bundles: []string{"[]"}},
		{wrong: "bundle b0 of TimeSeries is still open", bundles: []string{first, `[{"id":"3"}]`}, leaveOpen: true},
	} {
		l := sentTo("a", manifest, "1", "2", "3")
		for i, body := range tc.bundles {
			id := []string{"b0", "b1"}[i]
			if err := l.notePeeked("a", id, []byte(body), l.Now()); err == nil && !tc.leaveOpen {
				l.noteDequeued("a", id)
			}
		}
		require.Contains(t, l.Check().Details(), tc.wrong)
	}
}

func TestCrashLedger_ReportsChangedAndRepeatedBundles(t *testing.T) {
	l := sentTo("a", manifest, "1", "2")
	require.NoError(t, l.notePeeked("a", "b", []byte(`[{"id":"1"}]`), l.Now()))
	require.ErrorContains(t, l.notePeeked("a", "b", []byte(`[{"id":"1"},{"id":"2"}]`), l.Now()), "not the same as before")
	l.noteDequeued("a", "b")
	require.ErrorContains(t, l.notePeeked("a", "b", []byte(`[{"id":"1"}]`), l.Now()), "comes again after its Dequeue")
}

func TestCrashLedger_KnowsDueNotices(t *testing.T) {
	l := sentTo("a", request, "1")
	require.NoError(t, l.notePeeked("a", "b", []byte(`[{"id":"1"}]`), l.Now()))
	l.noteDequeued("a", "b")
	untold, changed := l.unnotifiedBundles()
	require.Equal(t, []string{"b_a"}, untold)
	l.noteNotice("b_a")
	<-changed
	untold, _ = l.unnotifiedBundles()
	require.Empty(t, untold)
}
