package objects

import (
	"fmt"
	"strings"
)

// noteState records a change that is stored for the topic. Its object must change in the same commit.
func (o *Observer) noteState(k key, d *scopeDocument, existed bool, changed map[key]bool) {
	switch {
	case existed:
		o.addViolation("P14", k, "a stored change was modified")
		return
	case k.partition != shardOf(d.Bucket, d.Key, max(o.buckets[d.Bucket], 1)):
		o.addViolation("layout", k, "its object is %q of bucket %q", d.Key, d.Bucket)
		return
	}
	of := key{k.partition, idOf(d.Key)}
	o.states[of] = append(o.states[of], *d)
	if _, is := changed[of]; !is {
		changed[of] = false
	}
}

// checkStates checks the changes for the topic against P14: a commit stores exactly one change if it changes the current
// state of an object, and no change otherwise. The versions of the changes ascend.
func (j *objectCheck) checkStates() {
	before, after := j.before.doc.Current, j.doc.Current
	event, of := "", after
	switch {
	case !j.HasTopic, before == nil && after == nil:
	case before == nil:
		event = "created"
	case after == nil:
		event, of = "deleted", before
	case after.identityOf() != before.identityOf(), after.changeState() != before.changeState():
		event = "updated"
	}
	stored := j.states[j.key]
	if event == "" {
		if len(stored) > 0 || j.doc.StateVersion != j.before.doc.StateVersion {
			j.addViolation("P14", "its state did not change, but its version changed from %[2]d to %[1]d, or %[3]d changes are stored for the topic", j.doc.StateVersion, j.before.doc.StateVersion, len(stored))
		}
		return
	}
	if len(stored) != 1 {
		j.addViolation("P14", "%d changes are stored for the topic, want 1: %s", len(stored), event)
		return
	}
	d := &stored[0]
	isNamed := strings.HasSuffix(d.ID, fmt.Sprintf(".%020d", d.Number))
	if d.Event != event || !isNamed || d.Number != j.doc.StateVersion || d.Number <= j.before.doc.StateVersion {
		j.addViolation("P14", "the change %s for the topic is number %d, %s; want %s and number %d, which must be above %d", d.ID, d.Number, d.Event, event, j.doc.StateVersion, j.before.doc.StateVersion)
	}
	if d.Row.identityOf() != of.identityOf() || d.Row.ETag != of.ETag || d.Row.Size != of.Size {
		j.addViolation("P14", "the change for the topic has the row %+v, want %+v", d.Row.identityOf(), of.identityOf())
	}
	j.markReached("a change was stored for the topic")
}
