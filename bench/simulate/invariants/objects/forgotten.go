package objects

// checkForgotten checks removed rows and new rows against L1 and L7.
func (j *objectCheck) checkForgotten(rows []objectRow) {
	present := make(map[eventIdentity]bool, len(rows))
	newest := make(map[string]objectRow) // newest row of each version, among the rows before and after the commit
	note := func(r objectRow) {
		if top, has := newest[r.Version]; !has || compareRows(top, r) < 0 {
			newest[r.Version] = r
		}
	}
	for _, r := range rows {
		present[r.identityOf()] = true
		note(r)
		j.checkNew(&r)
	}
	for id, r := range j.before.rows {
		if !present[id] {
			j.gone = append(j.gone, r)
			note(r)
		}
	}
	for i := range j.gone {
		r := &j.gone[i]
		top := newest[r.Version]
		j.checkGone(r, top.identityOf() == r.identityOf())
	}
	j.checkMemory()
	if len(j.gone) > 0 {
		j.markReached("rows were forgotten")
	}
	if !j.exists {
		j.markReached("an object was forgotten")
	}
}

// checkGone checks that a removed row may be forgotten.
func (j *objectCheck) checkGone(r *objectRow, isNewest bool) {
	t, isKnown := r.happenedAt()
	if j.Forgets == nil || !isKnown {
		j.addViolation("L1", "the row of event %+v was removed", r.identityOf())
		return
	}
	limit, dead := j.Forgets()
	if isNewest {
		limit = dead
	}
	to, _ := micros(j.doc.ForgottenTo)
	switch {
	case j.exists && (t > to || r.orderOf().compareOrders(j.doc.Forgotten.orderOf()) > 0):
		j.addViolation("L1", "the row of event %+v was removed, but the object does not record that it was forgotten", r.identityOf())
	case isNewest && r.isLive():
		j.addViolation("L7", "the row of event %+v was removed, although it is the newest one of an existing version", r.identityOf())
	case t >= limit.UnixMicro():
		j.addViolation("L7", "the row of event %+v was removed, although it is not older than %v", r.identityOf(), limit)
	}
}

// checkNew checks that a new row is not a row that was forgotten before.
func (j *objectCheck) checkNew(r *objectRow) {
	if _, isOld := j.before.rows[r.identityOf()]; isOld {
		return
	}
	j.checkCrawled(r)
	if _, was := j.before.forgotten[r.identityOf()]; was {
		j.addViolation("L7", "event %+v was forgotten, but has a row again", r.identityOf())
	}
	t, isKnown := r.happenedAt()
	if to, has := micros(j.before.doc.ForgottenTo); has && isKnown && t <= to {
		j.addViolation("L7", "event %+v is new, but not later than the forgotten events", r.identityOf())
	}
}

// checkMemory checks that the object's record of forgotten rows never shrinks.
func (j *objectCheck) checkMemory() {
	before, after := &j.before.doc, &j.doc
	if !j.exists || before.Kind == "" {
		return
	}
	toBefore, hadBefore := micros(before.ForgottenTo)
	to, has := micros(after.ForgottenTo)
	if hadBefore && (!has || to < toBefore) || after.Forgotten.orderOf().compareOrders(before.Forgotten.orderOf()) < 0 {
		j.addViolation("L7", "it had forgotten all events up to %+v of %s, but now up to %+v of %s", before.Forgotten, before.ForgottenTo, after.Forgotten, after.ForgottenTo)
	}
	if want := before.ForgottenRows + int64(len(j.gone)); after.ForgottenRows != want {
		j.addViolation("L7", "it had forgotten %d rows, and %d more were removed, but it counts %d", before.ForgottenRows, len(j.gone), after.ForgottenRows)
	}
}
