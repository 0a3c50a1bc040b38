package replay

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/filter"
)

// A Count is the result of a dry run.
type Count struct {
	Matched  int64 // number of deliveries that a replay would repeat
	Seen     int64 // number of messages or dead letters that were read
	Complete bool  // false: the count stopped at MaxSeen
}

// MaxSeen is the maximum number of messages or dead letters that a dry run reads.
const MaxSeen = 10_000

// readAhead is the maximum number of entries or dead letters in one read.
const readAhead = 100

// clockMargin is the maximum difference between the clocks of nodes, as in package delivery.
const clockMargin = time.Minute

// DryRun counts the deliveries that Start would repeat. It fails like Start, but it does not fail
// if a replay is running.
func (s *Service) DryRun(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID, r domain.ReplayRange) (*Count, error) {
	n, expression, err := s.checkRange(ctx, owner, id, &r)
	if err != nil {
		return nil, err
	}
	c := &counter{service: s, n: n, r: &r, filter: expression, outstanding: make(map[domain.EntryID]bool)}
	if r.OnlyDead {
		err = c.countDead(ctx)
	} else {
		err = c.countAll(ctx)
	}
	c.Complete = c.Seen < MaxSeen
	return &c.Count, err
}

type counter struct {
	Count
	service     *Service
	n           *subject
	r           *domain.ReplayRange
	filter      *filter.Expression
	outstanding map[domain.EntryID]bool
}

// countAll counts the entries in the range whose deliveries have ended, by reading the stream.
func (c *counter) countAll(ctx context.Context) error {
	for _, p := range c.n.standing.Open {
		c.outstanding[p.EntryID] = true
	}
	retries, err := c.service.ports.Cursors.Retries(ctx, c.n.definition.ID.Cursor(), domain.EntryID{Number: -1}, domain.MaxRetries)
	if err != nil {
		return err
	}
	for i := range retries {
		c.outstanding[retries[i].EntryID] = true
	}
	for priority := domain.Priorities - 1; priority >= 0 && c.Seen < MaxSeen; priority-- {
		end := c.n.standing.Position(priority).Number
		if end == 0 {
			continue
		}
		at, err := c.service.ports.Streams.Seek(ctx, c.n.stream, priority, func(_ int64, published time.Time) bool {
			return published.Before(c.r.From.Add(-clockMargin))
		})
		for isMore := err == nil; isMore; {
			at, isMore, err = c.countEntries(ctx, at, end)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// countEntries counts up to readAhead entries from a position onward, and returns the position after
// the last of these entries. isMore is false at the end of the range.
func (c *counter) countEntries(ctx context.Context, at domain.Position, end int64) (next domain.Position, isMore bool, err error) {
	found, err := c.service.ports.Streams.Read(ctx, c.n.stream, at, readAhead)
	for i := range found.Entries {
		e := &found.Entries[i]
		if e.Position.Number >= end || !e.Published.Before(c.r.To.Add(clockMargin)) {
			return at, false, nil
		}
		if c.Seen >= MaxSeen {
			return at, false, nil
		}
		c.Seen++
		if c.r.Includes(e.Published) && !c.outstanding[e.Position.EntryID] && matches(c.n.filter, e) && matches(c.filter, e) {
			c.Matched++
		}
		at = e.Position.Next()
	}
	return at, err == nil && len(found.Entries) > 0, err
}

// countDead counts the dead letters in the range.
func (c *counter) countDead(ctx context.Context) error {
	after := domain.EntryID{Number: -1}
	for c.Seen < MaxSeen {
		dead, err := c.service.ports.Cursors.DeadLetters(ctx, c.n.definition.ID.Cursor(), after, readAhead)
		if err != nil || len(dead) == 0 {
			return err
		}
		for i := range dead {
			if c.Seen >= MaxSeen {
				return nil
			}
			c.Seen++
			passes := c.r.Includes(dead[i].Published)
			if passes && c.filter != nil {
				if passes, err = c.matchesAt(ctx, dead[i].Position); err != nil {
					return err
				}
			}
			if passes {
				c.Matched++
			}
		}
		after = dead[len(dead)-1].EntryID
	}
	return nil
}

// matchesAt reports whether the filter of the replay matches the entry at a position. The result is
// false for an expired entry.
func (c *counter) matchesAt(ctx context.Context, at domain.Position) (bool, error) {
	found, err := c.service.ports.Streams.Read(ctx, c.n.stream, at, 1)
	if err != nil || len(found.Entries) == 0 || found.Entries[0].Position.EntryID != at.EntryID {
		return false, err
	}
	return matches(c.filter, &found.Entries[0]), nil
}
