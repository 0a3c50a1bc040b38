//go:build unix

package crashpoint

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func sentTo(actor string, ids ...string) *ledger {
	l := newLedger()
	for _, id := range ids {
		l.send(stream{"s", actor, manifest}, id)
	}
	return l
}

func TestALedgerIsContentWithWhatIsRight(t *testing.T) {
	l := sentTo("a", "1", "2", "3")
	require.NoError(t, l.peeked("a", "b1", []byte(`[{"id":"1"},{"id":"2"}]`)))
	require.NoError(t, l.peeked("a", "b1", []byte(`[{"id":"1"},{"id":"2"}]`)))
	l.dequeued("a", "b1")
	require.NoError(t, l.peeked("a", "b2", []byte(`[{"id":"3"}]`)))
	l.dequeued("a", "b2")
	n, _ := l.outstanding("a")
	require.Zero(t, n)
	require.Empty(t, l.verdict())
}

func TestALedgerSeesWhatIsWrong(t *testing.T) {
	const first = `[{"id":"1"},{"id":"2"}]`
	for _, tc := range []struct {
		wrong     string
		bundles   []string
		leaveOpen bool
	}{
		{wrong: "lost: event 3", bundles: []string{first}},
		{wrong: "lost: event 1", bundles: []string{first}, leaveOpen: true},
		{wrong: "event 2 was in bundle b0 already", bundles: []string{first, `[{"id":"2"}]`}},
		{wrong: "event 1 comes where event 0 should", bundles: []string{`[{"id":"2"}]`}},
		{wrong: "event \"4\" was never sent to this actor", bundles: []string{`[{"id":"4"}]`}},
		{wrong: "its body is no list of events", bundles: []string{""}},
		{wrong: "bundle b0 of TimeSeries is still open", bundles: []string{first, `[{"id":"3"}]`}, leaveOpen: true},
	} {
		l := sentTo("a", "1", "2", "3")
		for i, body := range tc.bundles {
			id := []string{"b0", "b1"}[i]
			if err := l.peeked("a", id, []byte(body)); err == nil && !tc.leaveOpen {
				l.dequeued("a", id)
			}
		}
		require.Contains(t, l.verdict()[0], tc.wrong)
	}
}

func TestALedgerSeesABundleThatChangesOrComesBack(t *testing.T) {
	l := sentTo("a", "1", "2")
	require.NoError(t, l.peeked("a", "b", []byte(`[{"id":"1"}]`)))
	require.ErrorContains(t, l.peeked("a", "b", []byte(`[{"id":"1"},{"id":"2"}]`)), "not the same as before")
	l.dequeued("a", "b")
	require.ErrorContains(t, l.peeked("a", "b", []byte(`[{"id":"1"}]`)), "comes again after its Dequeue")
}

func TestALedgerKnowsOfWhatTheDomainWasNotTold(t *testing.T) {
	l := newLedger()
	l.send(stream{"s", "a", request}, "1")
	require.NoError(t, l.peeked("a", "b", []byte(`[{"id":"1"}]`)))
	l.dequeued("a", "b")
	untold, changed := l.untold()
	require.Equal(t, []string{"b_a"}, untold)
	l.noticed("b_a")
	<-changed
	untold, _ = l.untold()
	require.Empty(t, untold)
}
