package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Nodes stores nodes and their assignment in memory.
type Nodes struct {
	clock func() time.Time

	mu         sync.Mutex
	nodes      map[string]storedNode
	assignment repository.Assignment
}

var _ repository.Nodes = (*Nodes)(nil)

type storedNode struct {
	repository.Node
	stored time.Time
}

// NewNodes returns an empty Nodes. clock must not be nil.
func NewNodes(clock func() time.Time) *Nodes {
	return &Nodes{clock: clock, nodes: make(map[string]storedNode)}
}

// Beat implements [repository.Nodes].
func (s *Nodes) Beat(ctx context.Context, n repository.Node) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("beat: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[n.Incarnation].Beat < n.Beat {
		n.Signals, n.Awaits = slices.Clone(n.Signals), slices.Clone(n.Awaits)
		s.nodes[n.Incarnation] = storedNode{n, s.clock()}
	}
	return nil
}

// Nodes implements [repository.Nodes].
func (s *Nodes) Nodes(ctx context.Context) ([]repository.Node, repository.Assignment, error) {
	if err := ctx.Err(); err != nil {
		return nil, repository.Assignment{}, fmt.Errorf("nodes: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	maps.DeleteFunc(s.nodes, func(_ string, n storedNode) bool { return now.Sub(n.stored) > repository.NodeRetention })
	var nodes []repository.Node
	for _, n := range s.nodes {
		n.Signals, n.Awaits = slices.Clone(n.Signals), slices.Clone(n.Awaits)
		nodes = append(nodes, n.Node)
	}
	slices.SortFunc(nodes, func(a, b repository.Node) int { return cmp.Compare(a.Incarnation, b.Incarnation) })
	return nodes, s.assignment, nil
}

// Assign implements [repository.Nodes].
func (s *Nodes) Assign(ctx context.Context, a repository.Assignment) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("assign: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.assignment.Version != a.Version {
		return domain.Errorf(domain.Conflict, "the assignment has version %d, not %d", s.assignment.Version, a.Version)
	}
	a.Version++
	s.assignment = a
	return nil
}

// Leave implements [repository.Nodes].
func (s *Nodes) Leave(ctx context.Context, incarnation string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, incarnation)
	return nil
}
