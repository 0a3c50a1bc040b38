package level

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// Intervals and timeouts of nodes.
const (
	beatEvery    = 10 * time.Second
	deadAfter    = 4 * beatEvery // time without a beat after which an upgrade counts a node as dead
	forgetAfter  = 10 * time.Minute
	leaveTimeout = 5 * time.Second
)

// maxNodes is the limit for the nodes in the document. Nodes that start and die repeatedly leave entries
// in the document.
const maxNodes = 500

// A Member is a node in the document. Its methods are safe for concurrent use.
type Member struct {
	store *Store
	id    string
	self  storedNode

	seen sightings // only Run uses it

	mu     sync.Mutex
	status Status
}

// Join adds a node for this process to the document. host is its name for operators. Join fails with
// NewerFormat in the cases in which Open does. If the process dies, the node counts as alive for a while.
func (s *Store) Join(ctx context.Context, host string) (*Member, error) {
	m := &Member{
		store: s, id: s.client.NewID(), seen: make(sightings),
		self: storedNode{Version: s.opts.Version, Host: host, Level: s.opts.Table.Highest(), Beat: 1},
	}
	return m, m.joinStore(ctx)
}

func (m *Member) joinStore(ctx context.Context) error {
	d, err := m.store.updateDocument(ctx, "join the nodes of the store", func(d *levelDocument) (*patch, error) {
		if err := m.store.checkKnown(d); err != nil {
			return nil, err
		}
		if _, isThere := d.Nodes[m.id]; isThere {
			return nil, nil
		}
		return &patch{operations: func(ops *azcosmos.PatchOperations) {
			if len(d.Nodes) >= maxNodes { // a removed node that is alive joins again
				ops.AppendRemove(pathOf(youngestNode(d)))
			}
			ops.AppendSet(pathOf(m.id), encodeValue(m.self))
		}}, nil
	})
	if err == nil {
		m.noteDocument(d)
	}
	return err
}

// pathOf returns the JSON path of a node in the level document.
func pathOf(id string) string { return "/nodes/" + id }

// youngestNode returns the id of the node with the fewest beats.
func youngestNode(d *levelDocument) (id string) {
	for _, n := range nodesOf(d) {
		if id == "" || n.Beat < d.Nodes[id].Beat {
			id = n.ID
		}
	}
	return id
}

// ID returns the id of the node, which is unique in the store.
func (m *Member) ID() string { return m.id }

// Status returns the level and the nodes as of the last beat.
func (m *Member) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status
}

func (m *Member) noteDocument(d *levelDocument) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status = m.store.statusOf(d)
}

// Run stores beats until ctx ends. It returns a NewerFormat error if the level is higher than this
// version knows; the node must then stop writing, and end. It logs other failures and continues.
func (m *Member) Run(ctx context.Context) error {
	ticker := time.NewTicker(m.store.opts.BeatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := m.storeBeat(ctx)
		if domain.KindOf(err) == domain.NewerFormat {
			return err
		}
		if err != nil && ctx.Err() == nil {
			m.store.opts.Logger.WarnContext(ctx, "the node could not store its beat; it retries", "error", err)
		}
	}
}

// storeBeat stores a beat, and reads the level and the other nodes. If the node is not in the document,
// it joins again.
func (m *Member) storeBeat(ctx context.Context) error {
	m.self.Beat++
	ops := client.NewPatch(Document, fmt.Sprintf("IS_DEFINED(c.nodes['%s'])", m.id))
	ops.AppendSet(pathOf(m.id)+"/beat", m.self.Beat)
	var d *levelDocument
	isMissing := false
	c := m.store.client.Begin("beat of the level")
	err := c.Retry(ctx, func() (err error) {
		// A crash before or after this write leaves a node that counts as alive for a while.
		if d, err = m.store.applyPatch(ctx, c, ops); !errors.Is(err, client.ErrStale) {
			return err
		}
		if d, err = m.store.currentDocument(ctx, c); err != nil {
			return err
		}
		if _, isThere := d.Nodes[m.id]; isThere {
			return client.ErrStale
		}
		isMissing = true
		return nil
	})
	switch {
	case client.IsNotFound(err): // an operator has deleted the document
		if _, err = m.store.ensureDocument(ctx); err == nil {
			err = m.joinStore(ctx)
		}
		return err
	case err != nil:
		return c.Outcome("show that the node is alive", err)
	case isMissing:
		return m.joinStore(ctx)
	}
	m.noteDocument(d)
	if err := m.store.checkKnown(d); err != nil {
		return err
	}
	return m.removeDead(ctx, d)
}

// removeDead removes every other node whose number of beats has not changed for forgetAfter.
func (m *Member) removeDead(ctx context.Context, d *levelDocument) error {
	var dead []Node
	for _, n := range m.seen.observeNodes(nodesOf(d), time.Now()) {
		if n.since >= forgetAfter && n.ID != m.id {
			dead = append(dead, n.Node)
		}
	}
	if len(dead) == 0 {
		return nil
	}
	return m.store.removeNodes(ctx, dead)
}

// Leave removes the node, so that it no longer counts as alive. It logs a failure. A node that was not
// removed counts as dead after a while.
func (m *Member) Leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if err := m.store.removeNodes(ctx, []Node{{ID: m.id, Beat: anyBeat}}); err != nil {
		m.store.opts.Logger.WarnContext(ctx, "the node could not be removed from the nodes of the store", "error", err)
	}
}
