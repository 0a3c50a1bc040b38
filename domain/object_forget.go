package domain

import (
	"math"
	"strings"
	"time"
)

// An ObjectRetention says how long the rows of objects are kept. Zero means for ever.
//
// A row whose time is known is forgotten when it is older than the retention, if its version
// has a newer row. A version that was deleted is forgotten whole when its newest row is older
// than [MinDeadRetention], too; so a dead object goes version by version, and then whole. The
// newest row of a version that exists is never forgotten, so no current state depends on the
// retention. The row after which an event without sequencer will be placed is not forgotten
// either.
//
// A forgotten row does not return. An object keeps the highest order and the latest time of
// what it has forgotten, and an event that has no row is too old in two cases:
//
//   - Its time is not later than that time. An object that is not stored has the time of
//     [ObjectRetention.Horizon] instead, and keeps it when it is stored again.
//   - Its sequencer is not above that order: a second report of one event may give it another time,
//     or none. The order of an event without sequencer depends on the rows that are there when it
//     comes, and the message that carried it gives it the same time each time.
//
// An object that is watched is not forgotten whole: it keeps its mark and the limits of what it
// has forgotten.
//
// A row whose time is unknown is never forgotten, and its object is not forgotten either: an
// event of unknown time could not be distinguished from a forgotten one. Of an object in doubt
// nothing is forgotten, since the order of its rows is not known.
//
// The retention is the limit for how late events may come. An event that comes later than that is
// refused, although it may say that a version was deleted.
type ObjectRetention time.Duration

// MinDeadRetention is the least age of the last row of a version, when it is forgotten. It is how long
// Amazon SQS delivers a message again.
const MinDeadRetention = 14 * 24 * time.Hour

// forgetMargin is added to the age of the last row of a version. It is for clocks that differ, and
// for events that were found not too old just before.
const forgetMargin = time.Hour

// MaxForgotten is the limit for the spilled rows that one update forgets.
const MaxForgotten = 30

// Horizon returns the time of the latest events that are too old for an object that is not stored,
// or the zero time.
func (r ObjectRetention) Horizon(now time.Time) time.Time {
	if r <= 0 {
		return time.Time{}
	}
	return now.Add(-max(time.Duration(r), MinDeadRetention))
}

// isOlder reports whether a time is known, and before a limit.
func isOlder(t, limit time.Time) bool { return !t.IsZero() && orderedTime(t) < limit.UnixMicro() }

// isTooOld reports whether an event that has no row may have been forgotten.
func (o *Object) isTooOld(e *ObjectEvent) bool {
	if !e.Time.IsZero() && orderedTime(e.Time) <= orderedTime(o.ForgottenTo) {
		return true
	}
	order := (&ObjectRow{ObjectEvent: *e}).Order()
	return !e.Sequencer.IsNull() && order.Compare(o.Forgotten) <= 0 && areComparable(order.Base, o.Forgotten.Base)
}

// areComparable reports whether a store documents the order of two sequencers, which are given by
// their orders.
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

// Forget forgets what a retention permits at a time: rows in the object, and spilled ones that come after
// an order, of which it looks at up to MaxForgotten. It returns the order of the last one of these, and
// whether there may be more. The result is valid if Finish has no queries.
func (u *ObjectUpdate) Forget(r ObjectRetention, now time.Time, after ObjectOrder) (last ObjectOrder, hasMore bool) {
	o := &u.object
	if r <= 0 || o.Doubt || u.repeated {
		return after, false
	}
	f := forgetting{
		u:    u,
		rows: now.Add(-time.Duration(r)),
		dead: r.Horizon(now).Add(-forgetMargin),
	}
	if last = after; o.Spilled > 0 {
		last, hasMore = f.forgetSpilled(after)
	}
	f.forgetInside()
	// An object that is watched remains, so that the versions of its changes continue.
	u.isGone = !o.IsWatched && len(o.Rows) == 0 && o.Spilled == 0 && !o.ForgottenTo.IsZero() && isOlder(o.ForgottenTo, f.dead)
	u.hasEffect = u.hasEffect || u.isGone
	return last, hasMore
}

// A forgetting is one call of Forget.
type forgetting struct {
	u    *ObjectUpdate
	rows time.Time // rows before are old
	dead time.Time // so are the last rows of versions
}

// A forgettableVersion says what may be forgotten of a version.
type forgettableVersion struct {
	isDead bool // the newest row, too
	// newest and anchor are the rows that are kept otherwise. Null sequencers are placed behind the anchor,
	// which is nil if it does not matter or is elsewhere.
	newest, anchor *ObjectRow
}

// note records a row that is above all previous ones of the version.
func (v *forgettableVersion) note(r *ObjectRow, dead time.Time) {
	v.newest, v.isDead = r, !r.IsLive() && isOlder(r.Time, dead)
	if r.IsAnchor() {
		v.anchor = r
	}
}

// keeps reports whether a row is not forgotten, however old it is.
func (v *forgettableVersion) keeps(r *ObjectRow) bool {
	return !v.isDead && (v.newest != nil && v.newest.ID() == r.ID() || v.anchor != nil && v.anchor.ID() == r.ID())
}

// versionsInside returns what may be forgotten of the versions that have rows in the object.
func (f *forgetting) versionsInside() map[VersionID]*forgettableVersion {
	versions := make(map[VersionID]*forgettableVersion)
	for i := range f.u.object.Rows {
		r := &f.u.object.Rows[i]
		if versions[r.Version] == nil {
			versions[r.Version] = &forgettableVersion{}
		}
		versions[r.Version].note(r, f.dead)
	}
	return versions
}

// forgetSpilled forgets spilled rows, and returns what Forget does.
func (f *forgetting) forgetSpilled(after ObjectOrder) (last ObjectOrder, hasMore bool) {
	page, _ := f.u.below.load(SpilledQuery{Kind: SpilledOld, Order: after, Time: f.rows.UnixMicro()})
	last = after
	inside := f.versionsInside()
	for i := range page {
		r := &page[i]
		last = r.Order()
		if f.maySpilledGo(r, inside[r.Version]) {
			f.u.below.remove(r.ID())
			f.u.object.Spilled--
			if r.IsGenerated() {
				f.u.object.SpilledGenerated--
			}
			f.note(r)
		}
	}
	if o := &f.u.object; o.Spilled == 0 {
		o.Floor, o.SpilledVersions, o.SpilledTo = ObjectOrder{}, nil, time.Time{}
	}
	return last, len(page) == MaxForgotten
}

// maySpilledGo reports whether an old spilled row may be forgotten, given what is in the object of its
// version, if anything is.
func (f *forgetting) maySpilledGo(r *ObjectRow, inside *forgettableVersion) bool {
	below := &f.u.below
	head, answered := below.load(SpilledQuery{Kind: SpilledHead, Version: r.Version})
	if !answered || len(head) == 0 {
		return false
	}
	v := &forgettableVersion{}
	v.note(&head[0], f.dead)
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
	if v.keeps(r) {
		return false
	}
	if head[0].ID() == r.ID() {
		// All other old rows of the version are forgotten, now or before, except the anchor.
		left := SpilledQuery{Kind: SpilledRecent, Version: r.Version, Time: f.rows.UnixMicro()}
		recent, answered := below.load(left)
		if !answered || inside == nil && len(recent) > 0 {
			return false
		}
		below.noteRecent(r.Version, left)
	}
	return true
}

// forgetInside forgets rows in the object.
func (f *forgetting) forgetInside() {
	o := &f.u.object
	versions := f.versionsInside()
	has := make(map[VersionID]bool) // rows that are kept
	var kept []ObjectRow
	for i := range o.Rows {
		r := &o.Rows[i]
		v := versions[r.Version]
		isKept := !isOlder(r.Time, f.rows) || v.keeps(r) || r == v.newest && (has[r.Version] || f.hasSpilled(r.Version))
		if isKept {
			has[r.Version] = true
			kept = append(kept, *r)
		} else {
			f.note(r)
		}
	}
	o.Rows = kept
}

// hasSpilled reports whether a version has spilled rows.
func (f *forgetting) hasSpilled(v VersionID) bool {
	if !f.u.object.hasSpilled(v) {
		return false
	}
	head, answered := f.u.below.load(SpilledQuery{Kind: SpilledHead, Version: v})
	return !answered || len(head) > 0
}

// note records a forgotten row.
func (f *forgetting) note(r *ObjectRow) {
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
