package cosmos

import (
	"context"
	"maps"
	"slices"

	"github.com/messagehub/messagehub/domain"
)

// whatToDoInFront is the advice in a log line and in a finding about a gate in front of its head.
const whatToDoInFront = "the store has lost writes, by a failover or because a part of it was restored: " +
	"the next Save or a check with repair raises the head above the gate; have senders send again what they sent since the time that was lost"

// reportInFront reports gates in front of h, if h and the gates were read together and a later read of the
// head confirms the finding. If reads may be stale, only a write could confirm the finding. So
// reportInFront then does nothing, and a check or the next Save reports such a gate.
func (c *call) reportInFront(ctx context.Context, recipient domain.ActorID, gates map[domain.Group]*gate, h *head) error {
	if len(h.findInFront(gates)) == 0 {
		c.r.inFront.remove(recipient)
		return nil
	}
	if c.r.db.ReadsMayBeStale() {
		return nil
	}
	later, err := c.readHead(ctx, recipient)
	if err != nil {
		return err
	}
	if found := later.findInFront(gates); len(found) > 0 {
		c.r.known.forgetRecipient(recipient)
		c.r.inFront.add(recipient, slices.Sorted(maps.Keys(found)))
	}
	return nil
}
