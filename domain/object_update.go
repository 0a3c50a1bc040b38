package domain

import (
	"cmp"
	"maps"
	"slices"
)

// An ObjectUpdate applies events to a copy of an object, and returns the changes to store.
// Object.Update creates one; the zero value is not usable. It is not safe for concurrent use.
type ObjectUpdate struct {
	object   Object
	current  *ObjectRow // the object's current row before the update
	ids      []string
	repeated bool // an update with one of ids is already stored, so this one changes nothing
	changed  bool // whether rows were added or moved

	hasEffect bool // the update has changes to store
	isGone    bool // the object must be deleted

	claimed map[ObjectRowID]struct{} // rows that were created for events of this update, in this run or an earlier one
	moved   map[ObjectRowID]ObjectRow
	below   spilledRows
}

// An ObjectOutcome says what an update did with an event.
type ObjectOutcome int

// The values of ObjectOutcome.
const (
	ObjectStored    ObjectOutcome = iota + 1 // this update stores the event
	ObjectDuplicate                          // a row of the event is already stored
	ObjectTooOld                             // the event is not stored, because it is too old; see ObjectRetention
)

// ObjectChanges contains the changes of an update. They are stored atomically, and only if the
// stored object has not changed since it was read.
type ObjectChanges struct {
	Object  Object
	Create  []ObjectRow   // rows that are now spilled, and were not before
	Replace []ObjectRow   // rows that were spilled before, and have changed
	Delete  []ObjectRowID // ids of rows that were spilled before, and no longer are
	Heads   []ObjectRow   // newest spilled row of each version for which this row may have changed
	NoHeads []VersionID   // versions that no longer have spilled rows
	Moved   []ObjectRow   // rows that moved, with their new places, highest first; see ObjectUpdate.Move
	// Event is the event to publish to the object's watches, with Object.Changes as its version. It
	// is "" if there is no event.
	Event ChangeEvent
	// State says how the object's current state changed. It is "" if it did not change.
	State  ObjectStateEvent
	before *ObjectRow // current row before the update
	// IsEmpty is set if there is nothing to store: the update is already stored, all its events are
	// too old, or no row was forgotten.
	IsEmpty bool
	// IsGone is set if the object must be deleted: it has no rows, and the limits of its forgotten
	// rows are no longer needed.
	IsGone bool
}

// Update begins an update of o. answers are the results of queries for spilled rows of o. ids[0] is
// the id of the update; further ids are those of larger updates that include it. An update is
// stored with its first id. If the reply of a write is lost, any of ids in Object.Writes means that
// the update was stored, alone or in a larger one. ids may be empty.
func (o *Object) Update(answers SpilledAnswers, ids ...string) *ObjectUpdate {
	return &ObjectUpdate{
		object: o.Clone(), current: o.Current, ids: ids, repeated: o.HasWrite(ids...),
		below: spilledRows{answers: answers},
	}
}

// Apply applies the events of one call. The outcomes are valid if Finish returns no queries.
//
// If the call contains an event twice, the event is applied once. Events with a sequencer are
// applied first. The events without sequencer follow, ordered by time; at equal times, Created
// precedes Deleted.
func (u *ObjectUpdate) Apply(events []ObjectEvent) []ObjectOutcome {
	outcomes := make([]ObjectOutcome, len(events))
	if len(events) == 1 {
		outcomes[0] = u.apply(&events[0], events[0].ID())
		return outcomes
	}
	seen := make(map[ObjectRowID]ObjectOutcome, len(events))
	for _, i := range sortedEvents(events) {
		id := events[i].ID()
		if first, twice := seen[id]; twice {
			outcomes[i] = first.OfRepeat()
			continue
		}
		outcomes[i] = u.apply(&events[i], id)
		seen[id] = outcomes[i]
	}
	return outcomes
}

// OfRepeat returns the outcome of an event when the same call contains it again. o is the outcome
// of the event itself.
func (o ObjectOutcome) OfRepeat() ObjectOutcome {
	if o == ObjectStored {
		return ObjectDuplicate
	}
	return o
}

// sortedEvents returns the indexes of events, in the order in which Apply applies the events.
func sortedEvents(events []ObjectEvent) []int {
	orders := make([]ObjectOrder, len(events))
	indexes := make([]int, len(events))
	for i := range events {
		e := &events[i]
		indexes[i] = i
		if e.Sequencer.IsNull() {
			orders[i] = ObjectOrder{Rank: BehindRow, Time: orderedTime(e.Time), Type: e.Type}
		} else {
			orders[i] = (&ObjectRow{ObjectEvent: *e}).Order()
		}
	}
	slices.SortStableFunc(indexes, func(i, j int) int {
		a, b := orders[i], orders[j]
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), a.Compare(b))
	})
	return indexes
}

func (u *ObjectUpdate) apply(e *ObjectEvent, id ObjectRowID) ObjectOutcome {
	row, answered := u.find(e, id)
	switch {
	case !answered:
		return 0
	case row == nil && u.object.isTooOld(e):
		return ObjectTooOld
	case row == nil && u.repeated:
		return ObjectStored
	case row == nil:
		u.insert(ObjectRow{ObjectEvent: *e})
	case !slices.Contains(u.ids, row.WriteID) || u.hasClaimed(id):
		if !u.repeated {
			row.Duplicates++
			u.object.Duplicates++
			u.hasEffect = true
			u.below.noteChange(id)
		}
		return ObjectDuplicate
	}
	if u.claimed == nil {
		u.claimed = make(map[ObjectRowID]struct{})
	}
	u.claimed[id] = struct{}{}
	return ObjectStored
}

func (u *ObjectUpdate) hasClaimed(id ObjectRowID) bool {
	_, claimed := u.claimed[id]
	return claimed
}

// find returns the row of an event, or nil. Its second result is false if it needs a query whose
// result is not known yet.
func (u *ObjectUpdate) find(e *ObjectEvent, id ObjectRowID) (*ObjectRow, bool) {
	o := &u.object
	if e.Sequencer.IsNull() {
		for i := range o.Rows {
			if r := &o.Rows[i]; r.IsGenerated() && r.Carrier == e.Carrier {
				return r, true
			}
		}
		if o.SpilledGenerated == 0 {
			return nil, true
		}
	} else {
		order := (&ObjectRow{ObjectEvent: *e}).Order()
		if order.Compare(o.Floor) > 0 || !o.hasSpilled(e.Version) {
			if i, found := u.index(order); found {
				return &o.Rows[i], true
			}
			return nil, true
		}
	}
	found, answered := u.below.lookUp(SpilledQuery{Kind: SpilledByID, ID: id})
	if len(found) == 0 {
		return nil, answered
	}
	return &found[0].row, true
}

// index returns the index in Rows of the row with the given order, and true. If no such row exists,
// it returns the index at which the row would be inserted, and false.
func (u *ObjectUpdate) index(order ObjectOrder) (int, bool) {
	rows := u.object.Rows
	if n := len(rows); n == 0 || rows[n-1].Order().Compare(order) < 0 {
		return n, false // the most frequent case: the event is the newest one
	}
	return slices.BinarySearchFunc(rows, order, func(r ObjectRow, order ObjectOrder) int { return r.Order().Compare(order) })
}

// insert adds the row of a new event.
func (u *ObjectUpdate) insert(row ObjectRow) {
	o := &u.object
	if len(u.ids) > 0 {
		row.WriteID = u.ids[0]
	}
	if row.Sequencer.IsNull() {
		o.Generated++
		row.Number = o.Generated
		u.setPlace(&row)
	} else {
		u.noteDoubt(&row)
	}
	o.Events++
	u.changed, u.hasEffect = true, true
	u.countReordered(&row)
	u.put(row)
	u.moveBehind(&row)
	u.settleDoubt(&row)
}

// put adds a row to the object if its order is above the floor. Otherwise it adds the row to the
// spilled rows.
func (u *ObjectUpdate) put(row ObjectRow) {
	o, order := &u.object, row.Order()
	if order.Compare(o.Floor) > 0 {
		i, _ := u.index(order)
		o.Rows = slices.Insert(o.Rows, i, row)
		return
	}
	u.below.put(row)
	u.below.noteVersion(row.Version)
	o.noteSpilled(&row)
}

// Finish returns the changes to store, or queries if the changes depend on spilled rows. For
// queries, the caller adds their results to the answers that it already has, and begins a new
// update of the same object.
func (u *ObjectUpdate) Finish(limits ObjectLimits) (ObjectChanges, []SpilledQuery) {
	if u.repeated {
		return ObjectChanges{Object: u.object, IsEmpty: true}, u.below.queries
	}
	o := &u.object
	u.setCurrent()
	var changes ObjectChanges
	heads := make(map[VersionID]ObjectRow)
	for v := range u.below.versions {
		if head := u.newestSpilled(v); head != nil {
			heads[v] = *head
		} else {
			changes.NoHeads = append(changes.NoHeads, v)
		}
	}
	if len(u.below.queries) > 0 {
		return ObjectChanges{}, u.below.queries
	}
	if !u.hasEffect {
		return ObjectChanges{Object: u.object, IsEmpty: true}, nil
	}
	u.spill(limits, heads)
	changes.NoHeads = slices.DeleteFunc(changes.NoHeads, func(v VersionID) bool { _, has := heads[v]; return has })
	if len(u.ids) > 0 {
		o.Writes = append(o.Writes, u.ids[0])
		o.Writes = o.Writes[max(len(o.Writes)-MaxObjectWrites, 0):]
	}
	changes.State, changes.before = stateEvent(u.current, o.Current), u.current
	if o.IsWatched {
		if changes.Event = changes.State.watcherEvent(); changes.Event != "" {
			o.Changes++
		}
	}
	changes.Object, changes.IsGone = *o, u.isGone
	u.below.addChangesTo(&changes)
	changes.Moved = slices.SortedFunc(maps.Values(u.moved), func(a, b ObjectRow) int { return CompareObjectRows(b, a) })
	changes.Heads = slices.SortedFunc(maps.Values(heads), CompareObjectRows)
	slices.SortFunc(changes.NoHeads, func(a, b VersionID) int { return compareVersions(a, b) })
	return changes, nil
}

// setCurrent sets the current row. Spilled rows matter only if no row in the object is live.
func (u *ObjectUpdate) setCurrent() {
	o := &u.object
	if !u.changed {
		if o.Current != nil { // the current row's count of duplicates may have changed
			u.setCurrentTo(u.findAgain(o.Current))
		}
		return
	}
	var f seenVersions
	if i := f.highestLive(o.Rows); i >= 0 {
		u.setCurrentTo(&o.Rows[i])
		return
	}
	isOutside := func(v VersionID) bool { return !f.hasSeen(v) }
	if o.Spilled == 0 || len(o.SpilledVersions) < MaxSpilledVersions && !slices.ContainsFunc(o.SpilledVersions, isOutside) {
		o.Current = nil
		return
	}
	u.setCurrentTo(u.highestSpilled(&f))
}

// highestSpilled returns the highest live row among the newest rows of versions that have only
// spilled rows, or nil. inside are the versions with rows in the object.
func (u *ObjectUpdate) highestSpilled(inside *seenVersions) (highest *ObjectRow) {
	observe := func(r *ObjectRow) {
		if !inside.hasSeen(r.Version) && r.IsLive() && (highest == nil || CompareObjectRows(*highest, *r) < 0) {
			highest = r
		}
	}
	// This update may have changed which row of these versions is the newest, so the store's answer
	// is not enough.
	for v := range u.below.versions {
		if r := u.newestSpilled(v); r != nil {
			observe(r)
		}
	}
	// Rows of changed versions and of versions in the object are skipped. One more row is needed.
	limit := inside.count() + len(u.below.versions) + 1
	stored, _ := u.below.load(SpilledQuery{Kind: SpilledLive, Limit: limit})
	for i := range stored {
		if _, mayHaveChanged := u.below.versions[stored[i].Version]; !mayHaveChanged {
			observe(&stored[i])
		}
	}
	return highest
}

// setCurrentTo makes highest the current row, unless it is a delete marker.
func (u *ObjectUpdate) setCurrentTo(highest *ObjectRow) {
	u.object.Current = nil
	if highest != nil && !highest.IsMarker() {
		current := *highest
		u.object.Current = &current
	}
}

// findAgain returns the same row as r, with the changes of this update.
func (u *ObjectUpdate) findAgain(r *ObjectRow) *ObjectRow {
	if i, found := u.index(r.Order()); found {
		return &u.object.Rows[i]
	}
	if known := u.below.rows[r.ID()]; known != nil {
		return &known.row
	}
	return r
}

// spill moves the lower half of the object's rows to the spilled rows, and repeats this until the
// remaining rows are within limits. At least the newest row remains in the object.
func (u *ObjectUpdate) spill(limits ObjectLimits, heads map[VersionID]ObjectRow) {
	o := &u.object
	for len(o.Rows) > 1 && (limits.Rows > 0 && len(o.Rows) > limits.Rows || limits.Bytes > 0 && rowsSize(o.Rows) > limits.Bytes) {
		n := len(o.Rows) / 2
		for i := range o.Rows[:n] {
			r := &o.Rows[i]
			u.below.put(*r)
			o.noteSpilled(r)
			heads[r.Version] = *r
		}
		o.Floor = o.Rows[n-1].Order()
		o.Rows = slices.Clone(o.Rows[n:])
	}
}

func rowsSize(rows []ObjectRow) (n int) {
	for i := range rows {
		n += rows[i].size()
	}
	return n
}
