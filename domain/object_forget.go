package domain

import (
	"math"
	"strings"
	"time"
)

// An ObjectRetention is the time for which the rows of objects are retained. Zero means forever.
//
// A row is forgotten when it is older than the retention, if its time is known and a newer row of
// its version exists. A deleted version is forgotten completely once its newest row is also older
// than [MinDeadRetention]. When all versions of a deleted object are forgotten, the object is
// forgotten, too. The newest row of an existing version is never forgotten, so the retention
// changes no current state. The row behind which the next event without sequencer would be placed
// is not forgotten either.
//
// A forgotten row is never stored again. An object stores the highest order and the latest time
// of its forgotten rows. An event without a row is too old in two cases:
//
//   - Its time is not later than the latest time of the forgotten rows. For an object that is not
//     stored, [ObjectRetention.Horizon] replaces this time, and is stored with the object when
//     the object is created again.
//   - Its sequencer is not above the highest order of the forgotten rows. The time alone is not
//     enough: a second report of an event may have a different time, or no time. Events without
//     sequencer need no such rule: their message contains the same times at each delivery.
//
// A watched object is never completely forgotten: Object.IsWatched and the limits of its forgotten
// rows remain.
//
// A row whose time is unknown is never forgotten, and its object is not forgotten either: an
// event of unknown time could not be distinguished from a forgotten one. An object in doubt
// forgets no rows, because their order is unknown.
//
// The retention limits how late events may arrive. An event that is too old is refused, even if it
// reports that a version was deleted.
type ObjectRetention time.Duration

// MinDeadRetention is the minimum age at which the last row of a deleted version is forgotten.
// Amazon SQS redelivers a message for at most this time.
const MinDeadRetention = 14 * 24 * time.Hour

// forgetMargin is added to the age at which the last row of a deleted version is forgotten. It
// allows for clocks that differ, and for events that were accepted just before they became too old.
const forgetMargin = time.Hour

// MaxForgotten is the maximum number of spilled rows that one update forgets.
const MaxForgotten = 30

// Horizon returns the time up to which events are too old for an object that is not stored. It
// returns the zero time if no event is too old.
func (r ObjectRetention) Horizon(now time.Time) time.Time {
	if r <= 0 {
		return time.Time{}
	}
	return now.Add(-max(time.Duration(r), MinDeadRetention))
}

// isOlder reports whether t is known and before limit.
func isOlder(t, limit time.Time) bool { return !t.IsZero() && orderedTime(t) < limit.UnixMicro() }

// isTooOld reports whether the event e, which has no row, may have been stored and forgotten
// before.
func (o *Object) isTooOld(e *ObjectEvent) bool {
	if !e.Time.IsZero() && orderedTime(e.Time) <= orderedTime(o.ForgottenTo) {
		return true
	}
	order := (&ObjectRow{ObjectEvent: *e}).Order()
	return !e.Sequencer.IsNull() && order.Compare(o.Forgotten) <= 0 && areComparable(order.Base, o.Forgotten.Base)
}

// areComparable reports whether a store documents the order of two sequencers. a and b are results
// of Sequencer.order.
func areComparable(a, b string) bool {
	formOf := func(order string) string {
		if !strings.HasPrefix(order, opaquePrefix) {
			return ""
		}
		length, _, _ := strings.Cut(order, ":")
		return length
	}
	return formOf(a) == formOf(b)
}

// Forget removes the rows that are old enough to be forgotten at the time now: rows in the object,
// and spilled rows above the order after. It checks up to MaxForgotten spilled rows. It returns the
// order of the last checked row, and whether more spilled rows may be old. The result is valid if
// Finish returns no queries.
func (u *ObjectUpdate) Forget(r ObjectRetention, now time.Time, after ObjectOrder) (last ObjectOrder, hasMore bool) {
	o := &u.object
	if r <= 0 || o.Doubt || u.repeated {
		return after, false
	}
	f := forgetCall{
		u:    u,
		rows: now.Add(-time.Duration(r)),
		dead: r.Horizon(now).Add(-forgetMargin),
	}
	if last = after; o.Spilled > 0 {
		last, hasMore = f.forgetSpilled(after)
	}
	f.forgetInside()
	// A watched object is never gone, because the version numbers of its changes must continue.
	u.isGone = !o.IsWatched && len(o.Rows) == 0 && o.Spilled == 0 && !o.ForgottenTo.IsZero() && isOlder(o.ForgottenTo, f.dead)
	u.hasEffect = u.hasEffect || u.isGone
	return last, hasMore
}

// A forgetCall contains the state of one call of Forget.
type forgetCall struct {
	u    *ObjectUpdate
	rows time.Time // rows before this time are old
	dead time.Time // last rows of deleted versions are old before this time
}

// A forgettableVersion records which rows of a version may be forgotten.
type forgettableVersion struct {
	isDead bool // the version is deleted, and even its newest row may be forgotten
	// newest and anchor remain, unless the version is dead. Events without sequencer are placed
	// behind the anchor. The anchor is nil if none is needed, or if it is spilled.
	newest, anchor *ObjectRow
}

// addRow records a row of the version. The caller adds rows in ascending order.
func (v *forgettableVersion) addRow(r *ObjectRow, dead time.Time) {
	v.newest, v.isDead = r, !r.IsLive() && isOlder(r.Time, dead)
	if r.IsAnchor() {
		v.anchor = r
	}
}

// isKept reports whether a row remains stored, however old it is.
func (v *forgettableVersion) isKept(r *ObjectRow) bool {
	return !v.isDead && (v.newest != nil && v.newest.ID() == r.ID() || v.anchor != nil && v.anchor.ID() == r.ID())
}

// versionsInside records, for each version with rows in the object, which rows may be forgotten.
func (f *forgetCall) versionsInside() map[VersionID]*forgettableVersion {
	versions := make(map[VersionID]*forgettableVersion)
	for i := range f.u.object.Rows {
		r := &f.u.object.Rows[i]
		if versions[r.Version] == nil {
			versions[r.Version] = &forgettableVersion{}
		}
		versions[r.Version].addRow(r, f.dead)
	}
	return versions
}

// forgetSpilled forgets old spilled rows. Its results are those of Forget.
func (f *forgetCall) forgetSpilled(after ObjectOrder) (last ObjectOrder, hasMore bool) {
	page, _ := f.u.below.load(SpilledQuery{Kind: SpilledOld, Order: after, Time: f.rows.UnixMicro()})
	last = after
	inside := f.versionsInside()
	for i := range page {
		r := &page[i]
		last = r.Order()
		if f.canForgetSpilled(r, inside[r.Version]) {
			f.u.below.remove(r.ID())
			f.u.object.Spilled--
			if r.IsGenerated() {
				f.u.object.SpilledGenerated--
			}
			f.countForgotten(r)
		}
	}
	if o := &f.u.object; o.Spilled == 0 {
		o.Floor, o.SpilledVersions, o.SpilledTo = ObjectOrder{}, nil, time.Time{}
	}
	return last, len(page) == MaxForgotten
}

// canForgetSpilled reports whether an old spilled row may be forgotten. inside describes the
// object's rows of the same version; it is nil if the object contains none.
func (f *forgetCall) canForgetSpilled(r *ObjectRow, inside *forgettableVersion) bool {
	below := &f.u.below
	head, answered := below.load(SpilledQuery{Kind: SpilledHead, Version: r.Version})
	if !answered || len(head) == 0 {
		return false
	}
	v := &forgettableVersion{}
	v.addRow(&head[0], f.dead)
	if inside != nil {
		v.newest, v.isDead = nil, inside.isDead
	}
	switch {
	case inside != nil && inside.anchor != nil:
		v.anchor = nil
	case v.anchor == nil && !v.isDead:
		anchor, answered := below.load(SpilledQuery{Kind: SpilledAnchor, Version: r.Version, Time: math.MaxInt64})
		if !answered {
			return false
		}
		if len(anchor) > 0 {
			v.anchor = &anchor[0]
		}
	}
	if v.isKept(r) {
		return false
	}
	if head[0].ID() == r.ID() {
		// At this point, all other old rows of the version are forgotten, except the anchor.
		left := SpilledQuery{Kind: SpilledRecent, Version: r.Version, Time: f.rows.UnixMicro()}
		recent, answered := below.load(left)
		if !answered || inside == nil && len(recent) > 0 {
			return false
		}
		below.noteRecent(r.Version, left)
	}
	return true
}

// forgetInside forgets rows that are stored in the object.
func (f *forgetCall) forgetInside() {
	o := &f.u.object
	versions := f.versionsInside()
	hasKept := make(map[VersionID]bool) // versions with at least one row in kept
	var kept []ObjectRow
	for i := range o.Rows {
		r := &o.Rows[i]
		v := versions[r.Version]
		isKept := !isOlder(r.Time, f.rows) || v.isKept(r) || r == v.newest && (hasKept[r.Version] || f.hasSpilled(r.Version))
		if isKept {
			hasKept[r.Version] = true
			kept = append(kept, *r)
		} else {
			f.countForgotten(r)
		}
	}
	o.Rows = kept
}

// hasSpilled reports whether the given version has spilled rows.
func (f *forgetCall) hasSpilled(v VersionID) bool {
	if !f.u.object.hasSpilled(v) {
		return false
	}
	head, answered := f.u.below.load(SpilledQuery{Kind: SpilledHead, Version: v})
	return !answered || len(head) > 0
}

// countForgotten records that a row was forgotten.
func (f *forgetCall) countForgotten(r *ObjectRow) {
	o := &f.u.object
	f.u.hasEffect = true
	o.Events--
	o.Duplicates -= r.Duplicates
	o.ForgottenRows++
	if order := r.Order(); order.Compare(o.Forgotten) > 0 {
		o.Forgotten = order
	}
	if r.Time.After(o.ForgottenTo) {
		o.ForgottenTo = r.Time
	}
}
