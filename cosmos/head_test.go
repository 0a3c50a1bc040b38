package cosmos

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/messagehub/messagehub/domain"
)

// transitionHead returns a head with an intent that fills a cabinet from slot 2 of drawer
// 4 and begins drawer 5.
func transitionHead() *head {
	return &head{
		ID: headID, PartitionKey: "a", WriteID: headWriteID{ID: "read"}, Reserved: 13, Watermark: 10, Undone: 1,
		Cabinets: map[cabinetName]cabinetState{
			"c": {Drawer: "old", Fill: 2, Ordinal: 4, Sequence: 10, Total: 9},
			"d": {Drawer: "other", Fill: 1, Ordinal: 1, Sequence: 5, Total: 1},
		},
		Intent: &intent{ID: "i", First: 11, Last: 13, Saved: 77, Parts: []drawerPart{
			{Cabinet: "c", Drawer: "old", Ordinal: 4, Slot: 2, Count: 1, First: 11, Last: 11},
			{Cabinet: "c", Drawer: "new", Ordinal: 5, Count: 2, New: true, First: 12, Last: 13},
		}},
	}
}

func TestHeadTransitions_LeaveTheReceiver(t *testing.T) {
	for name, transition := range map[string]func(*head) *head{
		"reserve":      func(h *head) *head { return h.reservePlan(&savePlan{intent: &intent{ID: "next", Last: 20}}) },
		"commit":       func(h *head) *head { return h.commitIntent(nil) },
		"claim":        (*head).claimIntent,
		"clear":        (*head).clearIntent,
		"markWanted":   func(h *head) *head { return h.markWanted("p") },
		"setRetention": func(h *head) *head { return h.setRetention(nil, "f", []cabinetName{"c"}, nil) },
	} {
		h := transitionHead()
		next := transition(h)
		next.Cabinets["d"] = cabinetState{}
		assert.Equal(t, transitionHead(), h, name)
	}
}

func TestHeadCommit_MakesTheIntentVisible(t *testing.T) {
	next := transitionHead().commitIntent(nil)
	assert.Nil(t, next.Intent)
	assert.Equal(t, domain.Sequence(13), next.Watermark)
	assert.Equal(t, cabinetState{
		Drawer: "new", Fill: 2, Ordinal: 5, Sequence: 13, Total: 12, Marks: []mark{{10, 77}, {11, 77}},
	}, next.Cabinets["c"])
	assert.Zero(t, next.Undone)
}

func TestHeadCommit_KeepsTheLeaseWhileAnotherProcessWaits(t *testing.T) {
	wanted := transitionHead().markWanted("p")
	assert.Equal(t, "p", wanted.Wanted)
	next := wanted.commitIntent(nil)
	assert.Equal(t, 1, next.Undone, "the process that waits may be the one that was rolled back")
	assert.Empty(t, next.Wanted)
}

func TestHeadClear_ContinuesInNewDrawers(t *testing.T) {
	next := transitionHead().markWanted("p").claimIntent().clearIntent()
	assert.Nil(t, next.Intent)
	assert.Empty(t, next.Wanted)
	assert.Equal(t, 2, next.Undone)
	assert.Equal(t, domain.Sequence(10), next.Watermark)
	assert.Equal(t, domain.Sequence(13), next.Reserved, "numbers are not used twice")
	assert.Equal(t, cabinetState{Ordinal: 5, Sequence: 10, Total: 9}, next.Cabinets["c"])
}

func TestHeadIntentStands_UntilItIsClaimedOrReplaced(t *testing.T) {
	h := transitionHead()
	assert.True(t, h.intentStands(h.markWanted("p")))
	assert.False(t, h.intentStands(h.claimIntent()))
	assert.False(t, h.claimIntent().intentStands(h), "its own claim is not one that can be committed")
	assert.False(t, h.intentStands(h.commitIntent(nil)))
	other := h.reservePlan(&savePlan{intent: &intent{ID: "other"}})
	assert.False(t, h.intentStands(other))
}

func TestHeadSetRetention_ClosesLastDrawersAndKeepsTheWriteID(t *testing.T) {
	kept := map[cabinetName]retained{"c": {Floor: 5}}
	next := transitionHead().setRetention(kept, "f", []cabinetName{"c"}, nil)
	assert.Equal(t, kept, next.Retention)
	assert.Equal(t, "f", next.Fence)
	assert.Equal(t, "read", next.WriteID.ID, "a Save recognizes its own write by it")
	assert.Equal(t, cabinetState{Ordinal: 4, Sequence: 10, Total: 9}, next.Cabinets["c"])
	assert.Equal(t, "other", next.Cabinets["d"].Drawer)
}

func TestHeadIsFilling_OnlyCabinetsOfTheIntent(t *testing.T) {
	h := transitionHead()
	assert.True(t, h.isFilling("c"))
	assert.False(t, h.isFilling("d"))
	assert.False(t, h.commitIntent(nil).isFilling("c"))
}
