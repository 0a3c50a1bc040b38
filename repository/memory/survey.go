package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var _ repository.Survey = (*Store)(nil)

// Surveyed implements [repository.Survey]. The lines contain the current state of the mailboxes.
func (s *Store) Surveyed(ctx context.Context) (repository.Surveyed, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("survey: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := surveyed{at: s.opts.Clock(), lines: make(map[domain.ActorID]domain.Mailbox)}
	for id, r := range s.recipients {
		if r.last > 0 {
			found.lines[id] = r.mailboxLine(id, s.opts.Groups.All())
		}
	}
	return &found, nil
}

// mailboxLine returns the line of a recipient.
func (r *storedRecipient) mailboxLine(id domain.ActorID, groups []domain.Group) domain.Mailbox {
	m := domain.Mailbox{Recipient: id, Frozen: r.frozen}
	for _, group := range groups {
		line := domain.MailboxGroup{Group: group, Waiting: r.groupsBacklog([]domain.Group{group})}
		gate := r.ensureGate(group)
		if open := gate.open; open != nil {
			line.Open, line.Opened, line.LastPeek = open.ID, open.Opened, open.Opened
			if open.LacksContent() && open.ContentFailure.Failures > 0 {
				line.Failures, line.FailingSince = open.ContentFailure.Failures, gate.failingSince
			}
		}
		line.LastPeek = latestTime(line.LastPeek, gate.lastPeek)
		line.LastDequeue = gate.lastDequeue
		if line != (domain.MailboxGroup{Group: group}) {
			m.Groups = append(m.Groups, line)
		}
	}
	return m
}

func latestTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

type surveyed struct {
	at    time.Time
	lines map[domain.ActorID]domain.Mailbox
}

// At implements [repository.Surveyed].
func (s *surveyed) At() time.Time { return s.at }

// Summaries implements [repository.Surveyed].
func (s *surveyed) Summaries() iter.Seq[domain.MailboxSummary] {
	return func(yield func(domain.MailboxSummary) bool) {
		for _, m := range s.lines {
			if !yield(m.Summary()) {
				return
			}
		}
	}
}

// Mailbox implements [repository.Surveyed].
func (s *surveyed) Mailbox(id domain.ActorID) (domain.Mailbox, bool) {
	m, ok := s.lines[id]
	m.Groups = slices.Clone(m.Groups)
	return m, ok
}
