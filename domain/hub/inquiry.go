package hub

import (
	"context"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// adoptions is how many contents are fetched and kept at the same time, each of
// which may take some MB of memory: after an outage, many replies come at once.
const adoptions = 16

// A contentRequest is one request for the content of a bundle, and what has come of it.
type contentRequest struct {
	hub    *Hub
	key    inquiryKey
	bundle domain.Bundle
	folder string              // for what the domain makes
	list   []byte              // the ids of its events; nil: to be read from run
	run    repository.Run      // of its events
	trace  domain.TraceContext // the Peek that began it
	until  time.Time           // the domain has so long

	waiting int // Peeks; guarded by inquiries.mu

	over   chan struct{} // closed when these are set
	result domain.Bundle
	err    error
}

type inquiryKey struct {
	actor domain.ActorID
	id    domain.BundleID
}

// contentRequests are those of this node that somebody waits for.
type contentRequests struct {
	life     context.Context //nolint:containedctx // ends with the hub
	end      context.CancelFunc
	adopting chan struct{} // one for each adoption under way

	mu      sync.Mutex
	of      map[inquiryKey]*contentRequest
	closed  bool
	running sync.WaitGroup // grows only while mu is held and closed is false
}

func newInquiries() *contentRequests {
	life, end := context.WithCancel(context.Background())
	return &contentRequests{life: life, end: end, adopting: make(chan struct{}, adoptions), of: make(map[inquiryKey]*contentRequest)}
}

// close ends all inquiries, and returns when they are over.
func (q *contentRequests) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.end()
	q.running.Wait()
}

// joinRequest returns the inquiry for a bundle that is under way, or begins i. Whoever has
// joined leaves it. An actor has no more than so many Peeks that wait for one bundle:
// they take nothing else that is bounded.
func (q *contentRequests) joinRequest(i *contentRequest, most int) (*contentRequest, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if other, ok := q.of[i.key]; ok {
		if other.waiting >= most {
			return nil, domain.Errorf(domain.Busy, "bundle %s: %d requests of its actor wait for its content already", i.bundle.ID, most)
		}
		other.waiting++
		return other, nil
	}
	if q.closed {
		return nil, domain.Errorf(domain.Unavailable, "ask %s for the content of bundle %s: this node is about to stop", i.bundle.Cabinet.Origin, i.bundle.ID)
	}
	i.over, i.waiting = make(chan struct{}), 1
	q.of[i.key] = i
	q.running.Go(func() { i.hub.askDomain(q.life, i) })
	return i, nil
}

// leaveRequest ends the waiting of one that has joined.
func (q *contentRequests) leaveRequest(i *contentRequest) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i.waiting--
}

// finishRequest tells those who wait for i what has come of it. If that is the content,
// it serves those as well who wait for a later inquiry for the same bundle.
func (q *contentRequests) finishRequest(i *contentRequest, result domain.Bundle, err error) {
	if err != nil && domain.KindOf(err) == domain.Unknown && q.life.Err() != nil {
		err = domain.Errorf(domain.Unavailable, "this node is about to stop: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	current := q.of[i.key]
	if current == i || current != nil && err == nil {
		delete(q.of, i.key)
		current.setResult(result, err)
	}
	i.setResult(result, err)
}

func (i *contentRequest) setResult(result domain.Bundle, err error) {
	select {
	case <-i.over:
	default:
		i.result, i.err = result, err
		close(i.over)
	}
}
