package domain

import (
	"slices"
	"time"
)

// An Object is the hub's record of an object in an object store. It contains the newest rows, which
// are the object's stored events, and values computed from all rows. Older rows are spilled: they
// are stored separately, and read only when they are needed.
//
//	events ─▶ Update ─▶ Apply ─▶ Finish ─▶ changes to store, all or none
//	            ▲                   │
//	            └── answers ◀── queries about spilled rows, if they matter
//
// The rules are those of the original system, the filemanager, with its later fixes. They differ
// where those rules contradict each other:
//
//   - A version is live if its newest row is Created or a delete marker. The highest live row
//     is the current row, unless it is a marker. So the current row depends only on the rows, and
//     not on the order in which they arrived.
//   - If a Created and a Deleted event of one version have the same sequencer, Deleted is later. The
//     original has no rule for this case.
//   - An event with a null sequencer is placed by its time: see object_place.go. The original
//     treats it as the newest event, so a late lifecycle event overrides later events.
//   - An event with a null sequencer is identified by the message that contained it. So a message
//     that is delivered again adds no rows. In the original it adds rows.
//   - If a call contains an event twice, the event is applied once, and the repetition is not
//     counted as a duplicate. If a later call contains the event again, that is a duplicate.
//   - Paired mode is a view of the same rows: see object_pair.go.
//   - The text of a generated sequencer has the form that the original uses. Its number is unique
//     within an object: the numbers do not restart at 1 for each base. The text does not determine
//     the order of rows.
//   - A sequencer may be 64 characters long. The original fails if it has to place a null sequencer
//     behind one of more than 30 characters.
type Object struct {
	Name ObjectName
	Rows []ObjectRow // newest rows, in ascending order

	Current *ObjectRow // current row, which may be spilled; nil: the object has no current row

	Events     int64 // number of stored rows
	Duplicates int64
	Generated  int64 // last assigned ObjectRow.Number
	// Doubt is set if no store documents the order of the object's sequencers, such as Azure
	// sequencers of different lengths. Only a request to the store can find the current state of
	// the object.
	Doubt bool

	// Floor is an order between the spilled rows and Rows: at or above all spilled rows, and below
	// all Rows.
	Floor            ObjectOrder
	Spilled          int64       // number of spilled rows
	SpilledVersions  []VersionID // versions with spilled rows; incomplete if it contains MaxSpilledVersions versions
	SpilledGenerated int64       // number of spilled rows with a generated place
	SpilledTo        time.Time   // upper limit for the times of spilled rows with a generated place

	// Forgotten, ForgottenTo and ForgottenRows summarize the forgotten rows; see ObjectRetention.
	Forgotten     ObjectOrder // upper limit for the orders of the forgotten rows
	ForgottenTo   time.Time   // upper limit for the times of the forgotten rows
	ForgottenRows int64       // number of forgotten rows; Events does not include them

	Writes []string // ids of the last stored updates, up to MaxObjectWrites

	IsWatched bool  // the object has watches: each change of its current row is stored as a Change
	Changes   int64 // version of the last Change that was stored for the watches

	// StateVersion is the version of the last change that was stored for the topic of objects; see
	// ObjectChanges.StateChange. Versions ascend, and are at least the time of the change in
	// microseconds. So no version is used twice, even if the object is completely forgotten and
	// created again.
	StateVersion int64
}

// MaxSpilledVersions is the maximum length of Object.SpilledVersions.
const MaxSpilledVersions = 4

// MaxObjectWrites is the maximum number of ids in Object.Writes. If a writer lost the reply of an
// update, it finds the id of the update there, unless this many other updates were stored since.
// With a limit of 1, the update of a second writer would replace the id, and duplicates would be
// counted twice.
const MaxObjectWrites = 8

// ObjectLimits limits the number and the total size of Object.Rows. Zero means no limit.
type ObjectLimits struct{ Rows, Bytes int }

// DefaultObjectLimits keeps the document of an object small, because a larger document costs more
// to write.
var DefaultObjectLimits = ObjectLimits{Rows: 16, Bytes: 6 << 10}

// HasWrite reports whether an update with one of the given ids is stored.
func (o *Object) HasWrite(ids ...string) bool {
	return slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(o.Writes, id) })
}

// Clone returns a deep copy of o.
func (o *Object) Clone() Object {
	c := *o
	if o.Current != nil {
		current := *o.Current
		c.Current = &current
	}
	c.Rows, c.SpilledVersions, c.Writes = slices.Clone(o.Rows), slices.Clone(o.SpilledVersions), slices.Clone(o.Writes)
	return c
}

// hasSpilled reports whether the object may have spilled rows of the given version. If it returns false, there are
// none.
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

// noteUnspilled updates the counts when a row with a generated place is no longer spilled.
func (o *Object) noteUnspilled() {
	o.Spilled--
	o.SpilledGenerated--
}

// seenVersions collects the versions of rows that are observed from the highest to the lowest. The
// first observed row of each version is its newest row.
type seenVersions struct {
	few  []VersionID // the seen versions; if more than maxFewVersions were seen, many contains them
	many map[VersionID]struct{}
}

const maxFewVersions = 16

// hasSeen reports whether a row of the given version was observed.
func (f *seenVersions) hasSeen(v VersionID) bool {
	_, seen := f.many[v]
	return seen || f.many == nil && slices.Contains(f.few, v)
}

// observe records a row's version, and reports whether this is the first observed row of that
// version.
func (f *seenVersions) observe(v VersionID) bool {
	if f.hasSeen(v) {
		return false
	}
	if f.many != nil {
		f.many[v] = struct{}{}
		return true
	}
	if f.few = append(f.few, v); len(f.few) > maxFewVersions {
		f.many = make(map[VersionID]struct{})
		for _, v := range f.few {
			f.many[v] = struct{}{}
		}
	}
	return true
}

// count returns the number of seen versions.
func (f *seenVersions) count() int { return max(len(f.few), len(f.many)) }

// highestLive returns the index of the highest row that is live and the newest row of its version.
// It returns -1 if none exists. rows are in ascending order.
func (f *seenVersions) highestLive(rows []ObjectRow) int {
	for i := len(rows) - 1; i >= 0; i-- {
		if f.observe(rows[i].Version) && rows[i].IsLive() {
			return i
		}
	}
	return -1
}

// CurrentRow returns the index of an object's current row, or -1. rows are all its rows in
// ascending order.
func CurrentRow(rows []ObjectRow) int {
	var f seenVersions
	i := f.highestLive(rows)
	if i >= 0 && rows[i].IsMarker() {
		return -1
	}
	return i
}
