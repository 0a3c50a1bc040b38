package hub

import (
	"context"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// maxCopies is how many contents are fetched and kept at the same time, each of
// which may take some MB of memory: after an outage, many replies come at once.
const maxCopies = 16

// A contentFetch is one request for the content of a bundle, and what has come of it.
type contentFetch struct {
	hub    *Hub
	key    fetchKey
	bundle domain.Bundle
	folder string              // for what the domain makes
	list   []byte              // the ids of its events; nil: to be read from run
	run    repository.Run      // of its events
	trace  domain.TraceContext // the Peek that began it
	until  time.Time           // the domain has so long

	waiting int // Peeks; guarded by inquiries.mu

	done   chan struct{} // closed when these are set
	result domain.Bundle
	err    error
}

type fetchKey struct {
	actor domain.ActorID
	id    domain.BundleID
}

// contentFetches are those of this node that somebody waits for.
type contentFetches struct {
	life    context.Context //nolint:containedctx // ends with the hub
	end     context.CancelFunc
	copying chan struct{} // one for each adoption under way

	mu      sync.Mutex
	byKey   map[fetchKey]*contentFetch
	closed  bool
	running sync.WaitGroup // grows only while mu is held and closed is false
}

func newContentFetches() *contentFetches {
	life, end := context.WithCancel(context.Background())
	return &contentFetches{life: life, end: end, copying: make(chan struct{}, maxCopies), byKey: make(map[fetchKey]*contentFetch)}
}

// close ends all inquiries, and returns when they are over.
func (q *contentFetches) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.end()
	q.running.Wait()
}

// joinFetch returns the inquiry for a bundle that is under way, or begins i. Whoever has
// joined leaves it. An actor has no more than so many Peeks that wait for one bundle:
// they take nothing else that is bounded.
func (q *contentFetches) joinFetch(i *contentFetch, most int) (*contentFetch, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if other, ok := q.byKey[i.key]; ok {
		if other.waiting >= most {
			return nil, domain.Errorf(domain.Busy, "bundle %s: %d requests of its actor wait for its content already", i.bundle.ID, most)
		}
		other.waiting++
		return other, nil
	}
	if q.closed {
		return nil, domain.Errorf(domain.Unavailable, "ask %s for the content of bundle %s: this node is about to stop", i.bundle.Cabinet.Origin, i.bundle.ID)
	}
	i.done, i.waiting = make(chan struct{}), 1
	q.byKey[i.key] = i
	q.running.Go(func() { i.hub.askDomain(q.life, i) })
	return i, nil
}

// leaveFetch ends the waiting of one that has joined.
func (q *contentFetches) leaveFetch(i *contentFetch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i.waiting--
}

// finishFetch tells those who wait for i what has come of it. If that is the content,
// it serves those as well who wait for a later inquiry for the same bundle.
func (q *contentFetches) finishFetch(i *contentFetch, result domain.Bundle, err error) {
	if err != nil && domain.KindOf(err) == domain.Unknown && q.life.Err() != nil {
		err = domain.Errorf(domain.Unavailable, "this node is about to stop: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	current := q.byKey[i.key]
	if current == i || current != nil && err == nil {
		delete(q.byKey, i.key)
		current.setResult(result, err)
	}
	i.setResult(result, err)
}

func (i *contentFetch) setResult(result domain.Bundle, err error) {
	select {
	case <-i.done:
	default:
		i.result, i.err = result, err
		close(i.done)
	}
}
