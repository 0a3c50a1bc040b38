package objects

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// A contention contains the costs of events if several nodes store events of the same objects at the
// same time.
type contention struct {
	units    float64 // request units for each event
	requests float64 // requests for each event
	elapsed  time.Duration
	gathers  bool // whether the rounds of a node still wait for further requests at the end
}

// contend lets 8 callers, spread over n nodes, store events of the same 64 objects of one shard, in
// messages of 16 events, and measures the cost.
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
	a.Transport.Break(nil)
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
	found := contention{(a.Engine.RequestUnits() - before) / events, float64(a.Transport.Calls()) / events, time.Since(began), false}
	for _, s := range nodes {
		found.gathers = found.gathers || s.gathering.Load() > 0
	}
	return found
}

// Batches of two nodes with the same objects are refused because of each other. After a refusal, a node
// reads the objects and decides again, but does not store each object separately.
func TestTwoNodesOnTheSameObjects_CostNotMuchMoreThanOne(t *testing.T) {
	one, two := contend(t, 1), contend(t, 2)
	t.Logf("one node: %.1f RU and %.2f requests an event, %v", one.units, one.requests, one.elapsed)
	t.Logf("two nodes: %.1f RU and %.2f requests an event, %v", two.units, two.requests, two.elapsed)
	require.Less(t, two.units, 16.0, "one node needs 6 to 11, by how many callers share a batch")
	require.Less(t, two.requests, 0.25)
	require.False(t, one.gathers)
}

// A beforeBatch calls do before it sends the next batch.
type beforeBatch struct {
	next *faulty.Transport
	do   func()
}

func (b *beforeBatch) Do(req *http.Request) (*http.Response, error) {
	if do := b.do; do != nil && req.Header.Get("x-ms-cosmos-is-batch-request") != "" {
		b.do = nil
		do()
	}
	return b.next.Do(req)
}

// After a batch was refused because another node had stored events of the same objects, the next rounds
// wait for further requests.
func TestARefusedBatch_MakesTheNextRoundsWait(t *testing.T) {
	a := accounttest.New(t, embedded.Options{}, Containers())
	line := &beforeBatch{next: a.Transport}
	refused, other := New(a.ConnectBy(line), Options{Shards: 1}), New(a.Connect(), Options{Shards: 1})
	name := must(domain.ParseObjectName("bucket", "a"))
	ingest := func(s *Store, event string) {
		results, err := s.Ingest(t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: objecttest.Calls(event)[0][0]}})
		require.NoError(t, err)
		require.NoError(t, results[0].Err)
	}
	ingest(refused, "[C@01]")
	require.Zero(t, refused.gathering.Load())
	line.do = func() { ingest(other, "[C@02]") }
	ingest(refused, "[C@03]")
	require.Positive(t, refused.gathering.Load())
	require.Zero(t, other.gathering.Load())
}
