package domain

import (
	"strconv"
	"time"
)

// noteDoubt sets Object.Doubt if no store documents the order of the new row relative to a row in
// the object.
func (u *ObjectUpdate) noteDoubt(row *ObjectRow) {
	o := &u.object
	for i := range o.Rows {
		s := o.Rows[i].Sequencer
		if s.IsNull() {
			s = o.Rows[i].Base
		}
		o.Doubt = o.Doubt || !s.IsNull() && s.isDoubtfulBeside(row.Sequencer)
	}
}

// settleDoubt clears Object.Doubt if row contains the state that was read from the store, and no
// row is later. The order of earlier rows does not affect the current state.
func (u *ObjectUpdate) settleDoubt(row *ObjectRow) {
	o := &u.object
	if !o.Doubt || !row.isStateOfStore() || len(o.Rows) == 0 || o.Rows[len(o.Rows)-1].ID() != row.ID() {
		return
	}
	for i := range o.Rows {
		if isEarlier(row.Time, o.Rows[i].Time) {
			return
		}
	}
	o.Doubt = false
}

// isStateOfStore reports whether the row comes from a read of the store rather than from an event.
func (r *ObjectRow) isStateOfStore() bool {
	return r.IsGenerated() && (r.Reason == Confirmed || r.Reason == Crawl || r.Reason == CrawlRestored)
}

// Confirm returns an event that records the state of an object in doubt, as read from the store.
// eTag is the ETag of the object's content, or empty if the store does not contain the object.
// requested is the time of the request to the store, which was sent after o was read. So the
// response is newer than all rows of o. The time of the event is requested minus [ClockMargin], or
// the time of the last row if that is later. Confirm returns false if the response matches no row
// of o, for example because events have not arrived yet. It also returns false if the object has
// versions, because an ETag does not determine their state.
func (o *Object) Confirm(eTag string, requested time.Time) (ObjectEvent, bool) {
	e := ObjectEvent{Type: ObjectDeleted, Time: responseTime(requested)}
	isFound := eTag == ""
	for i := range o.Rows {
		r := &o.Rows[i]
		if r.Version != (VersionID{}) {
			return ObjectEvent{}, false
		}
		if r.Time.After(e.Time) {
			e.Time = r.Time
		}
		if eTag != "" && r.Type == ObjectCreated && r.ETag == eTag {
			e.Type, e.ObjectFacts, isFound = ObjectCreated, r.ObjectFacts, true
		}
	}
	e.Reason = Confirmed
	e.Carrier = Carrier{Message: "confirmed:" + strconv.FormatInt(o.Events, 10) + ":" + eTag}
	return e, isFound
}
