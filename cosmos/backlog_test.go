package cosmos

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestMarks_NeverUnderstateAnAge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(minMarks, maxMarks).Draw(t, "most")
		var c cabinetState
		var all []millis // the time at which each event was saved
		now := millis(1_700_000_000_000)
		for range rapid.IntRange(1, 60).Draw(t, "saves") {
			now += millis(rapid.Int64Range(-500, 86_400_000).Draw(t, "gap"))
			n := rapid.IntRange(1, 3).Draw(t, "events")
			c.Marks = c.withMark(c.Total+1, now, most)
			c.Total += int64(n)
			for range n {
				all = append(all, now)
			}
			require.LessOrEqual(t, len(c.Marks), most)
		}
		for i := range all {
			n := int64(i + 1)
			oldest := all[i]
			for _, later := range all[i:] {
				oldest = min(oldest, later)
			}
			require.LessOrEqual(t, c.savedAt(n), oldest, "event %d of %d, marks %v", n, len(all), c.Marks)
			require.GreaterOrEqual(t, c.savedAt(n), all[0]-500*60)
			if n == c.Total {
				require.Equal(t, all[i], c.savedAt(n), "the last Save is exact")
			}
		}
	})
}

func TestTheTimesOfTheLastFewSavesAreExact(t *testing.T) {
	var c cabinetState
	for i := range maxMarks {
		c.Marks = c.withMark(c.Total+1, millis(1_000_000*(i+1)), maxMarks)
		c.Total += 10
	}
	for i := range maxMarks {
		for _, n := range []int64{1, 10} {
			assert.Equal(t, millis(1_000_000*(i+1)), c.savedAt(int64(10*i)+n))
		}
	}
}

// A cabinet receives a Save every ten seconds for three days, without a Dequeue.
func TestMarksOfManySavesAreSpacedByAge(t *testing.T) {
	var c cabinetState
	const saves = 3 * 24 * 360
	at := func(i int) millis { return millis(1_700_000_000_000 + 10_000*i) }
	for i := range saves {
		c.Marks = c.withMark(c.Total+1, at(i), maxMarks)
		c.Total++
	}
	now, sum, worst := at(saves-1)+1000, 0.0, 0.0
	for i := range saves {
		ratio := float64(now-c.savedAt(int64(i+1))) / float64(now-at(i))
		sum, worst = sum+ratio, max(worst, ratio)
	}
	t.Logf("too high by a factor of %.2f in the mean, %.2f at worst", sum/saves, worst)
	assert.Less(t, sum/saves, 2.0)
	assert.Less(t, worst, 4.0)
}

func TestAHeadOfManyCabinetsHasFewMarks(t *testing.T) {
	assert.Equal(t, maxMarks, marksPerCabinet(0))
	assert.Equal(t, maxMarks, marksPerCabinet(16))
	assert.Equal(t, 4, marksPerCabinet(64))
	assert.Equal(t, minMarks, marksPerCabinet(maxCabinets))
}

// A hub that does not report the backlog makes the same number of requests.
func TestTheBacklog_NeedsNoRequest(t *testing.T) {
	s := newTrust(t)
	node := s.node(Options{Exclusive: true}, false)
	ctx := context.Background()
	s.save(node, 0, repositorytest.Events(10, s.actor, repositorytest.WithoutBundling))
	var b repositorytest.PeekedBundle
	for _, step := range []struct {
		name     string
		requests int
		do       func()
	}{
		{"a new bundle: gates, head, page, batch", 4, func() {
			var err error
			b, err = repositorytest.Peek(ctx, s.stores(node), s.actor, allGroups, domain.BundleID{})
			require.NoError(t, err)
			assert.Equal(t, int64(9), b.Behind.Events)
		}},
		{"again: gates, head, bundle, page", 4, func() {
			again, err := repositorytest.Peek(ctx, s.stores(node), s.actor, allGroups, domain.BundleID{})
			require.NoError(t, err)
			assert.Equal(t, b.Behind, again.Behind)
		}},
		{"a Dequeue: gates, bundle, batch", 3, func() {
			closed, err := node.Acknowledge(ctx, s.actor, b.ID)
			require.NoError(t, err)
			assert.Equal(t, b.Behind, closed.Remaining)
		}},
		{"nothing there: gates, head", 2, func() {
			_, err := node.NextUnacknowledged(ctx, repositorytest.NewActor(), allGroups)
			require.ErrorIs(t, err, domain.ErrNoData)
		}},
		{"all queues: gates, head", 2, func() {
			queues, err := node.Queues(ctx, s.actor)
			require.NoError(t, err)
			require.Len(t, queues, len(allGroups))
		}},
		{"the watermark: head", 1, func() {
			w, err := node.Watermark(ctx, s.actor)
			require.NoError(t, err)
			require.Equal(t, domain.Sequence(10), w)
		}},
	} {
		s.line.Break(nil)
		step.do()
		assert.Equal(t, step.requests, s.line.Calls(), step.name)
	}
}

// A steppedClock is a clock that a test moves by hours.
type steppedClock struct{ now time.Time }

func (h *steppedClock) clock() time.Time { return h.now }
func (h *steppedClock) addHours(n int)   { h.now = h.now.Add(time.Duration(n) * time.Hour) }

func TestTheAge_IsExactForSmallAndLargeBacklogs(t *testing.T) {
	s := newTrust(t)
	h := &steppedClock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	node := s.node(Options{Exclusive: true, Clock: h.clock}, true)
	ctx := context.Background()
	peek := func() repositorytest.PeekedBundle {
		b, err := repositorytest.Peek(ctx, s.stores(node), s.actor, allGroups, domain.BundleID{})
		require.NoError(t, err)
		return b
	}
	var saved []time.Time
	save := func(n int) {
		h.addHours(1)
		s.save(node, 0, repositorytest.Events(n, s.actor, repositorytest.WithWeight(domain.MaxBundleWeight)))
		for range n {
			saved = append(saved, h.now)
		}
	}
	for range 100 { // far more Saves than a head can have marks
		save(1)
	}
	peeked := peek() // the times of events far behind the first bundle are stored only in marks
	for i := 1; i < 100; i++ {
		closed, err := node.Acknowledge(ctx, s.actor, peeked.ID)
		require.NoError(t, err)
		want := domain.Backlog{Events: int64(100 - i), Oldest: saved[i]}
		require.Equal(t, want, closed.Remaining, "the gate knows the event that was read behind the bundle")
		require.Equal(t, want, peeked.Behind)
		peeked = peek()
	}
	closed, err := node.Acknowledge(ctx, s.actor, peeked.ID)
	require.NoError(t, err)
	require.Equal(t, domain.Backlog{}, closed.Remaining)

	h.addHours(24 * 7)
	save(1)
	save(1)
	require.Equal(t, domain.Backlog{Events: 1, Oldest: h.now}, peek().Behind, "after a week of nothing")
}

// A Dequeue reads no head. A node without a head in memory reports the backlog at the time when the
// bundle was opened.
func TestDequeue_OnANewNodeReturnsTheBacklogOfThePeek(t *testing.T) {
	for _, groups := range [][]domain.Group{allGroups, {repositorytest.TimeSeries}} {
		t.Run(fmt.Sprint(len(groups)), func(t *testing.T) {
			s := newTrust(t)
			node := s.node(small, false)
			s.save(node, 0, repositorytest.Events(4, s.actor, repositorytest.WithoutBundling))
			s.save(node, 0, repositorytest.Events(3, s.actor, repositorytest.WithOrigin(domain.Charges)))
			b, err := repositorytest.Peek(context.Background(), s.stores(node), s.actor, groups, domain.BundleID{})
			require.NoError(t, err)
			s.save(node, 0, repositorytest.Events(1, s.actor))
			closed, err := s.node(small, false).Acknowledge(context.Background(), s.actor, b.ID)
			require.NoError(t, err)
			assert.Equal(t, b.Behind.Events, closed.Remaining.Events)
			assert.WithinDuration(t, b.Behind.Oldest, closed.Remaining.Oldest, 0)
		})
	}
}

// A Peek reads a newer head than another node has in memory. A Dequeue on that node must not report a
// smaller backlog than the Peek did.
func TestDequeue_DoesNotCountFromAHeadOlderThanThePeek(t *testing.T) {
	s := newTrust(t)
	node, other := s.node(small, false), s.node(small, false)
	_, err := other.Watermark(context.Background(), s.actor)
	require.NoError(t, err)
	s.save(other, 0, repositorytest.Events(1, s.actor))
	s.save(node, 0, repositorytest.Events(3, s.actor, repositorytest.WithOrigin(domain.Charges)))
	b, err := repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
	require.NoError(t, err)
	closed, err := other.Acknowledge(context.Background(), s.actor, b.ID)
	require.NoError(t, err)
	assert.Equal(t, int64(3), closed.Remaining.Events)
}

func TestDequeue_WithALostReplyReturnsTheBacklog(t *testing.T) {
	s := newTrust(t)
	node, line := s.tappedNode(small)
	s.save(node, 0, repositorytest.Events(3, s.actor, repositorytest.WithoutBundling))
	b, err := repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
	require.NoError(t, err)
	line.setBefore(nil)
	s.line.BreakOne(3, faulty.ReplyLostAfter) // the reply to the batch that closes the bundle is lost
	closed, err := node.Acknowledge(context.Background(), s.actor, b.ID)
	require.NoError(t, err)
	assert.Equal(t, 1, s.line.Fired())
	assert.Equal(t, int64(2), closed.Remaining.Events)
}

// stripMembers removes fields from every document of a partition, so that the documents look as if an older
// version had written them.
func (s *trust) stripMembers(container *azcosmos.ContainerClient, key string, fields ...string) {
	s.Helper()
	pager := container.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKeyString(key), nil)
	for pager.More() {
		resp, err := pager.NextPage(context.Background())
		require.NoError(s, err)
		for _, item := range resp.Items {
			var doc map[string]any
			require.NoError(s, json.Unmarshal(item, &doc))
			removeMembers(doc, fields)
			text, err := json.Marshal(doc)
			require.NoError(s, err)
			_, err = container.ReplaceItem(context.Background(), azcosmos.NewPartitionKeyString(key), doc["id"].(string), text, nil)
			require.NoError(s, err)
		}
	}
}

func removeMembers(doc any, fields []string) {
	if m, ok := doc.(map[string]any); ok {
		for _, f := range fields {
			delete(m, f)
		}
		for _, v := range m {
			removeMembers(v, fields)
		}
	}
}

func TestEventsOfAnOlderVersion_HaveNoAge(t *testing.T) {
	s := newTrust(t)
	node := s.node(small, false)
	ctx := context.Background()
	s.save(node, 0, repositorytest.Events(3, s.actor, repositorytest.WithoutBundling))
	drawer := s.readEntries(node, domain.TimeSeries)[0].ID
	open, err := repositorytest.Peek(ctx, s.stores(node), s.actor, allGroups, domain.BundleID{})
	require.NoError(t, err)
	new := []string{"marks", "saved", "nextSaved", "behind", "sum"}
	s.stripMembers(node.db.catalog, headKey(s.actor), new...)
	s.stripMembers(node.db.cabinets, drawer, new...)
	s.stripMembers(node.db.bundles, s.actor.String(), new...)

	fresh := s.node(small, false)
	again, err := repositorytest.Peek(ctx, s.stores(fresh), s.actor, allGroups, domain.BundleID{})
	require.NoError(t, err)
	assert.Equal(t, open.Bundle, again.Bundle)
	assert.Equal(t, domain.Backlog{Events: 2}, again.Behind)
	s.save(fresh, 0, repositorytest.Events(1, s.actor, repositorytest.WithoutBundling))
	for left := int64(3); left > 0; left-- {
		closed, err := fresh.Acknowledge(ctx, s.actor, again.ID)
		require.NoError(t, err)
		assert.Equal(t, left, closed.Remaining.Events)
		assert.Equal(t, left > 1, closed.Remaining.Oldest.IsZero(), "only what this version has saved has an age")
		again, err = repositorytest.Peek(ctx, s.stores(fresh), s.actor, allGroups, domain.BundleID{})
		require.NoError(t, err)
	}
}

func TestTheRecipientCache_IsBounded(t *testing.T) {
	k := newRecipientCache()
	cabinets := make(map[cabinetName]cabinetState)
	for i := range 1000 {
		cabinets[fmt.Sprint(i)] = cabinetState{}
	}
	var last domain.ActorID
	for i := range 150 {
		last = repositorytest.NewActor()
		k.observeHead(last, &head{Watermark: domain.Sequence(i), Cabinets: cabinets})
	}
	assert.Equal(t, 99, len(k.of))
	assert.Equal(t, 99*1001, k.size)
	assert.NotNil(t, k.newestHead(last))
	k.observeHead(last, &head{Watermark: 1})
	assert.Len(t, k.newestHead(last).Cabinets, 1000, "an older head is not taken for the newest")
	for range maxKnown {
		k.observeHead(repositorytest.NewActor(), &head{})
	}
	assert.Len(t, k.of, maxKnown, "those who have never received anything take memory, too")
}
