package objects

import (
	"maps"
	"slices"
)

// An objectCheck checks one object after a commit.
type objectCheck struct {
	*Observer
	key     key
	before  *objectState
	doc     scopeDocument
	exists  bool        // whether doc is stored
	gone    []objectRow // rows that the commit removed
	spilled []objectRow // spilled rows, in order
	heads   map[string]objectRow
	live    map[string]any // values of the field live in the copies, by version
}

// allRows returns all rows in order.
func (j *objectCheck) allRows() []objectRow {
	return slices.SortedFunc(slices.Values(slices.Concat(j.spilled, j.doc.Rows)), compareRows)
}

func (j *objectCheck) addViolation(rule, format string, args ...any) {
	j.Observer.addViolation(rule, j.key, format, args...)
}

func (j *objectCheck) checkObject() {
	rows := j.allRows()
	j.checkForgotten(rows)
	if !j.exists {
		if len(rows) > 0 || len(j.heads) > 0 {
			j.addViolation("L1", "the object was removed, but %d rows and %d copies of it exist", len(rows), len(j.heads))
		}
		return
	}
	j.checkShard()
	j.checkRows(rows)
	j.checkPatches(rows)
	j.checkCurrent(rows)
	j.checkFloor()
	j.checkCopies()
	if !j.isMark(rows) {
		j.checkWrites(rows)
	}
	j.checkChanges()
	j.checkStates()
	j.checkPositions(rows)
}

func (j *objectCheck) checkShard() {
	d := &j.doc
	shards := j.buckets[d.Bucket]
	switch {
	case shards == 0:
		j.addViolation("shard", "bucket %s has no number of shards", d.Bucket)
	case j.key.partition != shardOf(d.Bucket, d.Key, shards):
		j.addViolation("shard", "key %q belongs to %s", d.Key, shardOf(d.Bucket, d.Key, shards))
	}
	if d.ID != idOf(d.Key) {
		j.addViolation("shard", "the id of key %q is %s", d.Key, idOf(d.Key))
	}
}

// checkRows checks the rows against L1, L2 and the sums of L5.
func (j *objectCheck) checkRows(rows []objectRow) {
	seen := make(map[eventIdentity]objectRow, len(rows))
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
		case !isThere: // checkForgotten checks removed rows
		case after.factsOf() != before.factsOf():
			j.addViolation("L1", "the row of event %+v changed from %+v to %+v", id, before, after)
		case after.Duplicates < before.Duplicates:
			j.addViolation("L5", "event %+v had %d duplicates, but now has %d", id, before.Duplicates, after.Duplicates)
		}
	}
	if d := &j.doc; d.Events != int64(len(rows)) || d.Duplicates != duplicates || d.Spilled != int64(len(j.spilled)) {
		j.addViolation("L5", "it has %d rows with %d duplicates, of which %d are spilled, but counts %d, %d and %d",
			len(rows), duplicates, len(j.spilled), d.Events, d.Duplicates, d.Spilled)
	}
}

// checkCurrent checks the current row against L3.
func (j *objectCheck) checkCurrent(rows []objectRow) {
	var want *objectRow
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
		j.addViolation("L3", "its current row is %+v, but %+v follows from its rows", got, want)
	case (j.doc.Live == true) != (got != nil):
		j.addViolation("L3", "its member live is %v, but its current row is %+v", j.doc.Live, got)
	}
	if want != nil && !slices.Contains(j.doc.Rows, *want) {
		j.markReached("a spilled row became the current one")
	}
}

// checkFloor checks spilled rows against L4.
func (j *objectCheck) checkFloor() {
	d := &j.doc
	at := d.Floor.orderOf()
	if before := j.before.doc.Floor.orderOf(); at.compareOrders(before) < 0 && (d.Floor != nil || d.Spilled > 0) {
		j.addViolation("L4", "its floor changed from %+v to %+v", before, at)
	}
	if !slices.IsSortedFunc(d.Rows, compareRows) {
		j.addViolation("L4", "its inline rows are not in order")
	}
	for i := range d.Rows {
		if d.Rows[i].orderOf().compareOrders(at) <= 0 {
			j.addViolation("L4", "its inline row %+v is not above its floor", d.Rows[i].identityOf())
		}
	}
	newest := make(map[string]objectRow)
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
			j.addViolation("L4", "the copy of version %q is %+v, but its newest spilled row is %+v", version, head, r)
		}
	}
	for version := range j.heads {
		if _, has := newest[version]; !has {
			j.addViolation("L4", "version %q has a copy, but no spilled row", version)
		}
	}
	if d.SpilledGenerated != generated {
		j.addViolation("L4", "%d of its spilled rows have a generated position, but it counts %d", generated, d.SpilledGenerated)
	}
	if d.Spilled > j.before.doc.Spilled {
		j.markReached("rows were spilled")
	}
}

// checkCopies checks the field live of copies against L4. If the row is live, the field must be a text with the sort
// order of the rows: the store finds the highest live copy by this text. Otherwise the field must be false.
func (j *objectCheck) checkCopies() {
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

// maxWrites is the maximum number of write ids that an object records.
const maxWrites = 8

// checkWrites checks the write ids against L5.
func (j *objectCheck) checkWrites(rows []objectRow) {
	before, after := j.before.doc.Writes, j.doc.Writes
	if len(j.gone) > 0 && slices.Equal(before, after) {
		j.checkUnchanged(rows)
		return
	}
	if len(after) == 0 || len(after) > maxWrites {
		j.addViolation("L5", "its write ids changed from %v to %v: want 1 to %d", before, after, maxWrites)
		return
	}
	if last := after[len(after)-1]; j.before.writes[last] && !j.isRepeatOfForgottenWrite(last, rows) {
		j.addViolation("L5", "its write ids changed from %v to %v: want a new id as the last one", before, after)
		return
	}
	kept := after[:len(after)-1]
	if len(kept) > len(before) || !slices.Equal(kept, before[len(before)-len(kept):]) || len(kept) < min(len(before), maxWrites-1) {
		j.addViolation("L5", "its write ids changed from %v to %v, which are not the last ones", before, after)
	}
	for _, r := range rows {
		if _, isKnown := j.before.rows[r.identityOf()]; !isKnown && r.WriteID != after[len(after)-1] {
			j.addViolation("L5", "row %+v is stored by write %s, but has the write id %q", r.identityOf(), after[len(after)-1], r.WriteID)
		}
	}
}

// isRepeatOfForgottenWrite reports whether the commit repeats an earlier write whose id the object no longer contains,
// and only counts duplicates again. A writer that lost the reply of a write reads the object again, and recognizes its
// write by the id. If maxWrites other writes were stored before this read, the id is missing, and the writer stores the
// write again with the same id. Rows that the first write has stored have its id, and are not stored again, so the
// repeated write changes only the numbers of duplicates. As long as the object contains the id, no write may
// repeat it.
func (j *objectCheck) isRepeatOfForgottenWrite(id string, rows []objectRow) bool {
	if slices.Contains(j.before.doc.Writes, id) || len(rows) != len(j.before.rows) {
		return false
	}
	isCounted := false
	for _, r := range rows {
		before, isKnown := j.before.rows[r.identityOf()]
		isCounted = isCounted || r.Duplicates > before.Duplicates
		before.Duplicates = r.Duplicates
		if !isKnown || r != before {
			return false
		}
	}
	return isCounted
}

// checkUnchanged checks that a commit that forgets rows changes nothing else.
func (j *objectCheck) checkUnchanged(rows []objectRow) {
	for _, r := range rows {
		if before, isKnown := j.before.rows[r.identityOf()]; !isKnown || r != before {
			j.addViolation("L5", "there is no new write id, but row %+v was %+v", r, before)
		}
	}
}
