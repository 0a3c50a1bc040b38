package domain

import (
	"strconv"
	"time"
)

// noteDoubt sets Object.Doubt if no store documents the order of row and another row.
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

// settleDoubt clears Object.Doubt if row has the state that was read from the store later than all
// other rows. The order of the other rows does not matter for the current state.
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

// isStateOfStore reports whether the row comes from a read of the store, and not from an event.
func (r *ObjectRow) isStateOfStore() bool {
	return r.IsGenerated() && (r.Reason == Confirmed || r.Reason == Crawl || r.Reason == CrawlRestored)
}

// Confirm returns the event that records the state of an object in doubt, as it is in the store.
// eTag is the ETag of the content in the store, or empty if the object does not exist there.
// requested is the time of the request to the store, which was sent after o was read: so the
// response is later than all rows of o. The event has the later of two times: the time of the last
// row, and requested minus [ClockMargin]. Confirm returns false if the response matches no row of
// o, for example while events are outstanding. It also returns false if the object has versions,
// because an ETag does not determine their state.
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
