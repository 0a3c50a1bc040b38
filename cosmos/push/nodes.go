package push

import (
	"context"
	"fmt"
	"net/http"
	"strings"

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
		// A crash after this write leaves a node that seems to be alive until its beat is 10 seconds old.
		err := c.Patch(ctx, s.cursors, nodesKey, doc.ID, ops, &nodeDoc{})
		switch {
		case client.StatusOf(err) == http.StatusPreconditionFailed, domain.KindOf(err) == domain.Damaged:
			err = s.compareBeat(ctx, c, doc)
		case client.IsNotFound(err):
			if _, err = c.Put(ctx, s.cursors, nodesKey, doc.ID, "", doc); client.IsRefused(err) {
				err = client.ErrStale
			}
		}
		return err
	})
	return c.Outcome("store that node "+n.Incarnation+" is alive", err)
}

// compareBeat is called after a beat was refused. It returns nil if the document of the node stores the
// same beat or a later one. If the document cannot be read, compareBeat replaces it, because no other
// node stores beats there.
func (s *Store) compareBeat(ctx context.Context, c *client.Call, beat *nodeDoc) error {
	var stored nodeDoc
	etag, err := c.Read(ctx, s.cursors, nodesKey, beat.ID, &stored)
	switch {
	case client.IsNotFound(err), err == nil && stored.Beat < beat.Beat: // either the read is stale, or the refusal was spurious
		return client.ErrStale
	case domain.KindOf(err) == domain.Damaged:
		damage := err
		// If the node crashes after this write, the beat is stored completely.
		if _, err = c.Put(ctx, s.cursors, nodesKey, beat.ID, etag, beat); client.IsRefused(err) {
			return client.ErrStale
		}
		if err == nil {
			s.logRepair(ctx, "replaced by a new one", damage)
		}
	}
	return err
}

// logRepair logs that a damaged document of a node was replaced or removed.
func (s *Store) logRepair(ctx context.Context, what string, damage error) {
	s.opts.Logger.WarnContext(ctx, "a document of a node could not be read", "done", what, "error", damage)
}

// Nodes implements [repository.Nodes].
func (s *Store) Nodes(ctx context.Context) ([]repository.Node, repository.Assignment, error) {
	c := s.client.Begin("read nodes")
	var nodes []repository.Node
	var assignment repository.Assignment
	docs, unreadable, err := client.AllReadable[nodeDoc](ctx, c.Query(s.cursors, nodesKey, "SELECT * FROM c"))
	for _, d := range docs {
		if d.ID == assignmentID {
			assignment = d.assignment
		} else {
			nodes = append(nodes, d.node)
		}
	}
	for _, u := range unreadable {
		isNewer := domain.KindOf(u.Err) == domain.NewerFormat
		switch {
		case u.ID == assignmentID && isNewer:
			err = u.Err
		case u.ID == assignmentID:
			assignment.Damage = u.Err
		case isNewer: // the beat cannot be read, so the modification time of the document replaces it
			nodes = append(nodes, repository.Node{Incarnation: strings.TrimPrefix(u.ID, nodeID("")), Beat: u.Modified})
		default:
			s.removeDamaged(ctx, c, u.ID)
		}
	}
	return nodes, assignment, c.Outcome("read the nodes", err)
}

// removeDamaged removes the damaged document of a node, unless the document has changed since it was
// read. After a failure, the next call of Nodes tries again.
func (s *Store) removeDamaged(ctx context.Context, c *client.Call, id string) {
	etag, damage := c.Read(ctx, s.cursors, nodesKey, id, &nodeDoc{})
	if domain.KindOf(damage) != domain.Damaged {
		return
	}
	// After this write, the node that the document described seems to have ended until its next beat. A
	// crash here has no further effect.
	if err := c.Delete(ctx, s.cursors, nodesKey, id, etag); err == nil {
		s.logRepair(ctx, "removed; a node that is alive stores it again", damage)
	}
}

// Assign implements [repository.Nodes].
func (s *Store) Assign(ctx context.Context, a repository.Assignment) error {
	c := s.client.Begin("assign shards")
	next := makeAssignmentDoc(&a, s.client.NewID())
	err := c.Retry(ctx, func() error {
		stored := &nodeDoc{}
		etag, err := c.Read(ctx, s.cursors, nodesKey, assignmentID, stored)
		switch {
		case client.IsNotFound(err) && a.Version == 0, domain.KindOf(err) == domain.Damaged:
			stored = &nodeDoc{} // the document cannot be read, but its etag is still valid
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
		// If the node crashes after this write, the assignment may contain shards of a dead node, which
		// other nodes take over.
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
	// If the node crashes before this write, the node has no shards and seems to be alive for 10 seconds.
	err := c.DeleteIfExists(ctx, s.cursors, nodesKey, nodeID(incarnation))
	return c.Outcome("remove node "+incarnation, err)
}
