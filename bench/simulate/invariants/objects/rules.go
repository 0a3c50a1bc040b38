package objects

import (
	"maps"
	"slices"
)

// An objectCheck compares one object with the rules after a commit.
type objectCheck struct {
	*Observer
	key     key
	before  *object
	doc     document
	exists  bool  // doc is stored
	gone    []row // that were there before
	spilled []row // in order
	heads   map[string]row
	live    map[string]any // of the copies
}

// checkAll returns all rows in order.
func (j *objectCheck) checkAll() []row {
	return slices.SortedFunc(slices.Values(slices.Concat(j.spilled, j.doc.Rows)), compareRows)
}

func (j *objectCheck) addViolation(rule, format string, args ...any) {
	j.Observer.addViolation(rule, j.key, format, args...)
}

func (j *objectCheck) checkObject() {
	rows := j.checkAll()
	j.judgeForgotten(rows)
	if !j.exists {
		if len(rows) > 0 || len(j.heads) > 0 {
			j.addViolation("L1", "the object is gone, and %d rows and %d copies of it are there", len(rows), len(j.heads))
		}
		return
	}
	j.judgeShard()
	j.judgeRows(rows)
	j.judgePatches(rows)
	j.judgeCurrent(rows)
	j.judgeFloor()
	j.judgeCopies()
	if !j.isMark(rows) {
		j.judgeWrites(rows)
	}
	j.judgeChanges()
	j.judgeStates()
	j.judgePlaces(rows)
}

func (j *objectCheck) judgeShard() {
	d := &j.doc
	shards := j.buckets[d.Bucket]
	switch {
	case shards == 0:
		j.addViolation("shard", "bucket %s has no number of shards", d.Bucket)
	case j.key.partition != shardOf(d.Bucket, d.Key, shards):
		j.addViolation("shard", "key %q is of %s", d.Key, shardOf(d.Bucket, d.Key, shards))
	}
	if d.ID != idOf(d.Key) {
		j.addViolation("shard", "the id of key %q is %s", d.Key, idOf(d.Key))
	}
}

// judgeRows holds the rows to L1, L2 and the sums of L5.
func (j *objectCheck) judgeRows(rows []row) {
	seen := make(map[identity]row, len(rows))
	var duplicates int64
	for _, r := range rows {
		id := r.identityOf()
		if _, twice := seen[id]; twice {
			j.addViolation("L2", "event %+v has two rows", id)
		}
		seen[id] = r
		duplicates += r.Duplicates
	}
	for id, before := range j.before.rows {
		after, isThere := seen[id]
		switch {
		case !isThere: // see judgeForgotten
		case after.factsOf() != before.factsOf():
			j.addViolation("L1", "the row of event %+v was %+v, and is %+v", id, before, after)
		case after.Duplicates < before.Duplicates:
			j.addViolation("L5", "event %+v had %d duplicates, and has %d", id, before.Duplicates, after.Duplicates)
		}
	}
	if d := &j.doc; d.Events != int64(len(rows)) || d.Duplicates != duplicates || d.Spilled != int64(len(j.spilled)) {
		j.addViolation("L5", "it has %d rows with %d duplicates, of which %d are spilled, and counts %d, %d and %d",
			len(rows), duplicates, len(j.spilled), d.Events, d.Duplicates, d.Spilled)
	}
}

// judgeCurrent holds the current row to L3.
func (j *objectCheck) judgeCurrent(rows []row) {
	var want *row
	seen := make(map[string]bool)
	for i := len(rows) - 1; i >= 0; i-- {
		r := &rows[i]
		if seen[r.Version] {
			continue
		}
		seen[r.Version] = true
		if r.Type == created || r.isDeleteMarker() {
			want = r
			break
		}
	}
	if want != nil && want.isDeleteMarker() {
		want = nil
	}
	got := j.doc.Current
	switch {
	case (want == nil) != (got == nil), want != nil && *want != *got:
		j.addViolation("L3", "its current row is %+v, and %+v follows from its rows", got, want)
	case (j.doc.Live == true) != (got != nil):
		j.addViolation("L3", "it is live: %v, and its current row is %+v", j.doc.Live, got)
	}
	if want != nil && !slices.Contains(j.doc.Rows, *want) {
		j.markReached("a spilled row became the current one")
	}
}

// judgeFloor holds what is spilled to L4.
func (j *objectCheck) judgeFloor() {
	d := &j.doc
	at := d.Floor.orderOf()
	if before := j.before.doc.Floor.orderOf(); at.compareOrders(before) < 0 && (d.Floor != nil || d.Spilled > 0) {
		j.addViolation("L4", "its floor was %+v, and is %+v", before, at)
	}
	if !slices.IsSortedFunc(d.Rows, compareRows) {
		j.addViolation("L4", "the rows in it are not in order")
	}
	for i := range d.Rows {
		if d.Rows[i].orderOf().compareOrders(at) <= 0 {
			j.addViolation("L4", "row %+v in it is not above its floor", d.Rows[i].identityOf())
		}
	}
	newest := make(map[string]row)
	var generated int64
	for _, r := range j.spilled {
		if r.orderOf().compareOrders(at) > 0 {
			j.addViolation("L4", "spilled row %+v is above its floor", r.identityOf())
		}
		newest[r.Version] = r
		if r.isGenerated() {
			generated++
		}
		if _, isKnown := j.before.rows[r.identityOf()]; !isKnown && j.before.doc.Spilled > 0 {
			j.markReached("an event came below the floor")
		}
	}
	for version, r := range newest {
		if head, has := j.heads[version]; !has || head != r {
			j.addViolation("L4", "the copy of version %q is %+v, and its newest spilled row %+v", version, head, r)
		}
	}
	for version := range j.heads {
		if _, has := newest[version]; !has {
			j.addViolation("L4", "version %q has a copy and no spilled row", version)
		}
	}
	if d.SpilledGenerated != generated {
		j.addViolation("L4", "%d of its spilled rows have a generated place, and it counts %d", generated, d.SpilledGenerated)
	}
	if d.Spilled > j.before.doc.Spilled {
		j.markReached("rows were spilled")
	}
}

// judgeCopies holds to L4 what copies say to those who look for the highest live one: a text if the row is live, which
// compares as the rows do, and otherwise false.
func (j *objectCheck) judgeCopies() {
	rows := slices.SortedFunc(maps.Values(j.heads), compareRows)
	last := ""
	for i := range rows {
		r := &rows[i]
		live := j.live[r.Version]
		text, isLive := live.(string)
		if isLive != r.isLive() || !isLive && live != false || isLive && text <= last {
			j.addViolation("L4", "the copy of version %q says %v after %q of its row %+v", r.Version, live, last, r.identityOf())
		}
		if isLive {
			last = text
		}
	}
}

// maxWrites is how many ids of writes an object keeps.
const maxWrites = 8

// judgeWrites holds the ids of writes to L5.
func (j *objectCheck) judgeWrites(rows []row) {
	before, after := j.before.doc.Writes, j.doc.Writes
	if len(j.gone) > 0 && slices.Equal(before, after) {
		j.judgeUnchanged(rows)
		return
	}
	if len(after) == 0 || len(after) > maxWrites || j.before.writes[after[len(after)-1]] {
		j.addViolation("L5", "its writes were %v, and are %v: want one more, that it never had, and at most %d", before, after, maxWrites)
		return
	}
	kept := after[:len(after)-1]
	if len(kept) > len(before) || !slices.Equal(kept, before[len(before)-len(kept):]) || len(kept) < min(len(before), maxWrites-1) {
		j.addViolation("L5", "its writes were %v, and are %v: they are not the last ones", before, after)
	}
	for _, r := range rows {
		if _, isKnown := j.before.rows[r.identityOf()]; !isKnown && r.WriteID != after[len(after)-1] {
			j.addViolation("L5", "row %+v is stored by write %s, and says %q", r.identityOf(), after[len(after)-1], r.WriteID)
		}
	}
}

// judgeUnchanged demands that a change that forgets rows does nothing else.
func (j *objectCheck) judgeUnchanged(rows []row) {
	for _, r := range rows {
		if before, isKnown := j.before.rows[r.identityOf()]; !isKnown || r != before {
			j.addViolation("L5", "no write has a new id, and row %+v was %+v", r, before)
		}
	}
}
