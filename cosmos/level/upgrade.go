package level

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// The values of Change.What.
const (
	created   = "created"
	announced = "announced"
	activated = "activated"
	takenBack = "taken back"
)

// checkInterval is the interval at which an upgrade checks nodes that may be dead.
const checkInterval = 2 * time.Second

// An Upgrade raises the level of a store.
type Upgrade struct {
	Store *Store
	By    string // name of the operator in the history
	// If Alone is set, only the caller uses the store, so all nodes that the store lists are dead.
	Alone  bool
	Report func(string) // called with progress, one sentence each; may be nil
}

// An OlderNodesError reports living nodes that do not know the next level.
type OlderNodesError struct {
	Level int
	Nodes []Node
}

func (e *OlderNodesError) Error() string {
	names := make([]string, len(e.Nodes))
	for i, n := range e.Nodes {
		names[i] = fmt.Sprintf("%s of version %s knows level %d", n.Name(), n.Version, n.Level)
	}
	return fmt.Sprintf("the store cannot get level %d while a node does not know it: %s; replace it by one of this version, and run the command again", e.Level, strings.Join(names, ", "))
}

// Name returns a name of the node for operators.
func (n *Node) Name() string {
	if n.Host == "" {
		return "node " + n.ID
	}
	return "node " + n.Host
}

// Run raises the level of the store to the highest level that this version knows, one level after the
// other, and runs the steps of each level. If a living node does not know the next level, Run fails with
// an *OlderNodesError and does not raise the level further. Run may be interrupted at any point, and run
// again.
func (u *Upgrade) Run(ctx context.Context) error {
	d, err := u.Store.ensureDocument(ctx)
	for err == nil {
		switch {
		case d.Step != nil:
			d, err = u.runStep(ctx, d)
		case d.Announced != 0:
			d, err = u.activateLevel(ctx, d.Announced)
		case d.Level < u.Store.opts.Table.Highest():
			d, err = u.announceLevel(ctx, d.Level+1)
		default:
			return nil
		}
	}
	return err
}

func (u *Upgrade) reportProgress(format string, args ...any) {
	if u.Report != nil {
		u.Report(fmt.Sprintf(format, args...))
	}
}

// announceLevel announces a level once all living nodes know it.
func (u *Upgrade) announceLevel(ctx context.Context, level int) (*levelDocument, error) {
	seen := make(sightings)
	for {
		var older []Node
		d, err := u.Store.updateDocument(ctx, "announce a level", func(d *levelDocument) (*patch, error) {
			if older = olderNodes(d, level); d.Level >= level || d.Announced != 0 || len(older) > 0 {
				return nil, nil
			}
			// A crash after this write leaves the announcement. Another upgrade activates the level, or an operator
			// removes the announcement.
			return &patch{operations: func(ops *azcosmos.PatchOperations) {
				ops.AppendSet("/announced", level)
				appendHistory(d, ops, u.historyEntry(announced, level))
			}}, nil
		})
		if err != nil || len(older) == 0 {
			if err == nil && d.Announced == level {
				u.reportProgress("level %d is announced", level)
			}
			return d, err
		}
		if err := u.removeDead(ctx, seen, older, level); err != nil {
			return nil, err
		}
	}
}

// olderNodes returns the nodes that do not know a level.
func olderNodes(d *levelDocument, level int) (older []Node) {
	for _, n := range nodesOf(d) {
		if n.Level < level {
			older = append(older, n)
		}
	}
	return older
}

// removeDead removes the dead nodes among older. It fails with an *OlderNodesError if an older node is
// alive. While it is unknown whether the older nodes are alive, it waits for checkInterval.
func (u *Upgrade) removeDead(ctx context.Context, seen sightings, older []Node, level int) error {
	isFirst := len(seen) == 0
	var alive, dead []Node
	for _, n := range seen.observeNodes(older, time.Now()) {
		switch {
		case u.Alone, n.since >= deadAfter:
			dead = append(dead, n.Node)
		case n.moves:
			alive = append(alive, n.Node)
		}
	}
	switch {
	case len(alive) > 0:
		return &OlderNodesError{level, alive}
	case len(dead) > 0:
		for _, n := range dead {
			u.reportProgress("%s of version %s is dead, and is removed", n.Name(), n.Version)
		}
		return u.Store.removeNodes(ctx, dead)
	case isFirst:
		for _, n := range older {
			u.reportProgress("%s of version %s knows level %d only; waiting up to %s to see whether it is alive", n.Name(), n.Version, n.Level, deadAfter)
		}
	}
	if !client.Sleep(ctx, checkInterval) {
		return domain.Errorf(domain.Unavailable, "wait for beats of older nodes: %w; the level has not changed", context.Cause(ctx))
	}
	return nil
}

// activateLevel raises the level of the store to the announced level.
func (u *Upgrade) activateLevel(ctx context.Context, level int) (*levelDocument, error) {
	d, err := u.Store.updateDocument(ctx, "activate a level", func(d *levelDocument) (*patch, error) {
		switch err := u.Store.checkKnown(d); {
		case err != nil, d.Level >= level: // another operator has activated the level
			return nil, err
		case d.Announced == 0:
			return nil, domain.Errorf(domain.Conflict, "another operator has taken the upgrade to level %d back; the store has level %d", level, d.Level)
		}
		// A crash after this write leaves a level whose steps have not begun.
		return &patch{operations: func(ops *azcosmos.PatchOperations) {
			ops.AppendSet("/level", level)
			ops.AppendRemove("/announced")
			if steps := u.Store.opts.Table.Level(level).Steps; len(steps) > 0 {
				ops.AppendSet("/step", encodeValue(stepPosition{Name: steps[0].Name}))
			}
			appendHistory(d, ops, u.historyEntry(activated, level))
		}}, nil
	})
	if err == nil && d.Level >= level {
		u.reportProgress("the store has level %d", d.Level)
	}
	return d, err
}

// runStep runs one part of the unfinished step, and stores the position of the next part.
func (u *Upgrade) runStep(ctx context.Context, d *levelDocument) (*levelDocument, error) {
	if err := u.Store.checkKnown(d); err != nil {
		return nil, err
	}
	steps, ran := u.Store.opts.Table.Level(d.Level).Steps, *d.Step
	i := 0
	for i < len(steps) && steps[i].Name != ran.Name {
		i++
	}
	if i == len(steps) {
		return nil, domain.Errorf(domain.NewerFormat, "level %d has the step %q, which this version does not know: run the upgrade with version %s or a newer one",
			d.Level, ran.Name, d.versionOf(d.Level))
	}
	next, err := steps[i].Run(ctx, ran.Position)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; run the command again to continue", ran.Name, err)
	}
	// After a crash before this write, the part runs again.
	return u.Store.updateDocument(ctx, "store the position of a step", func(d *levelDocument) (*patch, error) {
		if d.Step == nil || d.Step.Name != ran.Name || d.Step.Position != ran.Position {
			return nil, nil // another operator has stored the position
		}
		return &patch{operations: func(ops *azcosmos.PatchOperations) {
			switch {
			case next != "":
				ops.AppendSet("/step", encodeValue(stepPosition{Name: ran.Name, Position: next, Unknown: ran.Unknown}))
			case i+1 < len(steps):
				ops.AppendSet("/step", encodeValue(stepPosition{Name: steps[i+1].Name}))
			default:
				ops.AppendRemove("/step")
			}
		}}, nil
	})
}

// TakeBack removes the announcement of a level. isDone is false if no level was announced.
func (u *Upgrade) TakeBack(ctx context.Context) (isDone bool, err error) {
	_, err = u.Store.updateDocument(ctx, "take a level back", func(d *levelDocument) (*patch, error) {
		if d.Announced == 0 {
			return nil, nil
		}
		isDone = true
		// A crash after this write leaves the store at its previous level.
		return &patch{operations: func(ops *azcosmos.PatchOperations) {
			ops.AppendRemove("/announced")
			appendHistory(d, ops, u.historyEntry(takenBack, d.Announced))
		}}, nil
	})
	return isDone, err
}

func (u *Upgrade) historyEntry(what string, level int) *Change {
	c := u.Store.historyEntry(what, level, u.By)
	return &c
}
