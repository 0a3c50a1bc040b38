package smallsaves

// jobOf returns the current batch of a writer, or nil if the writer has finished all batches.
func (m *model) jobOf(w *writerProcess) *job {
	if jobs := m.jobs[w.id]; int(w.job) < len(jobs) {
		return &jobs[w.job]
	}
	return nil
}

// stepWriter adds the steps that writer i can take from s.
func (m *model) stepWriter(s *modelState, i int) *violation {
	w := &s.writers[i]
	if !w.working {
		return nil
	}
	j := m.jobOf(w)
	if j == nil {
		return nil
	}
	m.name = [...]string{"W0", "W1"}[i]
	if w.step == readHead && j.flush {
		m.beginFlushes(s, i)
		return nil
	}
	if w.step == readHead && j.sweep {
		m.beginSweeps(s, i)
		return nil
	}
	if s.crashes > 0 && w.step != readHead {
		t := *s
		t.crashes--
		t.writers[i].incarnation++
		t.writers[i].startOver()
		m.addStep(&t, "CRASH, and the batch is delivered again")
	}
	switch w.step {
	case readHead:
		return m.readHead(s, i, j)
	case reserve:
		m.addReserveSteps(s, i)
	case writePages:
		m.writePages(s, i)
	case countDrawers:
		m.countDrawers(s, i)
	case writeEntries:
		m.writeEntries(s, i)
	case commit:
		return m.addCommitSteps(s, i, j)
	case saveSmall:
		return m.saveSmall(s, i, j)
	case claim:
		m.addClaimSteps(s, i)
	case sealDrawers:
		m.sealDrawers(s, i)
	case clearIntent:
		m.clearIntent(s, i)
	case flushPage, flushCount, flushEntry, flushHead, leaveDrawer:
		return m.stepFlush(s, i)
	case proveGate, closeDrawer, removeEntries, removePages, removeDrawers, clearClosed:
		m.stepSweep(s, i)
	}
	return nil
}

// startOver adds a step by which writer i reads the head again.
func (m *model) startOver(s *modelState, i int, why string) {
	t := *s
	t.writers[i].startOver()
	m.addStep(&t, "%s", why)
}

// replaceHead writes h with the id of an operation. The id is 0 if no writer compares it later.
func (m *model) replaceHead(t *modelState, h headDocument, operation uint8) {
	h.version = t.head.current.version + 1
	h.operation = operation
	t.head.write(h, m.Versions)
}

// recordSuccess records that the Save of j returned success, and begins the next batch.
func (m *model) recordSuccess(t *modelState, i int, j *job) {
	for _, e := range j.events {
		t.history.answered |= 1 << e
	}
	t.writers[i].job++
	t.writers[i].startOver()
}

// checkAnswers reports a Save that returned success for an event that is not committed.
func (m *model) checkAnswers(t *modelState, format string, args ...any) *violation {
	if t.history.answered&^t.history.committed != 0 {
		return m.newViolation("H1: a Save returned success and an event is not committed", format, args...)
	}
	return nil
}

// addSuccessStep adds the step to t after which the Save of j has returned success.
func (m *model) addSuccessStep(t *modelState, i int, j *job, format string, args ...any) *violation {
	m.recordSuccess(t, i, j)
	if v := m.checkAnswers(t, format, args...); v != nil {
		return v
	}
	m.addStep(t, format, args...)
	return nil
}
