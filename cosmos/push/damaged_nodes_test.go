package push

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/delivery/deliverytest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A logBuffer collects the log records of stores.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logBuffer) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// overwrite replaces all members of a document except its id and partition key.
func (s *Store) overwrite(t testing.TB, key, id string, members map[string]any) {
	t.Helper()
	ctx, c := context.Background(), s.client.Begin("test")
	var stored map[string]any
	etag, err := c.Read(ctx, s.cursors, key, id, &stored)
	require.NoError(t, err)
	doc := map[string]any{"id": id, "partitionKey": key}
	for name, value := range members {
		doc[name] = value
	}
	_, err = c.Put(ctx, s.cursors, key, id, etag, doc)
	require.NoError(t, err)
}

func TestAnAssignmentThatCannotBeRead_IsReplacedWhateverItsVersion(t *testing.T) {
	for name, members := range map[string]map[string]any{
		"owner":   {"kind": "assignment", "version": 7, "owners": map[string]string{"a": "all"}},
		"type":    {"kind": "assignment", "version": 7, "owners": 12},
		"version": {"kind": "assignment", "version": "seven"},
		"nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRig(t, embedded.Options{}).node(Options{})
			require.NoError(t, s.Beat(t.Context(), repository.Node{Incarnation: "a", Beat: 1}))
			require.NoError(t, s.Assign(t.Context(), repository.Assignment{}))
			s.overwrite(t, nodesKey, assignmentID, members)

			nodes, damaged, err := s.Nodes(t.Context())
			require.NoError(t, err)
			require.Len(t, nodes, 1)
			require.ErrorContains(t, damaged.Damage, `document "assignment"`)
			require.Zero(t, damaged.Version)

			known := repository.Assignment{Version: 41, Owners: [repository.ShardCount]string{3: "a"}}
			require.NoError(t, s.Assign(t.Context(), known))
			require.Equal(t, domain.Conflict, domain.KindOf(s.Assign(t.Context(), known)), "it can be read again")
			_, stored, err := s.Nodes(t.Context())
			require.NoError(t, err)
			require.Equal(t, repository.Assignment{Version: 42, Owners: known.Owners}, stored)
		})
	}
}

// After one node has read a damaged assignment, another node replaces it. The write of the first node
// fails with Conflict.
func TestADamagedAssignment_IsReplacedByOneNode(t *testing.T) {
	r := newRig(t, embedded.Options{})
	late, other := r.node(Options{}), r.otherStore()
	require.NoError(t, other.Assign(t.Context(), repository.Assignment{}))
	other.overwrite(t, nodesKey, assignmentID, map[string]any{})
	var err error
	r.line.Break(func(call int, _ *http.Request) faulty.Fault {
		if call == 2 { // at call 2, the slow node has read the assignment but has not replaced it
			err = other.Assign(context.Background(), repository.Assignment{Version: 5, Owners: [repository.ShardCount]string{"other"}})
		}
		return faulty.None
	})
	require.Equal(t, domain.Conflict, domain.KindOf(late.Assign(t.Context(), repository.Assignment{Version: 1})))
	require.NoError(t, err)
	_, stored, err := other.Nodes(t.Context())
	require.NoError(t, err)
	require.Equal(t, "other", stored.Owners[0])
}

func TestABeatThatCannotBeRead_HidesNoOtherAndIsStoredAgain(t *testing.T) {
	for name, members := range map[string]map[string]any{
		"signal":      {"kind": "node", "incarnation": "a", "beat": 3, "signals": []string{"?"}},
		"type":        {"kind": "node", "incarnation": "a", "beat": "three"},
		"incarnation": {"kind": "node", "incarnation": 5, "beat": 3},
		"awaits":      {"kind": "node", "incarnation": "a", "beat": 3, "awaits": "?"},
		"nothing":     {},
	} {
		t.Run(name, func(t *testing.T) {
			var logged logBuffer
			s := newRig(t, embedded.Options{}).node(Options{Logger: logged.logger()})
			beat := func(incarnation string, beat int64) {
				t.Helper()
				require.NoError(t, s.Beat(t.Context(), repository.Node{Incarnation: incarnation, Beat: beat}))
			}
			seen := func() map[string]int64 {
				t.Helper()
				nodes, _, err := s.Nodes(t.Context())
				require.NoError(t, err)
				all := make(map[string]int64)
				for _, n := range nodes {
					all[n.Incarnation] = n.Beat
				}
				return all
			}
			beat("a", 3)
			beat("b", 1)
			s.overwrite(t, nodesKey, nodeID("a"), members)
			require.Equal(t, map[string]int64{"b": 1}, seen())
			require.Equal(t, 1, logged.count("node|a"))
			beat("a", 4)
			require.Equal(t, map[string]int64{"a": 4, "b": 1}, seen())

			s.overwrite(t, nodesKey, nodeID("a"), members) // no node reads the damaged document before the next beat replaces it
			beat("a", 5)
			require.Equal(t, map[string]int64{"a": 5, "b": 1}, seen())
		})
	}
}

func TestANodeWithABeatOfANewerFormat_CountsAsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, embedded.Options{})
		s := r.node(Options{})
		require.NoError(t, s.Beat(t.Context(), repository.Node{Incarnation: "new", Beat: 1}))
		var beats []int64
		for range 2 {
			<-time.After(2 * time.Second)
			s.overwrite(t, nodesKey, nodeID("new"), map[string]any{"v": nodeDocument.Format + 1, "kind": "node", "beat": "in words"})
			nodes, _, err := s.Nodes(t.Context())
			require.NoError(t, err)
			require.Len(t, nodes, 1)
			require.Equal(t, "new", nodes[0].Incarnation)
			beats = append(beats, nodes[0].Beat)
		}
		require.Greater(t, beats[1], beats[0])
	})
}

func TestAnAssignmentOfANewerFormat_IsNotReplaced(t *testing.T) {
	s := newRig(t, embedded.Options{}).node(Options{})
	require.NoError(t, s.Assign(t.Context(), repository.Assignment{}))
	s.overwrite(t, nodesKey, assignmentID, map[string]any{"v": assignmentDocument.Format + 1, "version": "in words"})
	_, _, err := s.Nodes(t.Context())
	require.Equal(t, domain.NewerFormat, domain.KindOf(err))
	require.Equal(t, domain.NewerFormat, domain.KindOf(s.Assign(t.Context(), repository.Assignment{Version: 1})))
}

func TestDamagedDocumentsOfNodes_StopNoDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *Store
		var logged logBuffer
		w := deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores {
			r := newRig(t, embedded.Options{Clock: clock.Now})
			s = r.node(Options{Clock: clock.Now, Logger: logged.logger()})
			return r.stores(s)
		})
		w.Shared = true
		var receivers []*deliverytest.Receiver
		for range 8 {
			receivers = append(receivers, w.Add(&deliverytest.Receiver{Policy: domain.DefaultPolicy()}))
		}
		var nodes []*deliverytest.Node
		for range 2 {
			nodes = append(nodes, w.Start(delivery.Options{CheckInterval: time.Hour, Logger: logged.logger()}))
			<-time.After(15 * time.Second)
		}
		for i, id := range []string{assignmentID, nodeID("node-1"), nodeID("node-2"), assignmentID} {
			s.overwrite(t, nodesKey, id, map[string]any{"kind": 7})
			<-time.After(5 * time.Second)
			w.Publish(nodes[i%2], 1)
			<-time.After(5 * time.Second)
			for _, r := range receivers {
				require.Len(t, r.Taken(), i+1)
			}
			require.Positive(t, logged.count(strings.TrimPrefix(id, "|")), id)
		}
		for _, n := range nodes {
			n.Stop()
		}
	})
}
