package hub

import (
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// StuckNotices counts notices that a NoticeRelay could not deliver, including those that wait behind them.
type StuckNotices struct {
	Notices int
	Oldest  time.Time // when the oldest of these notices was stored, or zero
}

// maxStuck is how many recipients with stuck notices a NoticeRelay remembers.
const maxStuck = 10_000

// Stuck returns the stuck notices that this NoticeRelay knows, of up to 10,000 recipients. It reads nothing, so a
// notice that another node has delivered counts until this node next reads the outbox.
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

// StuckOf returns the stuck notices of a recipient that this NoticeRelay knows. It reads nothing.
func (r *NoticeRelay) StuckOf(recipient domain.ActorID) StuckNotices {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stuck[recipient]
}

// noteStuck records which notices of a recipient could not be delivered.
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

// forgetStuck forgets all recipients that are not in except, because they no longer have notices.
func (r *NoticeRelay) forgetStuck(except []domain.ActorID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for recipient := range r.stuck {
		if !slices.Contains(except, recipient) {
			delete(r.stuck, recipient)
		}
	}
}
