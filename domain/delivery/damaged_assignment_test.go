package delivery_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/delivery/deliverytest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// troubledNodes is a store whose assignment is damaged or cannot be read. The damage ends when a
// node stores an assignment.
type troubledNodes struct {
	mu     sync.Mutex
	nodes  repository.Nodes
	damage error
	isOff  func() bool // reports whether reads fail; nil: reads succeed
}

func (s *troubledNodes) change(f func(*troubledNodes)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *troubledNodes) Beat(ctx context.Context, n repository.Node) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes.Beat(ctx, n)
}

func (s *troubledNodes) Nodes(ctx context.Context) ([]repository.Node, repository.Assignment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes, a, err := s.nodes.Nodes(ctx)
	if s.isOff != nil && s.isOff() {
		err = domain.Errorf(domain.NewerFormat, "the assignment is of a newer version")
	}
	if s.damage != nil {
		a = repository.Assignment{Damage: s.damage}
	}
	return nodes, a, err
}

func (s *troubledNodes) Assign(ctx context.Context, a repository.Assignment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damage != nil {
		_, stored, err := s.nodes.Nodes(ctx)
		if err != nil {
			return err
		}
		a.Version = stored.Version
	}
	err := s.nodes.Assign(ctx, a)
	if err == nil {
		s.damage = nil
	}
	return err
}

func (s *troubledNodes) Leave(ctx context.Context, incarnation string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes.Leave(ctx, incarnation)
}

// A logBuffer has the log lines of nodes.
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

// newTroubledWorld returns a world with two nodes that share 20 receivers.
func newTroubledWorld(t *testing.T) (w *deliverytest.World, s *troubledNodes, receivers []*deliverytest.Receiver, nodes []*deliverytest.Node, logged *logBuffer) {
	w = deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores {
		stores := openMemory(t, clock)
		s = &troubledNodes{nodes: stores.Nodes}
		stores.Nodes = s
		return stores
	})
	w.Shared, logged = true, &logBuffer{}
	for range 20 {
		receivers = append(receivers, w.Add(&deliverytest.Receiver{Policy: domain.DefaultPolicy()}))
	}
	for range 2 {
		nodes = append(nodes, w.Start(delivery.Options{CheckInterval: time.Hour, Logger: slog.New(slog.NewTextHandler(logged, nil))}))
		<-time.After(15 * time.Second)
	}
	return w, s, receivers, nodes, logged
}

// ownersOf returns the owners of all shards.
func ownersOf(t *testing.T, s repository.Nodes) [repository.ShardCount]string {
	t.Helper()
	_, a, err := s.Nodes(context.Background())
	require.NoError(t, err)
	return a.Owners
}

func TestADamagedAssignment_IsReplacedByTheLastOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s, receivers, nodes, logged := newTroubledWorld(t)
		before, loads := ownersOf(t, s), w.Loads()
		s.change(func(s *troubledNodes) { s.damage = domain.Errorf(domain.Damaged, "document x cannot be read") })
		for range 20 {
			w.Publish(nodes[0], 1)
			<-time.After(time.Second)
		}
		require.Equal(t, before, ownersOf(t, s))
		require.Equal(t, loads, w.Loads(), "no cursor has changed its owner")
		for _, r := range receivers {
			require.Len(t, r.Taken(), 20)
		}
		require.Equal(t, 1, logged.count("document x cannot be read"), "the node that replaces it logs it")
		for _, n := range nodes {
			n.Stop()
		}
	})
}

func TestAnAssignmentThatIsRemovedByHand_IsCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s, receivers, nodes, _ := newTroubledWorld(t)
		s.change(func(s *troubledNodes) { s.nodes = memory.NewNodes(w.Clock.Now) })
		<-time.After(30 * time.Second)
		for _, owner := range ownersOf(t, s) {
			require.NotEmpty(t, owner)
		}
		nodes[0].Kill()
		<-time.After(30 * time.Second)
		w.Publish(nodes[1], 1)
		<-time.After(time.Minute)
		for _, r := range receivers {
			require.Len(t, r.Taken(), 1, "the other node has taken all shards")
		}
		nodes[1].Stop()
	})
}

func TestANodeThatCannotLook_LeavesItsShardsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s, receivers, nodes, _ := newTroubledWorld(t)
		blind := &troubledNodes{nodes: s.nodes, isOff: func() bool { return true }}
		w.Stores.Nodes = blind
		third := w.Start(delivery.Options{CheckInterval: time.Hour})
		<-time.After(30 * time.Second)
		for _, owner := range ownersOf(t, s) {
			require.Contains(t, []string{"node-1", "node-2"}, owner)
		}
		blind.change(func(s *troubledNodes) { s.isOff = nil })
		<-time.After(30 * time.Second)
		require.Contains(t, ownersOf(t, s), "node-3")
		blind.change(func(s *troubledNodes) { s.isOff = func() bool { return true } })
		<-time.After(30 * time.Second)
		require.NotContains(t, ownersOf(t, s), "node-3", "it does not beat, so that it seems to have ended")
		w.Publish(nodes[0], 1)
		<-time.After(time.Minute)
		for _, r := range receivers {
			require.Len(t, r.Taken(), 1)
		}
		for _, n := range append(nodes, third) {
			n.Stop()
		}
	})
}
