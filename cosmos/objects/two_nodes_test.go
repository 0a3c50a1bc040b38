package objects

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// contention is what some nodes did that stored events of the same objects at the same time.
type contention struct {
	units    float64 // for each event
	requests float64 // for each event
	elapsed  time.Duration
	gathers  bool // a node waits for further requests at the end
}

// contend has 8 callers, spread over n nodes, store events of the same 48 objects of one shard, in
// messages of 16.
func contend(t *testing.T, n int) contention {
	const callers, messages, names, size = 8, 7, 64, 16
	a := accounttest.New(t, embedded.Options{}, Containers())
	nodes := make([]*Store, n)
	for i := range nodes {
		nodes[i] = New(a.Connect(), Options{Shards: 1})
	}
	all := make([]domain.ObjectName, names)
	for i := range all {
		all[i] = must(domain.ParseObjectName("bucket", fmt.Sprint("key", i)))
	}
	ingest := func(s *Store, message, caller int) {
		var reports []repository.ObjectReport
		for i := range size {
			e := objecttest.Calls(fmt.Sprintf("[C@%04X]", 1+message*callers+caller))[0][0]
			reports = append(reports, repository.ObjectReport{Name: all[(i*3+message*7+caller*5)%names], ObjectEvent: e})
		}
		results, err := s.Ingest(t.Context(), reports)
		if err != nil {
			t.Error(err)
			return
		}
		for _, r := range results {
			if r.Err != nil || r.Outcome != domain.ObjectStored {
				t.Error(r.Outcome, r.Err)
			}
		}
	}
	for _, s := range nodes {
		_, err := s.Ingest(t.Context(), []repository.ObjectReport{{Name: all[0], ObjectEvent: objecttest.Calls("[C@FFFF]")[0][0]}})
		require.NoError(t, err)
	}
	a.Line.Break(nil)
	before, began := a.Engine.RequestUnits(), time.Now()
	var g sync.WaitGroup
	for caller := range callers {
		g.Go(func() {
			for message := range messages {
				ingest(nodes[caller%n], message, caller)
			}
		})
	}
	g.Wait()
	const events = callers * messages * size
	found := contention{(a.Engine.RequestUnits() - before) / events, float64(a.Line.Calls()) / events, time.Since(began), false}
	for _, s := range nodes {
		found.gathers = found.gathers || s.gathering.Load() > 0
	}
	return found
}

// Two nodes whose batches have the same objects refuse each other. The one that loses reads and decides
// again; it does not store each object by itself.
func TestTwoNodesOnTheSameObjects_CostNotMuchMoreThanOne(t *testing.T) {
	one, two := contend(t, 1), contend(t, 2)
	t.Logf("one node: %.1f RU and %.2f requests an event, %v", one.units, one.requests, one.elapsed)
	t.Logf("two nodes: %.1f RU and %.2f requests an event, %v", two.units, two.requests, two.elapsed)
	require.Less(t, two.units, 1.5*one.units)
	require.Less(t, two.requests, 0.25)
	require.False(t, one.gathers)
	require.True(t, two.gathers)
}
