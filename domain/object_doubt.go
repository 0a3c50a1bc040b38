package domain

import (
	"strconv"
	"time"
)

// noteDoubt flags the object if no store documents the order of row and another one.
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

// settleDoubt removes the flag if row is the state of the store itself, found after all other
// rows. Then the order of the others does not matter.
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

// isStateOfStore reports whether the row was not reported by an event, but found in the store.
func (r *ObjectRow) isStateOfStore() bool {
	return r.IsGenerated() && (r.Reason == Confirmed || r.Reason == Crawl || r.Reason == CrawlRestored)
}

// Confirm returns the event that records the state of an object in doubt in its store. eTag is
// the ETag of the content in the store, or empty if the object does not exist there. asked is
// when the store was asked, after o was read, so the answer is later than all rows of o. The
// event has the later of two times: the time of the last row, and asked less [ClockMargin].
// Confirm returns false if the answer matches no row of o, for example while events are
// outstanding. It also returns false if the object has versions, because an ETag does not
// determine their state.
func (o *Object) Confirm(eTag string, asked time.Time) (ObjectEvent, bool) {
	e := ObjectEvent{Type: ObjectDeleted, Time: timeOfAnswer(asked)}
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
