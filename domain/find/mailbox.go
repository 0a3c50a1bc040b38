package find

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// maxRecords limits the operators' records that are read for a mailbox.
const maxRecords = 1_000

// A mailbox contains the operators' records and the notices of an actor.
type mailbox struct {
	actor   domain.ActorID
	records []repository.Record // records of operators' actions, oldest first
	notices []domain.Notice     // notices that are not delivered yet
}

// readMailbox reads the records and notices of an actor. It adds parts that cannot be read to a.
func (s *Service) readMailbox(ctx context.Context, a *Answer, actor domain.ActorID) (*mailbox, error) {
	m := &mailbox{actor: actor}
	var err, failed error
	m.records, err = s.ports.Admin.Records(ctx, actor, maxRecords)
	slices.Reverse(m.records)
	m.notices, failed = s.ports.Outbox.Notices(ctx, actor)
	for _, err := range []error{err, failed} {
		switch {
		case err == nil:
		case isDamage(err):
			a.addUnread(Unread{Recipient: actor.String(), Reason: err.Error()})
		default:
			return nil, errors.Join(err, failed)
		}
	}
	return m, nil
}

// isDamage reports whether err means that stored data cannot be read.
func isDamage(err error) bool {
	kind := domain.KindOf(err)
	return kind == domain.Damaged || kind == domain.NewerFormat
}

// recordsOf returns the records about a bundle, oldest first.
func (m *mailbox) recordsOf(id domain.BundleID) []repository.Record {
	return slices.DeleteFunc(slices.Clone(m.records), func(r repository.Record) bool { return r.Bundle != id })
}

// lastFreeze returns the record of the last freeze, or nil if none is stored.
func (m *mailbox) lastFreeze() *repository.Record {
	for i := len(m.records) - 1; i >= 0; i-- {
		if m.records[i].What == "freeze" {
			return &m.records[i]
		}
	}
	return nil
}

// frozenWait returns the wait until an operator thaws the mailbox.
func (m *mailbox) frozenWait() Wait {
	w := Wait{
		Cause: CauseFrozen,
		Text:  "An operator has frozen the mailbox: Peek and Dequeue fail until it is thawed.",
		Next:  fmt.Sprintf("Thaw it once the reason is gone: messagehub queue thaw %s --why ...", m.actor),
	}
	if r := m.lastFreeze(); r != nil {
		w.Since, w.Text = r.When, fmt.Sprintf("%s has frozen the mailbox: Peek and Dequeue fail until it is thawed. The reason: %s", r.Who, r.Why)
	}
	return w
}

// findNotice returns the undelivered notice about a bundle to an audience, or nil.
func (m *mailbox) findNotice(id domain.BundleID, to domain.Audience) *domain.Notice {
	i := slices.IndexFunc(m.notices, func(n domain.Notice) bool { return n.Bundle == id && n.Audience == to })
	if i < 0 {
		return nil
	}
	return &m.notices[i]
}

// countOf returns a number and a noun, such as "1 event" or "2 events".
func countOf[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun + "s"
}
