package level

import (
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// sightings are what an observer has seen of the beats of nodes, by id.
type sightings map[string]beatSighting

// A beatSighting is a number of beats, and when it was seen first.
type beatSighting struct {
	beat  int64
	moved time.Time
}

// An observed is a node, and since when its number of beats has not moved.
type observed struct {
	Node
	since time.Duration
	moves bool // it has moved while it was observed
}

// observeNodes notes what was read at a time, and returns each node with what is known of it.
func (s sightings) observeNodes(nodes []Node, now time.Time) []observed {
	all := make([]observed, len(nodes))
	present := make(sightings, len(nodes))
	for i, n := range nodes {
		seen, isKnown := s[n.ID]
		moves := isKnown && seen.beat != n.Beat
		if !isKnown || moves {
			seen = beatSighting{n.Beat, now}
		}
		present[n.ID] = seen
		all[i] = observed{n, now.Sub(seen.moved), moves}
	}
	clear(s)
	for id, seen := range present {
		s[id] = seen
	}
	return all
}

// anyBeat is the beat of a node that is removed however often it has beaten.
const anyBeat = -1

// maxRemoved is the limit for the nodes that one patch removes: it has up to 10 operations.
const maxRemoved = 8

// removeNodes removes up to maxRemoved nodes that have the beats that were observed.
func (s *Store) removeNodes(ctx context.Context, nodes []Node) error {
	_, err := s.updateDocument(ctx, "remove nodes of the store", func(d *levelDocument) (*patch, error) {
		p := &patch{}
		var ids []string
		for _, n := range nodes {
			stored, isThere := d.Nodes[n.ID]
			if !isThere || n.Beat != anyBeat && stored.Beat != n.Beat || len(ids) == maxRemoved {
				continue
			}
			ids = append(ids, n.ID)
			if n.Beat != anyBeat {
				p.conditions = append(p.conditions, fmt.Sprintf("c.nodes['%s'].beat = %d", n.ID, n.Beat))
			}
		}
		p.operations = func(ops *azcosmos.PatchOperations) {
			for _, id := range ids {
				ops.AppendRemove(pathOf(id))
			}
		}
		if len(ids) == 0 {
			return nil, nil
		}
		return p, nil
	})
	return err
}
