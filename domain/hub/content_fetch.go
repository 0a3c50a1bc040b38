package hub

import (
	"context"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// maxCopies limits how many contents are copied at the same time. A copy may need several MB of memory, and after an
// outage many replies arrive together.
const maxCopies = 16

// A contentFetch is a request to a domain for the content of a bundle, and its result.
type contentFetch struct {
	hub    *Hub
	key    fetchKey
	bundle domain.Bundle
	folder string              // folder in which the domain stores the content
	list   []byte              // ids of the events; nil means that they are read from run
	run    repository.Run      // run with the events of the bundle
	trace  domain.TraceContext // trace of the Peek that started the fetch
	until  time.Time           // deadline for the reply of the domain

	waiting int // number of waiting Peeks; guarded by contentFetches.mu

	done   chan struct{} // closed after result and err are set
	result domain.Bundle
	err    error
}

type fetchKey struct {
	actor domain.ActorID
	id    domain.BundleID
}

// contentFetches contains the fetches of this node for which a Peek waits.
type contentFetches struct {
	life    context.Context //nolint:containedctx // ends with the hub
	end     context.CancelFunc
	copying chan struct{} // contains one element per running copy

	mu      sync.Mutex
	byKey   map[fetchKey]*contentFetch
	closed  bool
	running sync.WaitGroup // incremented only while mu is held and closed is false
}

func newContentFetches() *contentFetches {
	life, end := context.WithCancel(context.Background())
	return &contentFetches{life: life, end: end, copying: make(chan struct{}, maxCopies), byKey: make(map[fetchKey]*contentFetch)}
}

// close cancels all fetches and waits until they have ended.
func (q *contentFetches) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.end()
	q.running.Wait()
}

// joinFetch returns the running fetch for the bundle of i. If none exists, it starts i. The caller must call
// leaveFetch. At most limit Peeks can wait for one bundle; no other limit applies to them.
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

// leaveFetch records that a caller of joinFetch no longer waits.
func (q *contentFetches) leaveFetch(i *contentFetch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i.waiting--
}

// finishFetch ends fetch i with a result. If the result is not an error, it also ends a later fetch for the same
// bundle.
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
