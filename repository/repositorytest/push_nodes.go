package repositorytest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

func (f *pushFixture) readNodes() ([]repository.Node, repository.Assignment) {
	f.Helper()
	nodes, a, err := f.Nodes.Nodes(f.ctx)
	require.NoError(f, err)
	return nodes, a
}

func (f *pushFixture) storeBeat(n repository.Node) {
	f.Helper()
	require.NoError(f, f.Nodes.Beat(f.ctx, n))
}

// lastBeat returns the last beat of a node.
func (f *pushFixture) lastBeat(incarnation string) repository.Node {
	f.Helper()
	nodes, _ := f.readNodes()
	for _, n := range nodes {
		if n.Incarnation == incarnation {
			return n
		}
	}
	require.Fail(f, "there is no node "+incarnation)
	return repository.Node{}
}

var nodeRules = []pushRule{
	{"TheLastBeatOfEachNodeIsKept", func(f *pushFixture) {
		nodes, a := f.readNodes()
		require.Empty(f, nodes)
		require.Equal(f, repository.Assignment{}, a)
		signals := []repository.Signal{{Stream: f.stream}, {Stream: f.stream, Cursor: f.id}, {Cursor: f.id}}
		f.storeBeat(repository.Node{Incarnation: "a", Beat: 1})
		f.storeBeat(repository.Node{Incarnation: "b", Beat: 1})
		want := repository.Node{Incarnation: "a", Beat: 7, Signals: signals, Signalled: 40}
		want.Awaits.Add(f.stream)
		f.storeBeat(want)
		require.Equal(f, want, f.lastBeat("a"))
		f.storeBeat(repository.Node{Incarnation: "a", Beat: 6})
		f.storeBeat(repository.Node{Incarnation: "a", Beat: 7})
		require.Equal(f, want, f.lastBeat("a"), "an old beat changes nothing")
		f.storeBeat(repository.Node{Incarnation: "a", Beat: 8, Signalled: 40})
		require.Empty(f, f.lastBeat("a").Signals)
		require.Empty(f, f.lastBeat("a").Awaits)
		require.EqualValues(f, 1, f.lastBeat("b").Beat)
	}},
	{"ANodeThatLeavesIsGone", func(f *pushFixture) {
		f.storeBeat(repository.Node{Incarnation: "a", Beat: 1})
		require.NoError(f, f.Nodes.Leave(f.ctx, "a"))
		require.NoError(f, f.Nodes.Leave(f.ctx, "a"))
		nodes, _ := f.readNodes()
		require.Empty(f, nodes)
	}},
	{"ANodeWithoutBeatsIsForgotten", func(f *pushFixture) {
		f.storeBeat(repository.Node{Incarnation: "a", Beat: 1})
		f.storeBeat(repository.Node{Incarnation: "b", Beat: 1})
		f.advanceClock(repository.NodeRetention - time.Minute)
		f.storeBeat(repository.Node{Incarnation: "b", Beat: 2})
		f.advanceClock(2 * time.Minute)
		nodes, _ := f.readNodes()
		require.Len(f, nodes, 1)
		require.Equal(f, "b", nodes[0].Incarnation)
		f.storeBeat(repository.Node{Incarnation: "a", Beat: 9})
		require.EqualValues(f, 9, f.lastBeat("a").Beat, "it was paused for a long time")
	}},
	{"AnAssignmentIsReplacedByItsVersion", func(f *pushFixture) {
		var a repository.Assignment
		for shard := range a.Owners {
			a.Owners[shard] = []string{"a", "b", "", "some-longer-incarnation"}[shard%4]
		}
		require.NoError(f, f.Nodes.Assign(f.ctx, a))
		_, stored := f.readNodes()
		require.Equal(f, a.Owners, stored.Owners)
		require.Positive(f, stored.Version)
		require.Equal(f, domain.Conflict, domain.KindOf(f.Nodes.Assign(f.ctx, a)), "another node has stored one")
		next := stored
		next.Owners = [repository.ShardCount]string{63: "b"}
		require.NoError(f, f.Nodes.Assign(f.ctx, next))
		require.Equal(f, domain.Conflict, domain.KindOf(f.Nodes.Assign(f.ctx, stored)))
		_, last := f.readNodes()
		require.Equal(f, next.Owners, last.Owners)
		require.Greater(f, last.Version, stored.Version)
	}},
	{"OfManyNodesThatAssignOneSucceeds", func(f *pushFixture) {
		const nodes, rounds = 8, 5
		for range rounds {
			_, a := f.readNodes()
			var stored atomic.Int32
			var g sync.WaitGroup
			for i := range nodes {
				g.Go(func() {
					mine := a
					mine.Owners[0] = fmt.Sprint("node-", i)
					switch err := f.Nodes.Assign(f.ctx, mine); domain.KindOf(err) {
					case domain.Conflict:
					default:
						if err != nil {
							f.Error(err)
						}
						stored.Add(1)
					}
				})
			}
			g.Wait()
			require.EqualValues(f, 1, stored.Load())
		}
	}},
}
