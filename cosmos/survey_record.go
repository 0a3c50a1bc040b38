package cosmos

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// A surveyRecord stores the state of a mailbox from which a survey computes its line. When the head, a
// gate or a bundle changes, the survey reads only this document. A record with one cabinet takes about 70
// bytes, and each further cabinet about 35 bytes.
type surveyRecord struct {
	hasHead  bool
	groups   []surveyedGroup   // sorted by group name
	cabinets []surveyedCabinet // sorted by hash
	damages  []surveyedDamage
}

// A surveyedGroup is the state of a gate and its bundles.
type surveyedGroup struct {
	group   domain.Group
	hasGate bool
	frozen  bool
	removed domain.Sequence

	open   domain.BundleID
	opened millis

	failing      domain.BundleID // id of the bundle whose content the domain fails to produce
	failures     int
	failingSince millis

	lastPeek    millis
	lastDequeue millis
}

// A surveyedCabinet is the state of a cabinet according to the head and a gate.
type surveyedCabinet struct {
	hash     uint64 // hash of the cabinet's name; see hashOfCabinet
	group    domain.Group
	isInHead bool
	received cabinetState // members that the backlog needs: marks for the events in the tail replace the tail
	isInGate bool
	position position
}

// A surveyedDamage records a document that cannot be read.
type surveyedDamage struct{ document, reason string }

// maxSurveyedMarks limits the marks of a cabinet in a record. A head has fewer marks.
const maxSurveyedMarks = 64

// hashOfCabinet returns the 64-bit hash of a cabinet's name. A mailbox has up to 1,000 cabinets, so a
// collision is very unlikely.
func hashOfCabinet(name cabinetName) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return h.Sum64()
}

// ensureGroup returns the state of a group. If it is missing, ensureGroup adds an empty one.
func (r *surveyRecord) ensureGroup(group domain.Group) *surveyedGroup {
	i, found := slices.BinarySearchFunc(r.groups, group, func(g surveyedGroup, group domain.Group) int {
		return cmp.Compare(g.group.String(), group.String())
	})
	if !found {
		r.groups = slices.Insert(r.groups, i, surveyedGroup{group: group})
	}
	return &r.groups[i]
}

// ensureCabinet returns the state of a cabinet. If it is missing, ensureCabinet adds an empty one.
func (r *surveyRecord) ensureCabinet(name cabinetName, group domain.Group) *surveyedCabinet {
	hash := hashOfCabinet(name)
	i, found := slices.BinarySearchFunc(r.cabinets, hash, func(c surveyedCabinet, hash uint64) int { return cmp.Compare(c.hash, hash) })
	if !found {
		r.cabinets = slices.Insert(r.cabinets, i, surveyedCabinet{hash: hash, group: group})
	}
	return &r.cabinets[i]
}

// setDamage records the reason why a document cannot be read. An empty reason removes the damage of the
// document from r.
func (r *surveyRecord) setDamage(document, reason string) {
	r.damages = slices.DeleteFunc(r.damages, func(d surveyedDamage) bool { return d.document == document })
	if reason != "" && len(r.damages) < maxSurveyedDamages {
		r.damages = append(r.damages, surveyedDamage{document, clipReason(reason)})
	}
}

const maxSurveyedDamages = 8

// clipReason truncates reason to 400 bytes.
func clipReason(reason string) string {
	const limit = 400
	return strings.ToValidUTF8(reason[:min(len(reason), limit)], "\uFFFD")
}

// setHead updates r from a head.
func (r *surveyRecord) setHead(h *head, groupOf func(cabinetName) (domain.Group, error)) {
	r.hasHead = true
	for i := range r.cabinets {
		r.cabinets[i].isInHead, r.cabinets[i].received = false, cabinetState{}
	}
	for name, last := range h.Cabinets {
		group, err := groupOf(name)
		if err != nil {
			continue // no group is configured for the origin, so its events are not counted
		}
		c := r.ensureCabinet(name, group)
		c.isInHead = true
		c.received = cabinetState{
			Sequence: last.Sequence, Total: last.Total, Marks: last.allMarks(),
			BaseOrdinal: last.BaseOrdinal, BaseTotal: last.BaseTotal,
		}
	}
	r.prune()
}

// allMarks returns the marks of a cabinet and marks for the events in its tail.
func (c cabinetState) allMarks() []mark {
	marks := slices.Clone(c.Marks)
	t, err := c.decodeTail(domain.CabinetKey{})
	if err != nil || t == nil {
		return marks
	}
	first := c.Total - int64(len(t.events)) + 1
	marks = slices.DeleteFunc(marks, func(m mark) bool { return m[0] >= first })
	for i := range t.events {
		saved := int64(millisOf(t.events[i].Saved))
		if n := len(marks); n > 0 && marks[n-1][1] == saved && marks[n-1][0] >= first {
			continue
		}
		marks = append(marks, mark{first + int64(i), saved})
	}
	return marks
}

// setGate updates r from a gate. isMovedBack reports that the gate was moved back, so that r lacks marks,
// which the caller must read from the head.
func (r *surveyRecord) setGate(g *gate, group domain.Group) (isMovedBack bool) {
	s := r.ensureGroup(group)
	s.hasGate, s.frozen, s.removed = true, g.Frozen, g.Removed
	s.open, s.opened = domain.BundleID{}, 0
	if id, err := domain.ParseBundleID(g.Open); err == nil && g.Open != "" {
		s.open, s.opened = id, millisOf(g.Opened)
		s.lastPeek = max(s.lastPeek, s.opened)
	}
	if s.failing != s.open {
		s.failing, s.failures, s.failingSince = domain.BundleID{}, 0, 0
	}
	r.damages = slices.DeleteFunc(r.damages, func(d surveyedDamage) bool { // remove the damage of bundles that are no longer open
		id, err := domain.ParseBundleID(d.document)
		return err == nil && !r.isOpen(id)
	})
	for i := range r.cabinets {
		c := &r.cabinets[i]
		if c.group != group || !c.isInGate {
			continue
		}
		c.isInGate = false // set again below if the cabinet is in g
	}
	for name, at := range g.At {
		c := r.ensureCabinet(name, group)
		isMovedBack = isMovedBack || at.Total < c.position.Total
		c.group, c.isInGate = group, true
		c.position = position{Ordinal: at.Ordinal, Sequence: at.Sequence, Total: at.Total, NextSaved: at.NextSaved}
	}
	for i := range r.cabinets {
		if c := &r.cabinets[i]; !c.isInGate {
			c.position = position{}
		}
	}
	r.prune()
	return isMovedBack
}

// isOpen reports whether a bundle is the open bundle of a group in r.
func (r *surveyRecord) isOpen(id domain.BundleID) bool {
	return slices.ContainsFunc(r.groups, func(g surveyedGroup) bool { return g.open == id })
}

// setBundle updates r from a bundle. stored is the time of the last write of the bundle.
func (r *surveyRecord) setBundle(d *bundleDoc, id domain.BundleID, group domain.Group, stored millis) {
	s := r.ensureGroup(group)
	s.lastPeek = max(s.lastPeek, millisOf(d.Opened))
	if d.State == stateDequeued {
		s.lastDequeue = max(s.lastDequeue, stored)
	}
	lacksContent := d.Content == string(domain.Request) && (d.Object == "" || d.Gone)
	switch {
	case d.State == stateOpen && lacksContent && d.ContentFailure != nil && d.ContentFailure.Failures > 0:
		if s.failing != id || s.failingSince == 0 {
			s.failing, s.failingSince = id, stored
		}
		s.failures = d.ContentFailure.Failures
	case s.failing == id:
		s.failing, s.failures, s.failingSince = domain.BundleID{}, 0, 0
	}
}

// keepHistory copies values of possibly removed bundles from the previous record: the times of the last
// Peek and Dequeue, and the time at which a domain began to fail.
func (r *surveyRecord) keepHistory(before *surveyRecord) {
	for i := range before.groups {
		old := &before.groups[i]
		j := slices.IndexFunc(r.groups, func(g surveyedGroup) bool { return g.group == old.group })
		if j < 0 || !r.groups[j].hasGate {
			continue // the gate is lost, so its bundles are lost, too
		}
		g := &r.groups[j]
		g.lastPeek = cmp.Or(g.lastPeek, old.lastPeek)
		if isOpen := g.open != (domain.BundleID{}); !isOpen || old.lastDequeue <= g.opened {
			g.lastDequeue = cmp.Or(g.lastDequeue, old.lastDequeue)
		}
		if g.failing == old.failing && g.failures >= old.failures && old.failingSince != 0 {
			g.failingSince = old.failingSince
		}
	}
}

// prune removes the cabinets that are neither in the head nor in a gate. It also removes the marks below
// the positions of the gates, which are needed only after a gate was moved back.
func (r *surveyRecord) prune() {
	r.cabinets = slices.DeleteFunc(r.cabinets, func(c surveyedCabinet) bool { return !c.isInHead && !c.isInGate })
	for i := range r.cabinets {
		c := &r.cabinets[i]
		at := r.positionOf(c)
		marks := c.received.Marks
		if at.Total >= c.received.Total {
			marks = nil
		}
		begin := 0
		for j := range marks {
			if marks[j][0] <= at.Total+1 {
				begin = j
			}
		}
		marks = marks[min(begin, len(marks)):]
		if n := len(marks); n > maxSurveyedMarks { // without all marks, the computed age may be too high
			marks = slices.Concat(marks[:1], marks[n-maxSurveyedMarks+1:])
		}
		c.received.Marks = marks
	}
}

// positionOf returns the position of the gate in a cabinet.
func (r *surveyRecord) positionOf(c *surveyedCabinet) position {
	at := c.position
	if !c.isInGate {
		at.Sequence = r.ensureGroup(c.group).removed
	}
	return c.received.sinceBase(at)
}

// toMailbox returns the line of the mailbox. If isFrozen is true, groups without a gate count as frozen.
func (r *surveyRecord) toMailbox(recipient domain.ActorID, groups []domain.Group, isFrozen bool) domain.Mailbox {
	m := domain.Mailbox{Recipient: recipient}
	if len(r.damages) > 0 {
		m.Damage = r.damages[0].reason
	}
	for _, group := range groups {
		i := slices.IndexFunc(r.groups, func(g surveyedGroup) bool { return g.group == group })
		if i < 0 || !r.groups[i].hasGate {
			m.Frozen = m.Frozen || isFrozen
		}
	}
	for i := range r.cabinets {
		if c := &r.cabinets[i]; c.isInHead {
			r.ensureGroup(c.group)
		}
	}
	for i := range r.groups {
		g := &r.groups[i]
		line := domain.MailboxGroup{
			Group: g.group, Open: g.open, Opened: g.opened.toTime(), LastPeek: g.lastPeek.toTime(), LastDequeue: g.lastDequeue.toTime(),
		}
		if g.failing != (domain.BundleID{}) && g.failing == g.open {
			line.Failures, line.FailingSince = g.failures, g.failingSince.toTime()
		}
		for j := range r.cabinets {
			if c := &r.cabinets[j]; c.isInHead && c.group == g.group {
				line.Waiting = line.Waiting.Plus(c.received.backlogAfter(r.positionOf(c)))
			}
		}
		m.Frozen = m.Frozen || g.frozen
		if line != (domain.MailboxGroup{Group: g.group}) {
			m.Groups = append(m.Groups, line)
		}
	}
	return m
}

// surveyRecordVersion is the first byte of an encoded record.
const surveyRecordVersion = 1

// The flags in encoded records.
const (
	hasHeadFlag = 1 << iota
	hasGateFlag
	frozenFlag
	openFlag
	failingFlag
	inHeadFlag
	inGateFlag
	baseFlag
)

// encode returns the encoded record.
func (r *surveyRecord) encode() []byte {
	b := []byte{surveyRecordVersion, 0}
	if r.hasHead {
		b[1] = hasHeadFlag
	}
	number := func(n int64) { b = binary.AppendVarint(b, n) }
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	number(int64(len(r.groups)))
	for i := range r.groups {
		g := &r.groups[i]
		flags := byte(0)
		for _, f := range []struct {
			is   bool
			flag byte
		}{{g.hasGate, hasGateFlag}, {g.frozen, frozenFlag}, {g.open != domain.BundleID{}, openFlag}, {g.failing != domain.BundleID{}, failingFlag}} {
			if f.is {
				flags |= f.flag
			}
		}
		b = append(b, flags)
		text(g.group.String())
		number(int64(g.removed))
		number(int64(g.lastPeek))
		number(int64(g.lastDequeue))
		if flags&openFlag != 0 {
			b = append(b, g.open[:]...)
			number(int64(g.opened - g.lastPeek))
		}
		if flags&failingFlag != 0 {
			b = append(b, g.failing[:]...)
			number(int64(g.failures))
			number(int64(g.failingSince))
		}
	}
	number(int64(len(r.cabinets)))
	for i := range r.cabinets {
		c := &r.cabinets[i]
		flags := byte(0)
		if c.isInHead {
			flags |= inHeadFlag
		}
		if c.isInGate {
			flags |= inGateFlag
		}
		if c.received.BaseOrdinal != 0 || c.received.BaseTotal != 0 {
			flags |= baseFlag
		}
		b = append(b, flags)
		b = binary.LittleEndian.AppendUint64(b, c.hash)
		number(int64(slices.IndexFunc(r.groups, func(g surveyedGroup) bool { return g.group == c.group })))
		if c.isInHead {
			number(int64(c.received.Sequence))
			number(c.received.Total)
			number(int64(len(c.received.Marks)))
			last := mark{c.received.Total, 0}
			for _, m := range c.received.Marks {
				number(m[0] - last[0])
				number(m[1] - last[1])
				last = m
			}
		}
		if c.isInGate {
			number(int64(c.position.Ordinal))
			number(int64(c.position.Sequence))
			number(c.position.Total)
			number(int64(c.position.NextSaved))
		}
		if flags&baseFlag != 0 {
			number(int64(c.received.BaseOrdinal))
			number(c.received.BaseTotal)
		}
	}
	number(int64(len(r.damages)))
	for _, d := range r.damages {
		text(d.document)
		text(d.reason)
	}
	return b
}

var errSurveyRecord = errors.New("the record of a mailbox in the survey cannot be decoded")

// A surveyDecoder decodes a record. After the first failure, it returns zero values.
type surveyDecoder struct {
	b      []byte
	failed bool
}

func (d *surveyDecoder) takeBytes(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.failed, d.b = true, nil
		return nil
	}
	field := d.b[:n]
	d.b = d.b[n:]
	return field
}

func (d *surveyDecoder) readNumber() int64 {
	n, size := binary.Varint(d.b)
	if size <= 0 {
		d.failed, d.b = true, nil
		return 0
	}
	d.b = d.b[size:]
	return n
}

// readCount decodes the number of items that follow. It fails if the number exceeds the remaining bytes,
// because each item takes at least one byte.
func (d *surveyDecoder) readCount() int {
	n := d.readNumber()
	if n < 0 || n > int64(len(d.b)) {
		d.failed, d.b = true, nil
		return 0
	}
	return int(n)
}

func (d *surveyDecoder) readInt() int {
	n := d.readNumber()
	if n < 0 || n > math.MaxInt32 {
		d.failed = true
		return 0
	}
	return int(n)
}

func (d *surveyDecoder) readFlags() byte {
	if b := d.takeBytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *surveyDecoder) readText() string {
	n, size := binary.Uvarint(d.b)
	if size <= 0 || n > uint64(len(d.b)) {
		d.failed, d.b = true, nil
		return ""
	}
	d.b = d.b[size:]
	return string(d.takeBytes(int(n))) //nolint:gosec // not longer than b
}

func (d *surveyDecoder) readBundleID() (id domain.BundleID) {
	copy(id[:], d.takeBytes(len(id)))
	return id
}

// decodeSurveyRecord decodes a record that encode has returned. A nil record is decoded as an empty one.
func decodeSurveyRecord(record []byte) (*surveyRecord, error) {
	r := &surveyRecord{}
	if record == nil {
		return r, nil
	}
	d := surveyDecoder{b: record}
	if d.readFlags() != surveyRecordVersion {
		return &surveyRecord{}, errSurveyRecord
	}
	r.hasHead = d.readFlags()&hasHeadFlag != 0
	r.groups = make([]surveyedGroup, 0, d.readCount())
	for range cap(r.groups) {
		r.groups = append(r.groups, d.readGroup())
	}
	r.cabinets = make([]surveyedCabinet, 0, d.readCount())
	for range cap(r.cabinets) {
		r.cabinets = append(r.cabinets, d.readCabinet(r.groups))
	}
	r.damages = make([]surveyedDamage, 0, d.readCount())
	for range cap(r.damages) {
		r.damages = append(r.damages, surveyedDamage{d.readText(), d.readText()})
	}
	if d.failed || len(d.b) > 0 {
		return &surveyRecord{}, errSurveyRecord
	}
	return r, nil
}

func (d *surveyDecoder) readGroup() surveyedGroup {
	flags := d.readFlags()
	g := surveyedGroup{hasGate: flags&hasGateFlag != 0, frozen: flags&frozenFlag != 0}
	var err error
	if g.group, err = domain.ParseGroup(d.readText()); err != nil {
		d.failed = true
	}
	g.removed, g.lastPeek, g.lastDequeue = domain.Sequence(d.readNumber()), millis(d.readNumber()), millis(d.readNumber())
	if flags&openFlag != 0 {
		g.open, g.opened = d.readBundleID(), millis(d.readNumber())+g.lastPeek
	}
	if flags&failingFlag != 0 {
		g.failing, g.failures, g.failingSince = d.readBundleID(), d.readInt(), millis(d.readNumber())
	}
	return g
}

func (d *surveyDecoder) readCabinet(groups []surveyedGroup) surveyedCabinet {
	flags := d.readFlags()
	c := surveyedCabinet{isInHead: flags&inHeadFlag != 0, isInGate: flags&inGateFlag != 0}
	if b := d.takeBytes(8); b != nil {
		c.hash = binary.LittleEndian.Uint64(b)
	}
	i := d.readInt()
	if i >= len(groups) {
		d.failed = true
		return c
	}
	c.group = groups[i].group
	if c.isInHead {
		c.received.Sequence, c.received.Total = domain.Sequence(d.readNumber()), d.readNumber()
		last := mark{c.received.Total, 0}
		for range d.readCount() {
			last = mark{last[0] + d.readNumber(), last[1] + d.readNumber()}
			c.received.Marks = append(c.received.Marks, last)
		}
	}
	if c.isInGate {
		c.position.Ordinal, c.position.Sequence = d.readInt(), domain.Sequence(d.readNumber())
		c.position.Total, c.position.NextSaved = d.readNumber(), millis(d.readNumber())
	}
	if flags&baseFlag != 0 {
		c.received.BaseOrdinal, c.received.BaseTotal = d.readInt(), d.readNumber()
	}
	return c
}
