package push

import (
	"context"
	"fmt"
	"net/http"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Beat implements [repository.Nodes].
func (s *Store) Beat(ctx context.Context, n repository.Node) error {
	c := s.client.Begin("beat")
	doc := makeNodeDoc(&n)
	ops := client.NewPatch(nodeDocument, fmt.Sprintf("c.beat < %d", n.Beat))
	ops.AppendSet("/beat", doc.Beat)
	ops.AppendSet("/signals", doc.Signals)
	ops.AppendSet("/signalled", doc.Signalled)
	ops.AppendSet("/awaits", doc.Awaits)
	err := c.Retry(ctx, func() error {
		// A crash after this write leaves a node that seems to be alive for a while.
		err := c.Patch(ctx, s.cursors, nodesKey, doc.ID, ops, &nodeDoc{})
		switch {
		case client.StatusOf(err) == http.StatusPreconditionFailed:
			var stored nodeDoc
			_, err = c.Read(ctx, s.cursors, nodesKey, doc.ID, &stored)
			if client.IsNotFound(err) || err == nil && stored.Beat < n.Beat { // a stale read, or a refusal without a cause
				err = client.ErrStale
			}
			return err
		case client.IsNotFound(err):
			if _, err = c.Put(ctx, s.cursors, nodesKey, doc.ID, "", doc); client.IsRefused(err) {
				err = client.ErrStale
			}
		}
		return err
	})
	return c.Outcome("store that node "+n.Incarnation+" is alive", err)
}

// Nodes implements [repository.Nodes].
func (s *Store) Nodes(ctx context.Context) ([]repository.Node, repository.Assignment, error) {
	c := s.client.Begin("read nodes")
	var nodes []repository.Node
	var assignment repository.Assignment
	docs, err := client.All[nodeDoc](ctx, c.Query(s.cursors, nodesKey, "SELECT * FROM c"))
	for _, d := range docs {
		if err != nil {
			break
		}
		if d.ID == assignmentID {
			assignment, err = d.assignment()
			continue
		}
		var n repository.Node
		n, err = d.node()
		nodes = append(nodes, n)
	}
	return nodes, assignment, c.Outcome("read the nodes", err)
}

// Assign implements [repository.Nodes].
func (s *Store) Assign(ctx context.Context, a repository.Assignment) error {
	c := s.client.Begin("assign shards")
	next := makeAssignmentDoc(&a, s.client.NewID())
	err := c.Retry(ctx, func() error {
		stored := &nodeDoc{}
		etag, err := c.Read(ctx, s.cursors, nodesKey, assignmentID, stored)
		switch {
		case client.IsNotFound(err) && a.Version == 0:
			stored, etag = &nodeDoc{}, ""
		case client.IsNotFound(err):
			return domain.Errorf(domain.Conflict, "there is no assignment")
		case err != nil:
			return err
		case stored.WriteID == next.WriteID:
			return nil
		case stored.Version != a.Version:
			return domain.Errorf(domain.Conflict, "the assignment has version %d, not %d", stored.Version, a.Version)
		}
		next.Document = stored.Document
		// A crash after this write leaves shards of a dead node, which the others take over.
		_, err = c.Put(ctx, s.cursors, nodesKey, assignmentID, etag, next)
		if client.IsRefused(err) {
			return client.ErrStale
		}
		return err
	})
	return c.Outcome("assign shards", err)
}

// Leave implements [repository.Nodes].
func (s *Store) Leave(ctx context.Context, incarnation string) error {
	c := s.client.Begin("leave")
	// A crash before this write leaves a node without shards that seems to be alive for a while.
	err := c.Discard(ctx, s.cursors, nodesKey, nodeID(incarnation))
	return c.Outcome("remove node "+incarnation, err)
}
