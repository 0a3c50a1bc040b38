package hub

import (
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// StuckNotices counts the notices that a NoticeRelay could not deliver, and the notices that wait
// behind them.
type StuckNotices struct {
	Notices int
	Oldest  time.Time // when the oldest notice was stored; zero without notices
}

// maxStuck is the maximum number of recipients whose stuck notices a NoticeRelay counts.
const maxStuck = 10_000

// Stuck returns the notices that this NoticeRelay knows to be stuck, of up to 10,000 recipients. It
// reads nothing: a notice that another node delivers is counted until this node reads the
// outbox again.
func (r *NoticeRelay) Stuck() StuckNotices {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum StuckNotices
	for _, s := range r.stuck {
		sum.Notices += s.Notices
		if sum.Oldest.IsZero() || s.Oldest.Before(sum.Oldest) {
			sum.Oldest = s.Oldest
		}
	}
	return sum
}

// StuckOf returns the notices of a recipient that this NoticeRelay knows to be stuck. It reads nothing.
func (r *NoticeRelay) StuckOf(recipient domain.ActorID) StuckNotices {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stuck[recipient]
}

// noteStuck records the notices of a recipient that could not be delivered.
func (r *NoticeRelay) noteStuck(recipient domain.ActorID, notices []domain.Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(notices) == 0 {
		delete(r.stuck, recipient)
		return
	}
	if _, isKnown := r.stuck[recipient]; !isKnown && len(r.stuck) >= maxStuck {
		return
	}
	s := StuckNotices{Notices: len(notices), Oldest: notices[0].Since}
	for i := range notices {
		if notices[i].Since.Before(s.Oldest) {
			s.Oldest = notices[i].Since
		}
	}
	r.stuck[recipient] = s
}

// forgetStuck forgets all recipients except the given ones, because no other recipients have
// notices.
func (r *NoticeRelay) forgetStuck(except []domain.ActorID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for recipient := range r.stuck {
		if !slices.Contains(except, recipient) {
			delete(r.stuck, recipient)
		}
	}
}
