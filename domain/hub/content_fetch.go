package hub

import (
	"context"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// maxCopies is the maximum number of contents that are copied at the same time. Each copy may
// need some MB of memory, and after an outage many replies arrive together.
const maxCopies = 16

// A contentFetch is a request to a domain for the content of a bundle, with its result.
type contentFetch struct {
	hub    *Hub
	key    fetchKey
	bundle domain.Bundle
	folder string              // folder for the content that the domain produces
	list   []byte              // the ids of the events; nil: they are read from run
	run    repository.Run      // the run of the events
	trace  domain.TraceContext // trace of the Peek that began the fetch
	until  time.Time           // deadline for the reply of the domain

	waiting int // number of Peeks that wait; guarded by contentFetches.mu

	done   chan struct{} // closed when result and err are set
	result domain.Bundle
	err    error
}

type fetchKey struct {
	actor domain.ActorID
	id    domain.BundleID
}

// contentFetches are the fetches of this node for which a Peek waits.
type contentFetches struct {
	life    context.Context //nolint:containedctx // ends with the hub
	end     context.CancelFunc
	copying chan struct{} // one element for each copy under way

	mu      sync.Mutex
	byKey   map[fetchKey]*contentFetch
	closed  bool
	running sync.WaitGroup // grows only while mu is held and closed is false
}

func newContentFetches() *contentFetches {
	life, end := context.WithCancel(context.Background())
	return &contentFetches{life: life, end: end, copying: make(chan struct{}, maxCopies), byKey: make(map[fetchKey]*contentFetch)}
}

// close cancels all fetches, and waits until they have ended.
func (q *contentFetches) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.end()
	q.running.Wait()
}

// joinFetch returns the fetch that is under way for the bundle of i, or begins i. The caller
// must call leaveFetch. Up to limit Peeks may wait for one bundle; no other limit applies to
// waiting Peeks.
func (q *contentFetches) joinFetch(i *contentFetch, limit int) (*contentFetch, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if other, ok := q.byKey[i.key]; ok {
		if other.waiting >= limit {
			return nil, domain.Errorf(domain.Busy, "bundle %s: %d requests of its actor wait for its content already", i.bundle.ID, limit)
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

// leaveFetch ends the wait of a caller of joinFetch.
func (q *contentFetches) leaveFetch(i *contentFetch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i.waiting--
}

// finishFetch completes i with a result. Without an error, it also completes a later fetch for
// the same bundle.
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
