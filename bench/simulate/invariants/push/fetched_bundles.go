package push

import (
	"encoding/json"
	"slices"
	"strings"
)

// checkBundle checks the bundle that the consumer of a cursor has fetched. The bundle must stay the same until the
// Dequeue, and the Dequeue must end the bundle's deliveries.
func (o *Observer) checkBundle(before, next *cursor, main partitionChange) {
	a, b := &before.doc, &next.doc
	next.fetched = before.fetched
	var dequeued []string
	for _, id := range b.Dequeued {
		if !slices.Contains(a.Dequeued, id) {
			dequeued = append(dequeued, id)
		}
	}
	switch {
	case a.HeldID == "" || a.HeldID != b.HeldID:
		if a.HeldID != "" && !slices.Equal(dequeued, []string{a.HeldID}) || a.HeldID == "" && dequeued != nil {
			o.addViolation("P20", main, "bundle %q was open, but %q are dequeued", a.HeldID, dequeued)
		}
	case !slices.Equal(a.Held, b.Held) || !slices.Equal(a.HeldRetries, b.HeldRetries) || dequeued != nil:
		o.addViolation("P20", main, "bundle %s had the entries %v and the retries %v before", a.HeldID, a.Held, a.HeldRetries)
	}
	if len(dequeued) > 0 {
		next.fetched = make(map[Entry]bool)
		for e := range before.fetched {
			next.fetched[e] = true
		}
		for e := range before.heldEntries() {
			next.fetched[e] = true
			if next.outstanding[e] {
				o.addViolation("P20", main, "%s was dequeued, but is still outstanding", e)
			}
		}
	}
	for e := range next.heldEntries() {
		if before.fetched[e] {
			o.addViolation("P15", main, "%s was dequeued, but is in another bundle", e)
		}
	}
}

// heldEntries returns the entries of the bundle that the consumer has fetched.
func (c *cursor) heldEntries() map[Entry]bool {
	held := make(map[Entry]bool)
	for _, text := range slices.Concat(c.doc.Held, c.doc.HeldRetries) {
		if e, err := entryOf(c.doc.Stream, text); err == nil {
			held[e] = true
		}
	}
	return held
}

// Fetched reports whether an entry is in the current bundle of the consumer, or was in a bundle that is dequeued.
func (o *Observer) Fetched(id string, e Entry) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.cursors[id]
	return c != nil && (c.fetched[e] || c.heldEntries()[e])
}

// Bundle returns the bundle that the consumer of a cursor has fetched and not dequeued, or "".
func (o *Observer) Bundle(id string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.cursors[id]; c != nil {
		return c.doc.HeldID
	}
	return ""
}

// Owner returns the incarnation of the node that last stored a cursor.
func (o *Observer) Owner(id string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.cursors[id]; c != nil {
		return c.doc.By
	}
	return ""
}

// A party is the known state of a producer, a channel or a consumer.
type party struct {
	Kind     string   `json:"kind"`
	Created  int64    `json:"created"`
	Changed  int64    `json:"changed"`
	Segment  int      `json:"startSegment"`
	Start    []string `json:"startAt"`
	TokenSum string   `json:"tokenSum"`
	Token    string   `json:"token"`
}

// checkParty checks a change of a party. The position of a consumer must not change.
func (o *Observer) checkParty(c partitionChange) {
	if c.json == nil {
		o.addViolation("P18", c, "a party was removed")
		return
	}
	next := &party{}
	if err := json.Unmarshal(c.json, next); err != nil || next.Kind != "party" {
		o.addViolation("layout", c, "it is not a party: %v", err)
		return
	}
	key := c.partition + "|" + c.id
	if before := o.parties[key]; before != nil {
		if next.Created != before.Created || next.Segment != before.Segment || !slices.Equal(next.Start, before.Start) {
			o.addViolation("P18", c, "the first position of a consumer has changed")
		}
		if next.Changed <= before.Changed {
			o.addViolation("P18", c, "the time of the last change went back from %d to %d", before.Changed, next.Changed)
		}
	}
	if isConsumer := strings.HasPrefix(c.partition, consumersPrefix); (next.Token != "") != isConsumer || (next.TokenSum != "") == isConsumer {
		o.addViolation("P13", c, "the token of a consumer must be sealed, that of another party must be a digest")
	}
	o.parties[key] = next
}

const consumersPrefix = "|consumers|"

// isPartyList reports whether a partition contains parties.
func isPartyList(partition string) bool {
	return partition == "|producers" || partition == "|channels" || strings.HasPrefix(partition, consumersPrefix)
}

// checkBegin checks that the cursor of a consumer or a watch begins at the stored position.
func (o *Observer) checkBegin(id string, next *cursor, main partitionChange) {
	if w := o.watches[id]; strings.HasPrefix(id, "w|") {
		// w is nil if another node deleted the watch before its cursor was created.
		if w != nil && (next.doc.Stream != streamOfResource(w.Resource) || !slices.Equal(next.doc.At, startPositions(w))) {
			o.addViolation("P18", main, "the cursor does not begin where its watch does: %+v", w)
		}
		return
	}
	name, isConsumer := strings.CutPrefix(id, "c|")
	if !isConsumer || !strings.Contains(name, "|") {
		return
	}
	p := o.parties[consumersPrefix+name]
	if p == nil || !slices.Equal(p.Start, next.doc.At) {
		o.addViolation("P18", main, "the cursor does not begin where its consumer was registered: %+v", p)
	}
}
