package level

import (
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// sightings are an observer's records of the beats of nodes, by node id.
type sightings map[string]beatSighting

// A beatSighting is a number of beats, and the time of the first observation of this number.
type beatSighting struct {
	beat  int64
	moved time.Time
}

// A nodeObservation is a node, and the time for which its number of beats has been unchanged.
type nodeObservation struct {
	Node
	since time.Duration
	moves bool // the number of beats has changed since the previous observation
}

// observeNodes records the nodes that were read at the time now, and returns an observation of each.
func (s sightings) observeNodes(nodes []Node, now time.Time) []nodeObservation {
	all := make([]nodeObservation, len(nodes))
	present := make(sightings, len(nodes))
	for i, n := range nodes {
		seen, isKnown := s[n.ID]
		moves := isKnown && seen.beat != n.Beat
		if !isKnown || moves {
			seen = beatSighting{n.Beat, now}
		}
		present[n.ID] = seen
		all[i] = nodeObservation{n, now.Sub(seen.moved), moves}
	}
	clear(s)
	for id, seen := range present {
		s[id] = seen
	}
	return all
}

// anyBeat is a number of beats with which removeNodes removes a node unconditionally.
const anyBeat = -1

// maxRemoved is the limit for the nodes that one patch removes: a patch has up to 10 operations.
const maxRemoved = 8

// removeNodes removes up to maxRemoved nodes, on condition that their numbers of beats are unchanged.
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
