package broker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
)

// startWithoutTakeover starts a node that never takes over from dead nodes, and waits until it owns all shards.
func (w *fetchWorld) startWithoutTakeover(name string) *fetchNode {
	n := w.startNode(name, delivery.Options{NoTakeover: true, CheckInterval: time.Hour})
	w.awaitSharing()
	return n
}

// orphanShards assigns all shards to a node that is dead, and waits until n notices.
func (w *fetchWorld) orphanShards(n *fetchNode) {
	w.Helper()
	_, a, err := w.nodes.Nodes(w.Context())
	require.NoError(w, err)
	for i := range a.Owners {
		a.Owners[i] = "a dead node"
	}
	require.NoError(w, w.nodes.Assign(w.Context(), a))
	<-time.After(15 * time.Second)
	require.Len(w, n.engine.Orphaned(), repository.ShardCount)
}

// listOverdue returns the jobs that have been overdue for at least delay.
func (w *fetchWorld) listOverdue(n *fetchNode, delay time.Duration) []broker.Job {
	w.Helper()
	jobs, _, more, err := n.Overdue(w.Context(), adminCredentials, broker.OverdueQuery{Delay: delay})
	require.NoError(w, err)
	require.False(w, more)
	return jobs
}

// requireOverdue checks that exactly one job is overdue, and that a re-trigger delivers its message.
func (w *fetchWorld) requireOverdue(n *fetchNode, message string, status broker.JobStatus) {
	w.Helper()
	jobs := w.listOverdue(n, 2*time.Second)
	require.Len(w, jobs, 1)
	require.Equal(w, status, jobs[0].Status)
	require.Equal(w, w.consumer, jobs[0].Consumer)
	require.Equal(w, message, jobs[0].Message)
	w.setAnswers(200, 0)
	require.NoError(w, n.RetriggerJob(w.Context(), adminCredentials, w.consumer, message))
	<-time.After(20 * time.Second)
	require.Empty(w, w.listOverdue(n, 0))
	require.Equal(w, broker.Delivered, w.jobOf(n, message).Status)
}

func TestOverdue_ListsJobsThatADeadNodeHasNotTried(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		n := w.startWithoutTakeover("a")
		w.orphanShards(n)
		message := w.broadcastOne(n)
		require.Empty(w, w.listOverdue(n, 2*time.Second), "it has not waited for long")
		<-time.After(2 * time.Second)
		w.requireOverdue(n, message, broker.InFlight)
	})
}

func TestOverdue_ListsAttemptsOfADeadNodeThatAreDue(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.status = 500
		n := w.startWithoutTakeover("a")
		message := w.broadcastOne(n)
		due := time.Now()
		for time.Until(due) < 20*time.Second {
			<-time.After(time.Second)
			due = w.jobOf(n, message).Due
		}
		w.orphanShards(n)
		require.Empty(w, w.listOverdue(n, 0), "it is not due")
		<-time.After(time.Until(due) + 2*time.Second)
		w.requireOverdue(n, message, broker.RetryDelivery)
	})
}

func TestOverdue_ListsCallsThatADeadNodeHadUnderWay(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		n := w.startWithoutTakeover("a")
		w.orphanShards(n)
		message := w.broadcastOne(n)
		e, _ := domain.ParseMessageID(message)
		c, version, err := w.ports.Cursors.Load(w.Context(), w.consumer.Cursor(), domain.Owner{Incarnation: "a dead node", Limit: 1}, time.Now)
		require.NoError(w, err)
		c.Take(domain.Position{EntryID: e}, true)
		_, err = w.ports.Cursors.Settle(w.Context(), w.consumer.Cursor(), version, c.Settlement())
		require.NoError(w, err)
		<-time.After(3 * time.Second)
		w.requireOverdue(n, message, broker.InFlight)
	})
}

func TestOverdue_ListsRetriggersThatADeadNodeLeftUndone(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.status = 500
		n := w.startWithoutTakeover("a")
		message := w.broadcastOne(n)
		<-time.After(time.Hour)
		w.orphanShards(n)
		require.Empty(w, w.listOverdue(n, 0), "a dead job is not overdue")
		deaf := broker.New(w.ports, plainSealer{}, broker.Options{})
		require.NoError(w, deaf.RetriggerJob(w.Context(), consumerCredentials, w.consumer, message))
		w.requireOverdue(n, message, broker.Dead)
	})
}

func TestOverdue_LeavesOutCallsOfALivingNode(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.takes = time.Hour
		a, b := w.startWithoutTakeover("a"), w.startWithoutTakeover("b")
		w.broadcast(a, 100, 0) // more messages than the node delivers at the same time
		<-time.After(10 * time.Second)
		require.NotEmpty(w, w.countCalls())
		for _, n := range []*fetchNode{a, b} {
			require.Empty(w, w.listOverdue(n, 2*time.Second))
		}
	})
}

func TestOverdue_LeavesOutMessagesInABundle(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.status = 500
		n := w.startWithoutTakeover("a")
		w.broadcast(n, 2, 0)
		<-time.After(time.Second) // by now, one attempt has failed
		w.setAnswers(200, time.Hour)
		require.Len(w, w.peekBundle(n, 10).Messages, 2)
		<-time.After(time.Minute) // by now, the node has forgotten the request
		w.orphanShards(n)
		<-time.After(time.Hour)
		require.Empty(w, w.listOverdue(n, 2*time.Second))
	})
}

func TestOverdue_LeavesOutConsumersThatAskedForAPause(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		n := w.startWithoutTakeover("a")
		message := w.broadcastOne(n)
		<-time.After(time.Second)
		w.orphanShards(n)
		waiting := w.broadcastOne(n)
		hold := time.Now().Add(time.Hour)
		c, version, err := w.ports.Cursors.Load(w.Context(), w.consumer.Cursor(), domain.Owner{Incarnation: "a dead node", Limit: 1}, time.Now)
		require.NoError(w, err)
		s := c.Settlement()
		s.Standing.Hold, s.Standing.HoldFor = hold, time.Hour
		_, err = w.ports.Cursors.Settle(w.Context(), w.consumer.Cursor(), version, s)
		require.NoError(w, err)
		<-time.After(59 * time.Minute)
		require.Empty(w, w.listOverdue(n, 2*time.Second))
		<-time.After(2 * time.Minute)
		require.Equal(w, broker.Delivered, w.jobOf(n, message).Status)
		w.requireOverdue(n, waiting, broker.InFlight)
	})
}

// countedShards counts how often lists of cursors are read.
type countedShards struct {
	repository.Shards
	lists int
}

func (s *countedShards) Cursors(ctx context.Context, shard int) ([]repository.ShardEntry, []repository.WatchedStream, error) {
	s.lists++
	return s.Shards.Cursors(ctx, shard)
}

func TestOverdue_ReadsNothingWhileAllNodesAreAlive(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.takes = time.Hour
		a := w.startWithoutTakeover("a")
		w.broadcast(a, 3, 0)
		<-time.After(time.Minute)
		ports := w.ports
		shards := &countedShards{Shards: w.ports.Shards}
		ports.Shards = shards
		s := broker.New(ports, plainSealer{}, broker.Options{Orphaned: a.engine.Orphaned})
		_, _, more, err := s.Overdue(w.Context(), adminCredentials, broker.OverdueQuery{})
		require.NoError(w, err)
		require.False(w, more)
		require.Zero(w, shards.lists)
		w.orphanShards(a)
		_, _, _, err = s.Overdue(w.Context(), adminCredentials, broker.OverdueQuery{})
		require.NoError(w, err)
		require.Equal(w, repository.ShardCount, shards.lists)
	})
}

func TestOverdue_ListsOneJobOfAShardAndContinuesInPages(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		n := w.startWithoutTakeover("a")
		w.orphanShards(n)
		const idle, busy = 250, 5
		shard := func(name string) int {
			id, err := w.channel.Consumers().Parse(name)
			require.NoError(w, err)
			return repository.ShardOf(id.Cursor())
		}
		want := (shard("billing") + 1) % repository.ShardCount
		put := func(prefix string, count int) {
			for i := 0; count > 0; i++ {
				name := fmt.Sprintf("%s-%06d", prefix, i)
				if shard(name) != want {
					continue
				}
				id, err := w.channel.Consumers().Parse(name)
				require.NoError(w, err)
				_, _, err = broker.New(w.ports, plainSealer{}, broker.Options{}).PutParty(w.Context(), adminCredentials, id, broker.Draft{Token: new("x"), CallbackURL: "https://x.example/"}, broker.Condition{})
				require.NoError(w, err)
				count--
			}
		}
		put("z", idle+busy) // these consumers have a waiting message, because they were created before it
		w.broadcast(n, 1, 0)
		put("a", idle) // these consumers come first in the list, and nothing waits for them
		<-time.After(3 * time.Second)

		found := make(map[int]int)
		q := broker.OverdueQuery{Delay: 2 * time.Second}
		pages := 0
		for more := true; more; pages++ {
			require.Less(w, pages, 10)
			var jobs []broker.Job
			var err error
			jobs, q.First, more, err = n.Overdue(w.Context(), adminCredentials, q)
			require.NoError(w, err)
			for _, j := range jobs {
				found[repository.ShardOf(j.Consumer.Cursor())]++
			}
		}
		require.Equal(w, map[int]int{shard("billing"): 1, want: 1}, found)
		require.GreaterOrEqual(w, pages, idle/100)
	})
}

func TestOverdue_IsForOperators(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		n := w.startWithoutTakeover("a")
		for _, creds := range []*broker.Credentials{{}, consumerCredentials, producerCredentials} {
			_, _, _, err := n.Overdue(w.Context(), creds, broker.OverdueQuery{})
			require.ErrorIs(w, err, broker.ErrUnauthenticated)
		}
	})
}
