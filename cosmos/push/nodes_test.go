package push

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/repository"
)

// Two nodes alternately assign shards to themselves. Each call may fail once and is then repeated. At the
// end, the assignment contains the shards of both nodes.
func TestNodesOnABrokenConnection_ShareTheShards(t *testing.T) {
	for _, v := range variants {
		for i, fault := range append(faulty.CommonFaults(), faulty.Truncated) {
			if raced && i%3 != 0 {
				continue
			}
			t.Run(v.name+"/"+fault.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { // in a synctest bubble, backoffs take no real time
					for n := 1; ; n++ {
						r := newRig(t, v.engine)
						s := r.node(v.opts)
						r.line.BreakOne(n, fault)
						shareOverLine(t, s)
						isBroken := r.line.Calls() >= n
						r.line.Break(nil)
						requireShared(t, s)
						if !isBroken {
							require.Greater(t, n, 8)
							return
						}
					}
				})
			})
		}
	}
}

const sharedShards = 6

// shareOverLine makes two nodes alternately take over shards, and a third node leave.
func shareOverLine(t *testing.T, s *Store) {
	t.Helper()
	ctx := context.Background()
	again := func(what string, call func() error) {
		err := call()
		for range 2 {
			if err == nil {
				return
			}
			err = call()
		}
		require.NoError(t, err, what)
	}
	again("beat", func() error { return s.Beat(ctx, repository.Node{Incarnation: "c", Beat: 1}) })
	for shard := range sharedShards {
		incarnation := fmt.Sprint("node-", shard%2)
		again("beat", func() error {
			return s.Beat(ctx, repository.Node{Incarnation: incarnation, Beat: int64(shard + 1)})
		})
		again("take", func() error {
			_, a, err := s.Nodes(ctx)
			if err != nil || a.Owners[shard] == incarnation {
				return err
			}
			a.Owners[shard] = incarnation
			err = s.Assign(ctx, a)
			if err == nil {
				_, a, err = s.Nodes(ctx)
				require.NoError(t, err)
				require.Equal(t, incarnation, a.Owners[shard])
			}
			return err
		})
	}
	again("leave", func() error { return s.Leave(ctx, "c") })
}

func requireShared(t *testing.T, s *Store) {
	t.Helper()
	nodes, a, err := s.Nodes(context.Background())
	require.NoError(t, err)
	require.Len(t, nodes, 2)
	require.EqualValues(t, sharedShards, nodes[1].Beat)
	for shard, owner := range a.Owners {
		if shard < sharedShards {
			require.Equal(t, fmt.Sprint("node-", shard%2), owner)
		} else {
			require.Empty(t, owner)
		}
	}
	require.EqualValues(t, sharedShards, a.Version, "each was stored once")
}

func TestAnAssignmentOfANewerVersion_KeepsItsMembers(t *testing.T) {
	r := newRig(t, embedded.Options{})
	s := r.node(Options{})
	require.NoError(t, s.Assign(t.Context(), repository.Assignment{}))
	c := s.client.Begin("test")
	doc := &nodeDoc{}
	etag, err := c.Read(t.Context(), s.cursors, nodesKey, assignmentID, doc)
	require.NoError(t, err)
	doc.Unknown = []byte(`{"zones":["a"]}`)
	_, err = c.Put(t.Context(), s.cursors, nodesKey, assignmentID, etag, doc)
	require.NoError(t, err)
	require.NoError(t, s.Assign(t.Context(), repository.Assignment{Version: 1}))
	_, err = c.Read(t.Context(), s.cursors, nodesKey, assignmentID, doc)
	require.NoError(t, err)
	require.EqualValues(t, 2, doc.Version)
	require.JSONEq(t, `{"zones":["a"]}`, string(doc.Unknown))

	doc.Owners = map[string]string{"a": "all"}
	require.ErrorContains(t, doc.Validate(), "owner \"a\"")
	for _, text := range []string{"", " ", "topic|a", "queue|a ", "topic|a |shard"} {
		_, err := parseSignal(text)
		require.Error(t, err, text)
	}
}

// A single node stores a beat and reads all nodes every 2 seconds. If there are several nodes, each node
// reads all nodes every 500 ms.
func TestANode_CostsUpToItsLimit(t *testing.T) {
	b := newBill(t)
	var a repository.Assignment
	for shard := range a.Owners {
		a.Owners[shard] = fmt.Sprintf("an-incarnation-of-node-%d", shard%3)
	}
	require.NoError(t, b.node.Assign(t.Context(), a))
	beat := func(number int64, signals int) float64 {
		b.steps = make(map[string]float64)
		n := repository.Node{Incarnation: a.Owners[0], Beat: number, Signalled: int64(signals)}
		for range signals {
			n.Signals = append(n.Signals, repository.Signal{Stream: b.stream})
		}
		b.payFor("beat", func() { require.NoError(t, b.node.Beat(t.Context(), n)) })
		return b.totalUnits(1)
	}
	look := func() float64 {
		b.steps = make(map[string]float64)
		b.payFor("look", func() {
			_, _, err := b.node.Nodes(t.Context())
			require.NoError(t, err)
		})
		return b.totalUnits(1)
	}
	beat(1, 0)
	require.LessOrEqual(t, beat(2, 0), 11.7)
	alone := 11.7 + look()
	require.LessOrEqual(t, alone/2, 8.0, "RU/s of a node alone")
	for i := 1; i < 3; i++ {
		require.NoError(t, b.node.Beat(t.Context(), repository.Node{Incarnation: a.Owners[i], Beat: 1}))
	}
	require.LessOrEqual(t, look(), 6.5, "of three nodes")
	require.LessOrEqual(t, beat(3, 1), 12.0, "with a signal")
	require.LessOrEqual(t, beat(4, repository.MaxSignals), 14.0, "with as many as there may be")
}
