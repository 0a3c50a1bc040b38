package deliverytest

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// shardCounts returns the number of shards of each node; the key "" counts shards without an
// owner.
func (w *World) shardCounts() map[string]int {
	w.Helper()
	_, a, err := w.Stores.Nodes.Nodes(context.Background())
	require.NoError(w, err)
	n := make(map[string]int)
	for _, owner := range a.Owners {
		n[owner]++
	}
	return n
}

// awaitSharing waits until the nodes have shared the shards.
func (w *World) awaitSharing() { <-time.After(15 * time.Second) }

// addSpread adds n copies of template, whose cursors are in many shards.
func (w *World) addSpread(n int, template *Receiver) []*Receiver {
	var all []*Receiver
	for range n {
		all = append(all, w.Add(&Receiver{Policy: template.Policy, Concurrency: template.Concurrency, Answer: template.Answer}))
	}
	return all
}

// callsOf returns the number of calls of receivers.
func callsOf(receivers []*Receiver) (calls int) {
	for _, r := range receivers {
		calls += len(r.Calls())
	}
	return calls
}

var nodesRules = []deliveryRule{
	{"NodesShareTheShardsEvenly", func(w *World) {
		w.Shared = true
		var nodes []*Node
		for n := 1; n <= 5; n++ {
			nodes = append(nodes, w.Start(delivery.Options{}))
			w.awaitSharing()
			shards := w.shardCounts()
			require.Len(w, shards, n)
			for _, count := range shards {
				require.InDelta(w, repository.ShardCount/n, count, 1)
			}
		}
		for len(nodes) > 0 {
			nodes[0].Stop()
			nodes = nodes[1:]
			<-time.After(2 * time.Second)
			require.Zero(w, w.shardCounts()[""]*len(nodes), "a node that stops gives its shards back, and others take them at once")
		}
		require.Equal(w, repository.ShardCount, w.shardCounts()[""])
		stored, _, err := w.Stores.Nodes.Nodes(context.Background())
		require.NoError(w, err)
		require.Empty(w, stored)
	}},
	{"ANodeThatStopsHandsOverWithoutRepeatedCalls", func(w *World) {
		w.Shared = true
		receivers := w.addSpread(20, &Receiver{Policy: domain.DefaultPolicy(), Answer: After(time.Second, 200)})
		a, b := w.Start(delivery.Options{CheckInterval: time.Hour}), w.Start(delivery.Options{CheckInterval: time.Hour})
		w.awaitSharing()
		w.Publish(a, 3)
		<-time.After(500 * time.Millisecond)
		a.Stop()
		w.Publish(b, 2)
		<-time.After(5 * time.Second)
		require.Equal(w, 5*len(receivers), callsOf(receivers), "nothing is called twice")
		b.Stop()
		for _, r := range receivers {
			s := w.Standing(r)
			require.Nil(w, s.Caution, "it was released")
			require.EqualValues(w, 5, s.Counters.Delivered)
		}
	}},
	{"ANodeThatJoinsTakesOverWithoutRepeatedCalls", func(w *World) {
		w.Shared = true
		receivers := w.addSpread(20, &Receiver{Policy: domain.DefaultPolicy(), Answer: After(20*time.Second, 200)})
		a := w.Start(delivery.Options{CheckInterval: time.Hour, Workers: 500})
		w.awaitSharing()
		w.Publish(a, 3)
		<-time.After(time.Second)
		b := w.Start(delivery.Options{CheckInterval: time.Hour, Workers: 500})
		<-time.After(40 * time.Second)
		require.Len(w, w.shardCounts(), 2)
		w.Publish(a, 1)
		<-time.After(30 * time.Second)
		require.Equal(w, 4*len(receivers), callsOf(receivers), "a shard is not given away before its calls have ended")
		a.Stop()
		b.Stop()
		for _, r := range receivers {
			s := w.Standing(r)
			require.Nil(w, s.Caution)
			require.EqualValues(w, 4, s.Counters.Delivered)
		}
	}},
	{"ADeadNodeIsReplacedAfterTenSeconds", func(w *World) {
		w.Shared = true
		receivers := w.addSpread(20, &Receiver{Policy: domain.QueuePolicy([]time.Duration{0, 30 * time.Second}, 2), Answer: Status(500)})
		a, b := w.Start(delivery.Options{CheckInterval: time.Hour}), w.Start(delivery.Options{CheckInterval: time.Hour})
		w.awaitSharing()
		w.Publish(b, 2)
		<-time.After(time.Second)
		require.Equal(w, 2*len(receivers), callsOf(receivers))
		a.line.cut()
		<-time.After(7 * time.Second)
		require.Equal(w, repository.ShardCount/2, w.shardCounts()[a.incarnation])
		<-time.After(6 * time.Second)
		require.Equal(w, map[string]int{b.incarnation: repository.ShardCount}, w.shardCounts())
		<-time.After(2 * time.Minute)
		b.Stop()
		a.Stop()
		for _, r := range receivers {
			require.EqualValues(w, 2, w.Standing(r).Counters.Errored, "the retries of the dead node were found")
			require.Len(w, r.Calls(), 4)
		}
	}},
	{"ANodeThatPausedForAMinuteCallsOnlyItsOwnReceivers", func(w *World) {
		w.Shared = true
		const concurrency = 3
		receivers := w.addSpread(20, &Receiver{Policy: domain.DefaultPolicy(), Concurrency: concurrency, Answer: After(2*time.Second, 200)})
		a, b := w.Start(delivery.Options{CheckInterval: time.Hour, Workers: 500}), w.Start(delivery.Options{CheckInterval: time.Hour, Workers: 500})
		w.awaitSharing()
		w.Publish(b, 30)
		<-time.After(3 * time.Second)
		before := make(map[*Receiver]int)
		for _, r := range receivers {
			before[r] = w.takeoversOf(r)
		}
		thaw := a.Freeze()
		<-time.After(time.Minute)
		thaw()
		<-time.After(2 * time.Minute)
		require.Len(w, w.shardCounts(), 2, "it has its share again")
		a.Stop()
		b.Stop()
		for _, r := range receivers {
			require.EqualValues(w, 30, w.Standing(r).Counters.Delivered)
			require.LessOrEqual(w, len(r.Calls()), 30+concurrency, "P5: what was under way is called again, once")
			require.LessOrEqual(w, w.takeoversOf(r)-before[r], 2, "it was taken over, and given back")
		}
	}},
	{"ANodeWithoutItsStoreBeginsNoCallsOnceOthersMayHaveItsShards", func(w *World) {
		w.Shared = true
		receivers := w.addSpread(20, &Receiver{Policy: domain.DefaultPolicy(), Concurrency: 1, Answer: After(time.Second, 200)})
		a, b := w.Start(delivery.Options{CheckInterval: time.Hour}), w.Start(delivery.Options{CheckInterval: time.Hour})
		w.awaitSharing()
		w.Publish(b, 40)
		<-time.After(2 * time.Second)
		a.line.cut()
		<-time.After(time.Minute)
		require.Equal(w, map[string]int{b.incarnation: repository.ShardCount}, w.shardCounts())
		b.Stop()
		a.Stop()
		for _, r := range receivers {
			require.EqualValues(w, 40, w.Standing(r).Counters.Delivered)
			require.LessOrEqual(w, len(r.Calls()), 41, "P5")
		}
	}},
	{"ANodeWhoseClockIsAnHourOffTakesNoShards", func(w *World) {
		w.Shared = true
		r := w.addSpread(20, &Receiver{Policy: domain.DefaultPolicy()})
		hourAhead := func() time.Time { return time.Now().Add(time.Hour) }
		hourBehind := func() time.Time { return time.Now().Add(-time.Hour) }
		nodes := []*Node{w.Start(delivery.Options{Clock: hourAhead}), w.Start(delivery.Options{}), w.Start(delivery.Options{Clock: hourBehind})}
		w.awaitSharing()
		shards := w.shardCounts()
		for range 30 {
			<-time.After(4 * time.Second)
			require.Equal(w, shards, w.shardCounts())
		}
		require.Len(w, shards, 3)
		w.Publish(nodes[0], 10)
		<-time.After(2 * time.Second)
		require.Equal(w, 10*len(r), callsOf(r))
		for _, n := range nodes {
			n.Stop()
		}
	}},
	{"AChangeWakesTheOtherNodesWithinASecond", func(w *World) {
		w.Shared = true
		receivers := w.addSpread(20, &Receiver{Policy: domain.DefaultPolicy()})
		a, b := w.Start(delivery.Options{CheckInterval: time.Hour}), w.Start(delivery.Options{CheckInterval: time.Hour})
		w.awaitSharing()
		for i := 1; i <= 30; i++ {
			w.Publish([]*Node{a, b}[i%2], 1)
			<-time.After(time.Second)
			require.Equal(w, i*len(receivers), callsOf(receivers), "round %d", i)
			<-time.After(time.Duration(i) * 37 * time.Millisecond)
		}
		created := w.addSpread(20, &Receiver{Policy: domain.DefaultPolicy(), Concurrency: 1, Answer: After(time.Minute, 500)})
		for _, r := range created {
			a.Created(r.ID, w.Stream)
		}
		<-time.After(time.Second)
		require.Equal(w, len(created), callsOf(created), "new cursors are served, wherever they were created")
		for _, r := range created {
			w.Remove(r)
			a.Changed(r.ID)
		}
		<-time.After(3 * time.Minute)
		require.Equal(w, len(created), callsOf(created), "deleted receivers are called no more")
		a.Stop()
		b.Stop()
		for _, r := range created {
			require.Equal(w, domain.Closed, w.Standing(r).State)
		}
	}},
	{"ASaveWakesTheOwnersOfItsReceiversWithinASecond", func(w *World) {
		w.Shared = true
		data := func(name string) domain.StreamName {
			actor, err := domain.ParseActorID(name)
			require.NoError(w, err)
			return domain.DataStream(actor)
		}
		w.Stream = data("awaits-" + repositorytest.NewCursorID().String()[2:])
		receivers := w.addSpread(20, &Receiver{Policy: domain.DefaultPolicy()})
		a, b := w.Start(delivery.Options{CheckInterval: time.Hour}), w.Start(delivery.Options{CheckInterval: time.Hour})
		w.awaitSharing()
		signalled := func() (n int64) {
			nodes, _, err := w.Stores.Nodes.Nodes(context.Background())
			require.NoError(w, err)
			for i := range nodes {
				n += nodes[i].Signalled
			}
			return n
		}
		for i := 1; i <= 10; i++ {
			w.Publish(nil, 1) // like a Save, which passes no entry to its node
			[]*Node{a, b}[i%2].CheckStream(w.Stream)
			<-time.After(time.Second)
			require.Equal(w, i*len(receivers), callsOf(receivers), "round %d", i)
		}
		before := signalled()
		for i := range 100 {
			a.CheckStream(data(fmt.Sprint("other-", i)))
		}
		<-time.After(3 * time.Second)
		require.Less(w, signalled()-before, int64(5), "a Save that no receiver waits for signals nothing")
		a.Stop()
		b.Stop()
	}},
	{"ASaveBeforeTheOwnerIsKnownIsFound", func(w *World) {
		w.Shared = true
		actor, err := domain.ParseActorID("late-" + repositorytest.NewCursorID().String()[2:])
		require.NoError(w, err)
		a, b := w.Start(delivery.Options{CheckInterval: time.Hour}), w.Start(delivery.Options{CheckInterval: time.Hour})
		w.awaitSharing()
		w.Stream = domain.DataStream(actor)
		receivers := w.addSpread(20, &Receiver{Policy: domain.DefaultPolicy()})
		for _, r := range receivers {
			a.Created(r.ID, w.Stream)
		}
		<-time.After(time.Millisecond) // too early for b to have read the announcement of a
		w.Publish(nil, 1)
		b.CheckStream(w.Stream)
		<-time.After(3 * time.Second)
		require.Equal(w, len(receivers), callsOf(receivers))
		a.Stop()
		b.Stop()
	}},
	{"MoreSignalsThanANodeKeepsAreFoundByALook", func(w *World) {
		w.Shared = true
		a, b := w.Start(delivery.Options{CheckInterval: time.Hour}), w.Start(delivery.Options{CheckInterval: time.Hour})
		w.awaitSharing()
		w.Publish(nil, 1)
		receivers := w.addSpread(3*repository.MaxSignals, &Receiver{Policy: domain.DefaultPolicy()})
		for _, r := range receivers {
			a.Created(r.ID, w.Stream)
		}
		<-time.After(10 * time.Second)
		require.Equal(w, len(receivers), callsOf(receivers))
		a.Stop()
		b.Stop()
	}},
}
