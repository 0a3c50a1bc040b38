package domain

import (
	"slices"
	"time"
)

// An Object is the stored state of an object of a store: its newest rows, and what results from
// all rows. The other rows are spilled: they are stored separately, and read only when they are
// needed.
//
//	events ─▶ Update ─▶ Apply ─▶ Finish ─▶ changes to store, all or none
//	            ▲                   │
//	            └── answers ◀── queries about spilled rows, if they matter
//
// The rules are those of the filemanager after its fixes, except where they contradict themselves:
//
//   - A version is live if its newest row is Created or a delete marker. The highest live row
//     is the current one, unless it is a marker. It follows from the rows, and does not depend
//     on the order of their arrival.
//   - At one sequencer of a version, Deleted is later than Created. The original has no rule.
//   - A null sequencer is placed by the time of the event: see object_place.go. The original
//     takes it for the newest event, so a late lifecycle event overrides later events.
//   - An event with a null sequencer is identified by the message that carried it. So a message
//     that is delivered again adds no rows. In the original it does.
//   - An event that a call has twice is applied once, and not counted. Each later call counts.
//   - Paired mode is a view of the same rows: see object_pair.go.
//   - The text of a generated sequencer has the form of the seed. Its number is unique within
//     an object, and does not begin at 1 for each base. Rows are not ordered by the text.
//   - A sequencer may have 64 characters. The original fails above 30 if it has to place a null
//     sequencer behind it.
type Object struct {
	Name ObjectName
	Rows []ObjectRow // the newest ones, in order

	Current *ObjectRow // nil: no current row. It may be a spilled row.

	Events     int64 // rows that are stored
	Duplicates int64
	Generated  int64 // the last ObjectRow.Number
	// Doubt reports sequencers whose order no store documents, such as those of Azure with
	// different lengths. Only the store knows the current state then.
	Doubt bool

	// Floor is at or above all spilled rows, and below all Rows.
	Floor            ObjectOrder
	Spilled          int64       // rows
	SpilledVersions  []VersionID // if there are MaxSpilledVersions, then the list may be incomplete
	SpilledGenerated int64       // spilled rows with a generated place
	SpilledTo        time.Time   // at or after the times of all of them

	// Limits of the forgotten rows; see ObjectRetention.
	Forgotten     ObjectOrder // at or above all forgotten rows
	ForgottenTo   time.Time   // at or after the times of all forgotten rows
	ForgottenRows int64       // not counted in Events

	Writes []string // the last updates that were stored, up to MaxObjectWrites

	IsWatched bool  // a change of the current row has a Change
	Changes   int64 // the version of the last one

	// StateVersion is the version of the last change of the current state that was stored for
	// the topic of objects; see ObjectChanges.StateChange. It ascends. It is the time of the
	// change in microseconds, or greater. So no version is used twice, not even after an object
	// was forgotten as a whole and created again.
	StateVersion int64
}

// MaxSpilledVersions is the maximum number of versions with spilled rows that an object lists.
const MaxSpilledVersions = 4

// MaxObjectWrites is the number of updates that an object remembers. A writer that lost the
// reply of an update finds its id here, unless this many other updates were stored since. If it
// were 1, a second writer would hide the id, and duplicates would be counted twice.
const MaxObjectWrites = 8

// ObjectLimits bound the rows in an Object. Zero means no limit.
type ObjectLimits struct{ Rows, Bytes int }

// DefaultObjectLimits keep the document of an object small, because the cost of a write grows
// with its size.
var DefaultObjectLimits = ObjectLimits{Rows: 16, Bytes: 6 << 10}

// HasWrite reports whether an update with one of ids is stored.
func (o *Object) HasWrite(ids ...string) bool {
	return slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(o.Writes, id) })
}

// Clone returns a copy of o. No later change of one affects the other.
func (o *Object) Clone() Object {
	c := *o
	if o.Current != nil {
		current := *o.Current
		c.Current = &current
	}
	c.Rows, c.SpilledVersions, c.Writes = slices.Clone(o.Rows), slices.Clone(o.SpilledVersions), slices.Clone(o.Writes)
	return c
}

// hasSpilled reports whether rows of a version may be spilled.
func (o *Object) hasSpilled(v VersionID) bool {
	return o.Spilled > 0 && (len(o.SpilledVersions) == MaxSpilledVersions || slices.Contains(o.SpilledVersions, v))
}

// noteSpilled counts a row that is about to be spilled.
func (o *Object) noteSpilled(r *ObjectRow) {
	o.Spilled++
	if len(o.SpilledVersions) < MaxSpilledVersions && !slices.Contains(o.SpilledVersions, r.Version) {
		o.SpilledVersions = append(o.SpilledVersions, r.Version)
	}
	if r.IsGenerated() {
		o.SpilledGenerated++
		if r.Time.After(o.SpilledTo) {
			o.SpilledTo = r.Time
		}
	}
}

// noteUnspilled counts a generated row that is no longer spilled.
func (o *Object) noteUnspilled() {
	o.Spilled--
	o.SpilledGenerated--
}

// A fold finds the current row among rows that it observes from the highest to the lowest.
type fold struct {
	few  []VersionID // versions that were seen, while there are up to foldFew
	many map[VersionID]struct{}
}

const foldFew = 16

// hasSeen reports whether a row of a version was seen.
func (f *fold) hasSeen(v VersionID) bool {
	_, seen := f.many[v]
	return seen || f.many == nil && slices.Contains(f.few, v)
}

// observe records a row of a version, and reports whether it is the first one of its version.
func (f *fold) observe(v VersionID) bool {
	if f.hasSeen(v) {
		return false
	}
	if f.many != nil {
		f.many[v] = struct{}{}
		return true
	}
	if f.few = append(f.few, v); len(f.few) > foldFew {
		f.many = make(map[VersionID]struct{})
		for _, v := range f.few {
			f.many[v] = struct{}{}
		}
	}
	return true
}

// count returns how many versions were seen.
func (f *fold) count() int { return max(len(f.few), len(f.many)) }

// highestLive returns the index of the highest row that is live and the newest one of its
// version, or -1. rows are in order.
func (f *fold) highestLive(rows []ObjectRow) int {
	for i := len(rows) - 1; i >= 0; i-- {
		if f.observe(rows[i].Version) && rows[i].IsLive() {
			return i
		}
	}
	return -1
}

// CurrentRow returns the index of the current row, or -1. rows are all rows of an object, in
// order.
func CurrentRow(rows []ObjectRow) int {
	var f fold
	i := f.highestLive(rows)
	if i >= 0 && rows[i].IsMarker() {
		return -1
	}
	return i
}
