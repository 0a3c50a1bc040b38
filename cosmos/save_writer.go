package cosmos

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The Saves of one recipient in one process queue behind each other; what has
// gathered by the time the one before is done is saved together. There is no
// goroutine for that: one of the waiting callers leads, carries out one round
// for everybody in it, and hands the lead on.

// A pending is a Save that waits for its outcome.
type pending struct {
	events  []domain.Event
	digests []domain.Digest

	fresh     []int  // events that are to be stored, by the last sifting
	attempted []bool // events that a commit of unknown outcome was about
	refused   error  // why nothing of it may be stored
	saved     repository.Saved
	err       error

	done chan struct{} // closed: saved and err are set
	lead chan struct{} // closed: it is this caller's turn to lead

	state pendingState // guarded by the writer's mu
}

type pendingState int

const (
	waiting pendingState = iota
	leading
	gone // its caller has given up
)

func newPending(events []domain.Event) *pending {
	p := &pending{
		events:    events,
		digests:   make([]domain.Digest, len(events)),
		attempted: make([]bool, len(events)),
		done:      make(chan struct{}),
		lead:      make(chan struct{}),
	}
	for i := range events {
		p.digests[i] = events[i].Digest()
	}
	return p
}

// attempt notes that a commit is about to decide about the fresh events.
func (p *pending) attempt() {
	for _, i := range p.fresh {
		p.attempted[i] = true
	}
}

// A writer saves for one recipient.
type writer struct {
	r         *Repository
	recipient domain.ActorID

	mu    sync.Mutex
	busy  bool
	queue []*pending

	// What follows belongs to whoever leads.
	head     *head // as last written; nil: to be read
	index    *index
	batch    []*pending // taken from the queue for the next round
	deciding []*pending // whose commit is under way
	aside    []*pending // that wait until those before them have been saved alone
	reserved *plan      // of batch, if the commit before it has reserved it already
	foreign  sighting
	undoing  undoing
	yields   bool // the next round waits for another process
	alone    bool // this round saves for one caller only

	users int // guarded by writers.mu
	bytes int // guarded by writers.mu
}

// saveTimeout bounds a round, whatever becomes of the caller that leads it.
const saveTimeout = 20 * time.Second

// maxRound is how many events one round takes from several callers.
const maxRound = 10_000

// save waits for the outcome of p, or leads.
func (w *writer) save(ctx context.Context, p *pending) (repository.Saved, error) {
	w.mu.Lock()
	w.queue = append(w.queue, p)
	if !w.busy {
		w.busy, p.state = true, leading
		close(p.lead)
	}
	w.mu.Unlock()

	select {
	case <-p.lead:
		w.leadRounds(ctx)
	case <-p.done:
	case <-ctx.Done():
		if err, left := w.leave(ctx, p); left {
			return repository.Saved{}, err
		}
		w.leadRounds(ctx)
	}
	<-p.done
	return p.saved, p.err
}

// leave gives up waiting, unless p has become the leader just now.
func (w *writer) leave(ctx context.Context, p *pending) (error, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.state == leading {
		return nil, false
	}
	p.state = gone
	for i, q := range w.queue {
		if q == p {
			w.queue = append(w.queue[:i], w.queue[i+1:]...)
			return domain.Errorf(domain.Unavailable, "save: gave up before it began: %w", ctx.Err()), true
		}
	}
	return domain.Errorf(domain.Uncertain, "save: gave up while it was under way: %w", ctx.Err()), true
}

// leadRounds carries out rounds until somebody else leads or nothing is left.
// The first round is the one that the caller's Save is in. A caller that goes
// away does not take the others' Saves with it.
func (w *writer) leadRounds(ctx context.Context) {
	defer w.giveUp()
	for {
		round, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
		w.round(round)
		cancel()
		if w.handOver() {
			return
		}
	}
}

// giveUp answers everybody if the leader panics: nobody would lead any more.
func (w *writer) giveUp() {
	p := recover()
	if p == nil {
		return
	}
	w.mu.Lock()
	left := slices.Concat(w.deciding, w.batch, w.aside, w.queue)
	w.head, w.reserved, w.deciding, w.batch, w.aside, w.index = nil, nil, nil, nil, nil, newIndex(w.recipient)
	w.queue, w.busy, w.alone = nil, false, false // from here on, another may lead
	w.mu.Unlock()
	answer(left, domain.Errorf(domain.Uncertain, "save: another Save failed badly: %v", p))
	panic(p)
}

// take moves what waits into the batch of the next round.
func (w *writer) take() {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := 0
	for _, p := range w.batch {
		events += len(p.events)
	}
	for len(w.queue) > 0 && (len(w.batch) == 0 || events+len(w.queue[0].events) <= maxRound) {
		events += len(w.queue[0].events)
		w.batch = append(w.batch, w.queue[0])
		w.queue = w.queue[1:]
	}
}

// answer tells the callers of batch what became of their Saves.
func answer(batch []*pending, err error) {
	for _, p := range batch {
		p.err = cmp.Or(p.refused, err)
		if p.err != nil {
			p.saved = repository.Saved{}
		}
		close(p.done)
	}
}

// handOver makes one of the waiting callers the leader. It reports false if
// work is left and nobody waits who could lead: those it is for have gone, or
// the only one is the present leader.
func (w *writer) handOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, waitingIn := range [][]*pending{w.batch, w.queue} {
		for _, p := range waitingIn {
			if p.state == waiting {
				p.state = leading
				close(p.lead)
				return true
			}
		}
	}
	w.busy = len(w.batch) > 0 || len(w.queue) > 0
	return !w.busy
}

// writers keeps the writers that are in use and, within a bound on memory, those
// that were used last.
type writers struct {
	r *Repository

	mu    sync.Mutex
	of    map[domain.ActorID]*list.Element
	order *list.List // of *writer, the one used last in front
	bytes int
}

func newWriters(r *Repository) *writers {
	return &writers{r: r, of: make(map[domain.ActorID]*list.Element), order: list.New()}
}

func (ws *writers) acquire(recipient domain.ActorID) *writer {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	e, ok := ws.of[recipient]
	if !ok {
		e = ws.order.PushFront(&writer{r: ws.r, recipient: recipient, index: newIndex(recipient)})
		ws.of[recipient] = e
	}
	ws.order.MoveToFront(e)
	w := e.Value.(*writer)
	w.users++
	return w
}

// lastMayTake is how many times the bound the writer that was used last may take:
// it is the likeliest to be used next, and what it knows is dear to read again.
const lastMayTake = 4

// release gives w back and drops the writers that have not been used for longest
// while they take too much memory together.
func (ws *writers) release(w *writer) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.users--
	if w.users > 0 {
		return
	}
	size := w.index.size() // nobody leads, so nobody changes it
	ws.bytes += size - w.bytes
	w.bytes = size
	for e := ws.order.Back(); e != nil && ws.bytes > ws.r.opts.IndexBytes; {
		idle, before := e.Value.(*writer), e.Prev()
		last := e == ws.order.Front() && idle.bytes <= lastMayTake*ws.r.opts.IndexBytes
		if idle.users == 0 && !last {
			ws.bytes -= idle.bytes
			delete(ws.of, idle.recipient)
			ws.order.Remove(e)
		}
		e = before
	}
}
