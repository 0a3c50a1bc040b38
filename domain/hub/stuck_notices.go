package hub

import (
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// StuckNotices counts the notices of a recipient that a Courier could not deliver, with those
// that wait behind them.
type StuckNotices struct {
	Notices int
	Oldest  time.Time // when the oldest notice was stored; zero without notices
}

// maxStuck is the maximum number of recipients whose stuck notices a Courier counts.
const maxStuck = 10_000

// Stuck returns the notices that this Courier knows to be stuck, of up to 10,000 recipients. It
// reads nothing: a notice that another node delivers is counted until this node reads the
// outbox again.
func (c *Courier) Stuck() StuckNotices {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sum StuckNotices
	for _, s := range c.stuck {
		sum.Notices += s.Notices
		if sum.Oldest.IsZero() || s.Oldest.Before(sum.Oldest) {
			sum.Oldest = s.Oldest
		}
	}
	return sum
}

// StuckOf returns the notices of a recipient that this Courier knows to be stuck. It reads nothing.
func (c *Courier) StuckOf(recipient domain.ActorID) StuckNotices {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stuck[recipient]
}

// noteStuck keeps the notices of a recipient that could not be delivered.
func (c *Courier) noteStuck(recipient domain.ActorID, notices []domain.Notice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(notices) == 0 {
		delete(c.stuck, recipient)
		return
	}
	if _, isKnown := c.stuck[recipient]; !isKnown && len(c.stuck) >= maxStuck {
		return
	}
	s := StuckNotices{Notices: len(notices), Oldest: notices[0].Since}
	for i := range notices {
		if notices[i].Since.Before(s.Oldest) {
			s.Oldest = notices[i].Since
		}
	}
	c.stuck[recipient] = s
}

// forgetStuck forgets all recipients except those given, who are all that have notices.
func (c *Courier) forgetStuck(except []domain.ActorID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for recipient := range c.stuck {
		if !slices.Contains(except, recipient) {
			delete(c.stuck, recipient)
		}
	}
}
