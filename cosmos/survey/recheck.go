package survey

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/maphash"
	"slices"
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// Intervals and limits of rechecks.
const (
	recheckEvery   = 6 * time.Hour   // interval between the starts of two rechecks of all lines
	damagedEvery   = 5 * time.Minute // interval between two rechecks of a damaged line
	recheckShare   = 0.1             // share of Options.Units that rechecks may spend
	recheckUnits   = 5               // request units per second that rechecks may spend if Options.Units is 0
	recheckReads   = 20              // limit for the documents that a step reads one by one
	recheckLines   = 1000            // limit for the lines that a step compares
	recheckDamaged = 100             // limit for the damaged lines that are rechecked per damagedEvery
	recheckPause   = time.Hour       // limit for the pause after a step
)

// recheckProgress is the progress of a recheck that is in memory only. Another node that continues the
// recheck at its stored position reads some documents again.
type recheckProgress struct {
	seen      map[uint64]struct{} // hashes of the documents that were read
	order     []string            // recipients of the lines to compare, in order
	corrected int
}

// damagedLines schedules rechecks of damaged lines, because the feeds may not contain a repair.
type damagedLines struct {
	due    []domain.ActorID // recipients to recheck now
	last   string           // recipient whose damaged line was rechecked last
	listed time.Time
}

// documentHashes is the seed of the hashes in recheckProgress.seen.
var documentHashes = maphash.MakeSeed()

// endRecheck records the end of a recheck. It is called after a walk, when all lines are current.
func (s *Survey) endRecheck() {
	s.own.recheck = &recheckPosition{Began: s.opts.Clock().UTC(), Ended: true}
	s.own.rechecked = recheckProgress{}
}

// recheck compares lines with the stored documents, within its share of the request units. It corrects
// lines that the feeds do not correct: after the account lost writes, after documents were removed, and
// after the file of an embedded engine was repaired.
func (s *Survey) recheck(ctx context.Context) error {
	o := &s.own
	s.forgetFollowed()
	if s.opts.Clock().Sub(o.followedSince) < feedMargin {
		return nil
	}
	rate := s.opts.Units * recheckShare
	if rate == 0 {
		rate = recheckUnits
	}
	for began := s.opts.Clock(); ; {
		now := s.opts.Clock()
		isPaused := now.Before(o.recheckAfter) && o.recheckAfter.Sub(now) <= recheckPause // a longer wait means that the clock was set back; it is ignored
		if isPaused || now.Sub(began) >= s.opts.Every {
			return nil
		}
		before := s.spentUnits()
		isDone, err := s.recheckStep(ctx)
		// Request units that a round did not spend are available to the next round.
		if earliest := now.Add(-s.opts.Every); o.recheckAfter.Before(earliest) {
			o.recheckAfter = earliest
		}
		spent := time.Duration((s.spentUnits() - before) / rate * float64(time.Second))
		o.recheckAfter = o.recheckAfter.Add(min(spent, recheckPause))
		if err != nil || isDone {
			return err
		}
		if err := s.flushIfDue(ctx); err != nil {
			return err
		}
	}
}

// recheckStep runs one step of a recheck. isDone reports that no step is due now.
func (s *Survey) recheckStep(ctx context.Context) (isDone bool, err error) {
	o, now := &s.own, s.opts.Clock().UTC()
	if recipient, ok := s.nextIncomplete(now); ok {
		return false, s.recheckMailbox(ctx, recipient)
	}
	if recipient, ok := o.damaged.nextDue(s.table, now); ok {
		return false, s.recheckMailbox(ctx, recipient)
	}
	if o.recheck == nil { // the state was stored by a version without rechecks
		s.endRecheck()
	}
	at := o.recheck
	switch age := now.Sub(at.Began); {
	case at.Ended && age >= 0 && age < recheckEvery:
		return true, nil
	case at.Ended:
		o.recheck = &recheckPosition{Began: now, Walk: &walkPosition{}}
		o.rechecked = recheckProgress{}
		return false, nil
	case at.Walk != nil:
		return false, s.recheckPage(ctx)
	}
	return false, s.recheckUnseen(ctx)
}

// maxIncomplete is the limit for the lines that are rechecked because a stale document was read. The
// recheck of all lines corrects the lines above the limit.
const maxIncomplete = 1000

// recheckLater schedules a recheck of a mailbox's line after feedMargin, when reads return at least the
// versions that the feeds have returned.
func (s *Survey) recheckLater(recipient domain.ActorID) {
	o := &s.own
	if o.incomplete == nil {
		o.incomplete = make(map[domain.ActorID]time.Time)
	}
	if _, isKnown := o.incomplete[recipient]; isKnown || len(o.incomplete) < maxIncomplete {
		o.incomplete[recipient] = s.opts.Clock().Add(feedMargin)
	}
}

// nextIncomplete returns a mailbox whose line must be rechecked now.
func (s *Survey) nextIncomplete(now time.Time) (recipient domain.ActorID, ok bool) {
	for id, due := range s.own.incomplete {
		if isFar := due.Sub(now) > feedMargin; due.After(now) && !isFar { // a due time that is too far ahead means that the clock was set back
			continue
		}
		if !ok || id.String() < recipient.String() { // choose the lowest recipient, because the order of the map is random
			recipient, ok = id, true
		}
	}
	delete(s.own.incomplete, recipient)
	return recipient, ok
}

// nextDue returns a damaged mailbox whose line must be rechecked now. It returns up to recheckDamaged
// mailboxes per damagedEvery, each once, and begins the next interval after the last returned mailbox.
func (d *damagedLines) nextDue(t *mailboxTable, now time.Time) (recipient domain.ActorID, ok bool) {
	if now.Sub(d.listed) >= damagedEvery || now.Before(d.listed) {
		all := t.inState(domain.MailboxDamaged)
		first := slices.IndexFunc(all, func(a domain.ActorID) bool { return a.String() > d.last })
		if first > 0 {
			all = slices.Concat(all[first:], all[:first])
		}
		d.due, d.listed = all[:min(len(all), recheckDamaged)], now
	}
	if len(d.due) == 0 {
		return recipient, false
	}
	recipient, d.due = d.due[0], d.due[1:]
	d.last = recipient.String()
	return recipient, true
}

// recheckPage reads a page of documents by the queries of a walk, and compares the documents with their
// lines.
func (s *Survey) recheckPage(ctx context.Context) error {
	at := s.own.recheck
	queries := s.reader.Walk()
	next := &recheckPosition{Began: at.Began, Unknown: at.Unknown}
	if at.Walk.Query >= len(queries) {
		s.own.recheck = next
		return nil
	}
	container := queries[at.Walk.Query].Container
	q := s.beginCall().QueryAllPartitions(s.containerClient(container), container, queries[at.Walk.Query].Text)
	if at.Walk.Position != "" {
		q.ResumeAt(at.Walk.Position)
	}
	suspects := newSuspects(s)
	docs, err := s.nextOfQuery(ctx, suspects, q, container)
	if err != nil {
		if at.Walk.Position != "" && client.StatusOf(err) == 400 { // another version stored the position, or the store was restored since
			next.Walk = &walkPosition{Query: at.Walk.Query}
			s.own.recheck = next
		}
		return err
	}
	for _, doc := range docs {
		s.compareLine(suspects, container, doc)
	}
	if err := s.recheckAll(ctx, suspects); err != nil {
		return err
	}
	next.Walk = &walkPosition{Query: at.Walk.Query, Position: q.NextPage()}
	if q.IsDone() {
		next.Walk = &walkPosition{Query: at.Walk.Query + 1}
	}
	s.own.recheck = next
	return nil
}

// recheckUnseen compares the next lines with the documents that the queries have not returned to this
// node: open bundles, and documents that may no longer exist.
func (s *Survey) recheckUnseen(ctx context.Context) error {
	o, p := &s.own, &s.own.rechecked
	if p.order == nil {
		p.order = s.table.allRecipients()
	}
	next := *o.recheck
	suspects := newSuspects(s)
	first, isFound := slices.BinarySearch(p.order, next.After)
	if isFound {
		first++
	}
	reads := 0
	for n := 0; first+n < len(p.order) && n < recheckLines && reads < recheckReads; n++ {
		next.After = p.order[first+n]
		recipient, err := domain.ParseActorID(next.After)
		if err != nil {
			continue // this version of the program does not accept the recipient's id
		}
		for _, ref := range s.reader.References(recipient, s.table.mailboxRecord(recipient)) {
			if _, isSeen := p.seen[hashOf(ref.Container, ref.Partition, ref.ID)]; isSeen {
				continue
			}
			reads++
			doc, err := s.readReference(ctx, ref)
			if err != nil && !s.isDamaged(err) {
				return err
			}
			if doc == nil {
				suspects.addSuspect(recipient, ref)
				continue
			}
			s.compareLine(suspects, ref.Container, doc)
		}
	}
	if err := s.recheckAll(ctx, suspects); err != nil {
		return err
	}
	if next.After == "" || next.After == p.order[len(p.order)-1] {
		s.opts.Logger.InfoContext(ctx, "the survey has compared all lines with the stored documents", "lines", len(p.order), "corrected", p.corrected)
		next = recheckPosition{Began: next.Began, Ended: true, Unknown: next.Unknown}
		*p = recheckProgress{}
	}
	o.recheck = &next
	return nil
}

// suspects is a set of mailboxes whose line differs from a document.
type suspects struct {
	survey *Survey
	found  []suspect
}

// A suspect is a mailbox, and the documents from which its line differs.
type suspect struct {
	recipient domain.ActorID
	documents []Reference
}

func newSuspects(s *Survey) *suspects { return &suspects{survey: s} }

// addSuspect adds a mailbox and, if document is not zero, a document of the mailbox.
func (u *suspects) addSuspect(recipient domain.ActorID, document Reference) {
	i := slices.IndexFunc(u.found, func(f suspect) bool { return f.recipient == recipient })
	if i < 0 {
		i, u.found = len(u.found), append(u.found, suspect{recipient: recipient})
	}
	if document != (Reference{}) {
		u.found[i].documents = append(u.found[i].documents, document)
	}
}

// mailboxRecord implements recordSet.
func (u *suspects) mailboxRecord(recipient domain.ActorID) []byte {
	return u.survey.mailboxRecord(recipient)
}

// canApply implements recordSet.
func (*suspects) canApply(string, domain.ActorID, []byte) bool { return true }

// setRecord implements recordSet. It adds the mailbox as a suspect, and changes no record.
func (u *suspects) setRecord(recipient domain.ActorID, record []byte) {
	if !bytes.Equal(record, u.mailboxRecord(recipient)) {
		u.addSuspect(recipient, Reference{})
	}
}

// compareLine adds the mailbox of a document to suspects if the document would change the mailbox's line.
// It ignores documents that the feeds have yet to return, and versions that may be older than the version
// that a feed returned.
func (s *Survey) compareLine(suspects *suspects, container string, doc []byte) {
	recipient, ok := s.reader.Recipient(container, doc)
	if !ok {
		return
	}
	id, version := versionOf(container, recipient, doc)
	if s.own.rechecked.seen == nil {
		s.own.rechecked.seen = make(map[uint64]struct{})
	}
	s.own.rechecked.seen[hashOf(container, id.recipient, id.document)] = struct{}{}
	if s.isOutdated(id, version) || version.modified > s.own.at.Unix() {
		return
	}
	old := s.table.mailboxRecord(recipient)
	if record, _ := s.reader.Apply(old, container, doc, false); !bytes.Equal(record, old) {
		suspects.addSuspect(recipient, Reference{container, id.recipient, id.document})
	}
}

// recheckAll rechecks the mailboxes in suspects.
func (s *Survey) recheckAll(ctx context.Context, suspects *suspects) error {
	for _, found := range suspects.found {
		if err := s.recheckMailbox(ctx, found.recipient, found.documents...); err != nil {
			return err
		}
	}
	return nil
}

// A mailboxCopy is a recordSet that contains only the new record of one mailbox.
type mailboxCopy struct {
	survey     *Survey
	recipient  domain.ActorID
	renewed    []byte
	isOutdated bool // whether a document may be older than the version that a feed returned
}

func (m *mailboxCopy) mailboxRecord(domain.ActorID) []byte { return m.renewed }

func (m *mailboxCopy) setRecord(_ domain.ActorID, record []byte) { m.renewed = record }

// canApply implements recordSet. It rejects a document of another mailbox: a query for a bundle's id
// also returns bundles with this id in other mailboxes.
func (m *mailboxCopy) canApply(container string, recipient domain.ActorID, doc []byte) bool {
	if recipient != m.recipient {
		return false
	}
	m.isOutdated = m.isOutdated || m.survey.isOutdated(versionOf(container, recipient, doc))
	return true
}

// recheckMailbox reads all documents of a mailbox, and other documents that the mailbox may have, and
// replaces its line. If a document may be older than the version that a feed returned, recheckMailbox does
// not change the line, and schedules another recheck.
func (s *Survey) recheckMailbox(ctx context.Context, recipient domain.ActorID, others ...Reference) error {
	old := s.table.mailboxRecord(recipient)
	refs := s.reader.References(recipient, nil)
	if old != nil {
		others = append(s.reader.References(recipient, old), others...)
	}
	for _, ref := range others {
		if !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	m := &mailboxCopy{survey: s, recipient: recipient}
	for _, ref := range refs {
		doc, err := s.readReference(ctx, ref)
		switch {
		case err != nil && s.isDamaged(err):
			m.renewed = s.reader.Damaged(m.renewed, err.Error())
			continue
		case err != nil:
			return err
		case doc == nil:
			m.isOutdated = m.isOutdated || s.isOutdated(followedID{ref.Container, recipient.String(), ref.ID}, followedVersion{})
			continue
		}
		if err := s.applyDocuments(ctx, m, ref.Container, [][]byte{doc}, true); err != nil {
			return err
		}
	}
	if m.isOutdated {
		s.recheckLater(recipient)
		return nil
	}
	if renewed := s.reader.Renew(old, m.renewed); !bytes.Equal(old, renewed) {
		s.own.rechecked.corrected++
		s.setRecord(recipient, renewed)
	}
	return nil
}

// readReference reads a document. It returns nil if the document does not exist.
func (s *Survey) readReference(ctx context.Context, ref Reference) (json.RawMessage, error) {
	var doc json.RawMessage
	_, err := s.beginCall().Read(ctx, s.containerClient(ref.Container), ref.Partition, ref.ID, &doc)
	if client.IsNotFound(err) {
		return nil, nil //nolint:nilnil // the document does not exist
	}
	return doc, client.Classify("read "+ref.ID+" of "+ref.Partition, err)
}

// isDamaged reports whether err is about a document that is damaged in the file of an embedded engine.
func (s *Survey) isDamaged(err error) bool {
	_, is := s.damagedMailbox(err)
	return is
}

func hashOf(container, partition, id string) uint64 {
	var h maphash.Hash
	h.SetSeed(documentHashes)
	for _, text := range []string{container, partition, id} {
		_, _ = h.WriteString(text) // never fails
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}
