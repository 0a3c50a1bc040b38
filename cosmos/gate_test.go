package cosmos

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// transitionGate returns a gate with positions in two cabinets, and a bundle of one cabinet.
func transitionGate() (*gate, *bundleDoc) {
	g := &gate{
		ID: "gate.x", Recipient: "a", Kind: gateKind, WriteID: "read", Generation: 6, Frozen: true, Last: "before", ETag: "e",
		At: map[cabinetName]position{
			"c": {Ordinal: 2, Slot: 5, Sequence: 40, Total: 12, NextSaved: 7, Doubt: 55},
			"d": {Ordinal: 1, Slot: 1, Sequence: 3, Total: 1},
		},
	}
	d := &bundleDoc{
		ID: "bundle", Cabinet: "c", Content: string(domain.Request), State: stateOpen, Count: 4, First: 41, Last: 50, NextSaved: 99,
		Opened: noon, Before: "before", Start: g.At["c"], TTL: 3,
		Ranges: []slotRange{{Drawer: "x", Ordinal: 2, From: 5, To: 7}, {Drawer: "y", Ordinal: 3, From: 0, To: 2}},
	}
	return g, d
}

func TestGateTransitions_LeaveTheReceiverAndCountTheWrite(t *testing.T) {
	for name, transition := range map[string]func(*gate, *bundleDoc) *gate{
		"confirm":     func(g *gate, _ *bundleDoc) *gate { return g.confirm("write") },
		"open":        func(g *gate, d *bundleDoc) *gate { return g.open(d, "write") },
		"advancePast": func(g *gate, d *bundleDoc) *gate { return g.advancePast(d, "write") },
		"rewindTo":    func(g *gate, d *bundleDoc) *gate { return g.rewindTo(d, "write") },
		"release":     func(g *gate, _ *bundleDoc) *gate { return g.release("write") },
		"setFrozen":   func(g *gate, _ *bundleDoc) *gate { return g.setFrozen(false, "write") },
	} {
		g, d := transitionGate()
		next := transition(g, d)
		asRead, _ := transitionGate()
		assert.Equal(t, asRead, g, name)
		assert.Equal(t, "write", next.WriteID, name)
		assert.EqualValues(t, 7, next.Generation, name)
		assert.Empty(t, next.ETag, "%s: the etag is the store's, not a member", name)
		assert.Equal(t, g.At["d"], next.At["d"], "%s: the other cabinets stay where they are", name)
		next.At["d"] = position{}
		assert.Equal(t, asRead, g, "%s: the positions are a copy", name)
	}
}

func TestGateConfirm_ChangesOnlyTheWrite(t *testing.T) {
	g, _ := transitionGate()
	want, _ := transitionGate()
	want.WriteID, want.Generation, want.ETag = "write", 7, ""
	assert.Equal(t, want, g.confirm("write"))

	assert.NotNil(t, (&gate{}).confirm("write").At, "a gate that was never written gets its positions")
}

func TestGateOpen_NamesTheBundleAndKeepsThePositions(t *testing.T) {
	g, d := transitionGate()
	next := g.open(d, "write")
	assert.Equal(t, "bundle", next.Open)
	assert.Equal(t, noon, next.Opened)
	assert.Equal(t, domain.Sequence(41), next.First)
	assert.Equal(t, "before", next.Last)
	assert.Equal(t, g.At, next.At)
}

func TestGateAdvancePast_IsAfterTheBundle(t *testing.T) {
	g, d := transitionGate()
	next := g.open(d, "write").advancePast(d, "again")
	assert.Empty(t, next.Open)
	assert.Equal(t, time.Time{}, next.Opened)
	assert.Zero(t, next.First)
	assert.Equal(t, "bundle", next.Last)
	assert.Equal(t, position{Ordinal: 3, Slot: 2, Sequence: 50, Total: 16, NextSaved: 99, Doubt: 55}, next.At["c"])

	d.Last = 55
	assert.Zero(t, g.advancePast(d, "write").At["c"].Doubt, "behind the doubtful events entries are trusted again")
}

func TestGateRewindTo_OpensTheBundleAgain(t *testing.T) {
	g, d := transitionGate()
	next := g.advancePast(d, "closed").rewindTo(d, "write")
	assert.Equal(t, "bundle", next.Open)
	assert.Equal(t, noon, next.Opened)
	assert.Equal(t, domain.Sequence(41), next.First)
	assert.Equal(t, "before", next.Last)
	assert.Equal(t, g.At["c"], next.At["c"], "Doubt is above the gate already")

	d.Start.Doubt = 0
	g.At["c"] = position{}
	next = g.advancePast(d, "closed").rewindTo(d, "write")
	assert.Equal(t, domain.Sequence(50), next.At["c"].Doubt, "entries below the last event may be too high")
}

func TestGateRelease_KeepsThePositions(t *testing.T) {
	g, d := transitionGate()
	next := g.open(d, "open").release("write")
	assert.Empty(t, next.Open)
	assert.Equal(t, time.Time{}, next.Opened)
	assert.Zero(t, next.First)
	assert.Equal(t, "before", next.Last)
	assert.Equal(t, g.At, next.At)
}

func TestGateSetFrozen_FreezesAndThaws(t *testing.T) {
	g, _ := transitionGate()
	thawed := g.setFrozen(false, "write")
	assert.False(t, thawed.Frozen)
	assert.True(t, thawed.setFrozen(true, "again").Frozen)
}

func TestGateAssumeAcknowledged_CountsWithoutAWrite(t *testing.T) {
	g, _ := transitionGate()
	next := g.assumeAcknowledged("c", cabinetState{}, 3, 8)
	assert.Equal(t, position{Ordinal: 2, Slot: 5, Sequence: 40, Total: 15, NextSaved: 8, Doubt: 55}, next.At["c"])
	assert.Equal(t, g.Generation, next.Generation)
	assert.EqualValues(t, 12, g.At["c"].Total)
}

func TestBundleClosing_ExpiresAfterTheRetention(t *testing.T) {
	_, d := transitionGate()
	d.WriteID = "opened"
	encode := func(retention time.Duration) string {
		patch, err := json.Marshal(d.closePatch(stateDequeued, "write", retention, time.UnixMilli(5000)))
		require.NoError(t, err)
		return string(patch)
	}
	assert.JSONEq(t, `{
		"condition": "from c where (NOT IS_DEFINED(c.v) OR c.v <= 1) and c.state = 'open' and c.operation = 'opened' and (NOT IS_DEFINED(c.watched))",
		"operations": [
			{"op": "set", "path": "/state", "value": "dequeued"},
			{"op": "set", "path": "/operation", "value": "write"},
			{"op": "set", "path": "/ttl", "value": 90}
		]
	}`, encode(90*time.Second))
	assert.Contains(t, encode(time.Millisecond), `"value":1}`, "0 means for ever in Cosmos")
	assert.NotContains(t, encode(-1), "/ttl")

	d.Watched = true
	assert.JSONEq(t, `{
		"condition": "from c where (NOT IS_DEFINED(c.v) OR c.v <= 1) and c.state = 'open' and c.operation = 'opened'",
		"operations": [
			{"op": "set", "path": "/state", "value": "dequeued"},
			{"op": "set", "path": "/operation", "value": "write"},
			{"op": "set", "path": "/expires", "value": 95000}
		]
	}`, encode(90*time.Second), "a sweep removes it")
	assert.NotContains(t, encode(-1), "/expires")
}

func TestBundleReopen_StaysUntilItIsClosedAgain(t *testing.T) {
	g, d := transitionGate()
	rewound := g.rewindTo(d, "write")
	closed := *d
	closed.State, closed.WriteID, closed.TTL = stateDequeued, "closed", 60
	again := closed.reopen(rewound, "write")
	assert.Equal(t, stateOpen, again.State)
	assert.Equal(t, "write", again.WriteID)
	assert.Zero(t, again.TTL)
	assert.EqualValues(t, 7, again.Opening)

	d.Content = string(domain.Inline)
	assert.Zero(t, d.reopen(rewound, "write").Opening, "only a bundle on request leaves a notice")
}
