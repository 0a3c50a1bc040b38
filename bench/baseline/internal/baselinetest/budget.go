package baselinetest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// Costs are the costs of a Save of 125 events to a cabinet that already has 875 events, and
// of Peek and Dequeue of all 1,000 events.
type Costs struct {
	Save, Peek, Dequeue Cost
}

// A Cost is the cost of one call.
type Cost struct {
	Requests    int64
	Standard    float64 // request units
	Pessimistic float64 // request units if each document that a query loads costs as much as a read
}

// tolerance is the accepted relative difference of request units, because the documents
// contain random ids and times.
const tolerance = 0.01

// Budget checks that a layout costs as much as when it was written. A higher cost
// would make the hub look better than it is, and a lower one would mean that the
// layout has changed.
func Budget(t *testing.T, l Layout, want Costs) {
	standard, pessimistic := l.measureCosts(t, true), l.measureCosts(t, false)
	for i, call := range []struct {
		name string
		want Cost
	}{{"Save", want.Save}, {"Peek", want.Peek}, {"Dequeue", want.Dequeue}} {
		t.Logf("%s: %d requests, %.1f RU, %.1f RU pessimistic", call.name, standard[i].Requests, standard[i].Units, pessimistic[i].Units)
		assert.Equal(t, call.want.Requests, standard[i].Requests, "requests of a %s", call.name)
		assert.Equal(t, call.want.Requests, pessimistic[i].Requests, "requests of a %s, pessimistic", call.name)
		assert.InEpsilon(t, call.want.Standard, standard[i].Units, tolerance, "request units of a %s", call.name)
		assert.InEpsilon(t, call.want.Pessimistic, pessimistic[i].Units, tolerance, "request units of a %s, pessimistic", call.name)
	}
}

// measureCosts measures a Save, a Peek and a Dequeue.
func (l Layout) measureCosts(t *testing.T, standard bool) [3]account.Count {
	a := l.Account(t, account.Options{Standard: standard}, 10_000)
	line := a.Line()
	s := l.Stores(t, a, line, repositorytest.Options{})
	actor := repositorytest.NewActor()
	ctx := t.Context()
	for range 7 {
		_, err := s.Events.Save(ctx, actor, repositorytest.Events(125, actor))
		require.NoError(t, err)
	}
	at := []account.Count{line.Count()}
	_, err := s.Events.Save(ctx, actor, repositorytest.Events(125, actor))
	require.NoError(t, err)
	at = append(at, line.Count())
	peeked, err := repositorytest.Peek(ctx, s, actor, repositorytest.AllGroups, domain.BundleID{})
	require.NoError(t, err)
	require.Len(t, peeked.Events, 1_000)
	at = append(at, line.Count())
	_, err = s.Bundles.Acknowledge(ctx, actor, peeked.ID)
	require.NoError(t, err)
	at = append(at, line.Count())
	return [3]account.Count{at[1].Since(at[0]), at[2].Since(at[1]), at[3].Since(at[2])}
}
