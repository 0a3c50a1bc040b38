package cosmos

import (
	"maps"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A gate determines which events of one group a recipient has acknowledged. It is in the partition of the
// recipient's bundles. Every write of a gate is conditional.
//
// The methods below are its transitions: each returns the next gate and does not change its receiver.
type gate struct {
	ID         string                   `json:"id"`
	Recipient  string                   `json:"recipient"`
	Kind       string                   `json:"kind"` // always "gate"
	WriteID    string                   `json:"operation"`
	Generation int64                    `json:"generation"`
	Frozen     bool                     `json:"frozen,omitempty"` // set by an operator: no Peek or Dequeue succeeds
	Last       string                   `json:"last,omitempty"`   // id of the bundle that was closed last
	Open       string                   `json:"open,omitempty"`   // id of the open bundle
	Opened     time.Time                `json:"opened,omitzero"`
	First      domain.Sequence          `json:"first,omitempty"` // number of the first event of the open bundle
	At         map[cabinetName]position `json:"at"`
	Expiring   bool                     `json:"expiring,omitempty"` // every closed bundle of the group expires; see expireBundles
	// DequeueRequests are the subscriptions for which a Dequeue writes a notice. Every gate of a
	// recipient has the same requests.
	DequeueRequests []string `json:"dequeueRequests,omitempty"`

	Removed domain.Sequence `json:"removed,omitempty"` // in cabinets without a position in At, all numbers up to this one are acknowledged
	ETag    azcore.ETag     `json:"_etag,omitempty"`
	client.Document
}

const gateKind = "gate"

func gateID(g domain.Group) string { return "gate." + g.String() }

// A position is just after the last acknowledged event of a cabinet.
type position struct {
	Ordinal  int             `json:"ordinal"` // ordinal of the drawer; 0: before the first drawer
	Slot     int             `json:"slot"`
	Sequence domain.Sequence `json:"sequence"`
	Total    int64           `json:"total"` // number of events that were ever acknowledged

	NextSaved millis `json:"nextSaved,omitempty"` // time at which the next event was saved; 0: unknown

	// Doubt is the highest number that the gate had passed before it was moved back. While the gate is
	// below Doubt, entries may be too high.
	Doubt domain.Sequence `json:"doubt,omitempty"`

	Unknown client.UnknownMembers `json:",embed"`
}

// newGate returns the gate of a group in which a recipient has acknowledged no event.
func (r *Repository) newGate(recipient domain.ActorID, group domain.Group) *gate {
	return &gate{ID: gateID(group), Recipient: recipient.String(), Kind: gateKind, Expiring: true, Frozen: r.opts.FreezeNew}
}

// clone returns a copy of g that can be changed and written instead of g.
func (g *gate) clone() *gate {
	c := *g
	c.At = maps.Clone(g.At)
	if c.At == nil {
		c.At = make(map[cabinetName]position)
	}
	c.ETag = ""
	return &c
}

// confirm returns a copy of g with the next generation. If the copy can be written, g was current. Every
// transition begins with confirm.
func (g *gate) confirm(writeID string) *gate {
	c := g.clone()
	c.WriteID, c.Generation = writeID, g.Generation+1
	return c
}

// open returns g with d as its open bundle.
func (g *gate) open(d *bundleDoc, writeID string) *gate {
	c := g.confirm(writeID)
	c.Open, c.Opened, c.First = d.ID, d.Opened, d.First
	if at := g.At[d.Cabinet]; at.Ordinal != d.Start.Ordinal || at.Sequence != d.Start.Sequence {
		c.At[d.Cabinet] = d.Start // a Dequeue cannot derive this position, because it reads no head
	}
	return c
}

// advancePast returns g with its position moved past bundle d, and with d closed.
func (g *gate) advancePast(d *bundleDoc, writeID string) *gate {
	c := g.release(writeID)
	c.Last = d.ID
	end := d.Ranges[len(d.Ranges)-1]
	at := position{
		Ordinal: end.Ordinal, Slot: end.To, Sequence: d.Last,
		Total: g.At[d.Cabinet].Total + int64(d.Count), NextSaved: d.NextSaved,
	}
	if doubt := g.At[d.Cabinet].Doubt; doubt > d.Last {
		at.Doubt = doubt
	}
	at.Unknown = g.At[d.Cabinet].Unknown
	c.At[d.Cabinet] = at
	return c
}

// rewindTo returns g with its position moved back to the start of bundle d, and with d open.
func (g *gate) rewindTo(d *bundleDoc, writeID string) *gate {
	c := g.open(d, writeID)
	c.Last = d.Before
	start := d.Start
	start.Unknown = g.At[d.Cabinet].Unknown
	start.Doubt = max(start.Doubt, g.At[d.Cabinet].Sequence, g.At[d.Cabinet].Doubt)
	c.At[d.Cabinet] = start
	return c
}

// release returns g without an open bundle. The positions do not change, so the events of the bundle are
// delivered again.
func (g *gate) release(writeID string) *gate {
	c := g.confirm(writeID)
	c.Open, c.Opened, c.First = "", time.Time{}, 0
	return c
}

// recordRetention returns g for a bundle that was closed with this retention. It clears Expiring if the
// retention is not positive, because the bundle then never expires.
func (g *gate) recordRetention(retention time.Duration) *gate {
	if retention > 0 || !g.Expiring {
		return g
	}
	c := g.clone()
	c.Expiring = false
	return c
}

// setFrozen returns g frozen or thawed.
func (g *gate) setFrozen(frozen bool, writeID string) *gate {
	c := g.confirm(writeID)
	c.Frozen = frozen
	return c
}

// assumeAcknowledged returns g with n more events of a cabinet acknowledged. The result is used to count
// the remaining events, and is never written.
func (g *gate) assumeAcknowledged(name cabinetName, last cabinetState, n int, nextSaved millis) *gate {
	c := g.clone()
	at := c.positionIn(name, last)
	at.Total, at.NextSaved = at.Total+int64(n), nextSaved
	c.At[name] = at
	return c
}

// oldestOpen returns the gate whose bundle has been open for the longest time, or nil if no bundle is
// open.
func oldestOpen(gates map[domain.Group]*gate) *gate {
	var oldest *gate
	for _, g := range gates {
		if g.Open == "" {
			continue
		}
		if oldest == nil || g.Opened.Before(oldest.Opened) || g.Opened.Equal(oldest.Opened) && g.First < oldest.First {
			oldest = g
		}
	}
	return oldest
}

// anyFrozen reports whether an operator has frozen one of the gates.
func anyFrozen(gates map[domain.Group]*gate) bool {
	for _, g := range gates {
		if g.Frozen {
			return true
		}
	}
	return false
}
