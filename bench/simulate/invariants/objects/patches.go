package objects

import (
	"encoding/json"
	"maps"
)

// A Patch is a requested change of a row.
type Patch struct {
	Attributes map[string]string // JSON values of the members that the patch adds, by name
	IngestID   string            // ingest id that the patch sets
}

// Expect records a patch that may be applied from now on, and returns its number.
func (o *Observer) Expect(p Patch) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.patches = append(o.patches, &expectedPatch{Patch: p})
	return len(o.patches) - 1
}

// Applied returns how many times patch n was applied.
func (o *Observer) Applied(n int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.patches[n].applied
}

// An expectedPatch is a patch that may be applied.
type expectedPatch struct {
	Patch
	applied int
}

// checkPatches checks changes of attributes and ingest ids against L10.
func (j *objectCheck) checkPatches(rows []objectRow) {
	changed := 0
	for i := range rows {
		after := &rows[i]
		before, isKnown := j.before.rows[after.identityOf()]
		if !isKnown || before.Attributes == after.Attributes && before.IngestID == after.IngestID {
			continue
		}
		if changed++; changed > 1 {
			j.addViolation("L10", "one commit patches two rows, one of them the row of event %+v", after.identityOf())
		}
		if !j.isPatched(&before, after) {
			j.addViolation("L10", "row %+v has the attributes %q and the ingest id %q, but had %q and %q, and no patch explains the change",
				after.identityOf(), after.Attributes, after.IngestID, before.Attributes, before.IngestID)
		}
		j.markReached("a row was patched")
	}
}

// isPatched reports whether one of the expected patches changes before into after.
func (j *objectCheck) isPatched(before, after *objectRow) bool {
	then, now := membersOf(before.Attributes), membersOf(after.Attributes)
	if then == nil || now == nil {
		return false
	}
	for name, value := range then {
		if now[name] != value {
			return false
		}
		delete(now, name)
	}
	for _, p := range j.patches {
		if maps.Equal(p.Attributes, now) && (after.IngestID == before.IngestID && p.IngestID == "" || p.IngestID != "" && after.IngestID == p.IngestID) {
			p.applied++
			return true
		}
	}
	return false
}

// membersOf returns the members of a JSON object as JSON, or nil if text is not an object.
func membersOf(text string) map[string]string {
	members := make(map[string]string)
	if text == "" {
		return members
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &raw) != nil {
		return nil
	}
	for name, value := range raw {
		members[name] = string(value)
	}
	return members
}
