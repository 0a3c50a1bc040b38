package cosmos

import (
	"cmp"
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The Saves of one recipient in one process queue behind each other; those that have
// gathered by the time the one before is done are saved together (see client.Leader).

// A pending is a Save that waits for its outcome.
type pending struct {
	events  []domain.Event
	digests []domain.Digest

	fresh     []int  // events that are to be stored, by the last sifting
	attempted []bool // events that a commit of unknown outcome was about
	refused   error  // why nothing of it may be stored
	saved     repository.Saved
}

func newPending(events []domain.Event) *pending {
	p := &pending{
		events:    events,
		digests:   make([]domain.Digest, len(events)),
		attempted: make([]bool, len(events)),
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

// withdraw notes that the attempt no longer decides about the fresh events.
func (p *pending) withdraw() {
	for _, i := range p.fresh {
		p.attempted[i] = false
	}
}

// A writer saves for one recipient.
type writer struct {
	r         *Repository
	recipient domain.ActorID

	leader *client.Leader[*pending]

	// What follows belongs to the caller that leads.
	head     *head // as last written; nil: to be read
	index    *index
	batch    []*pending // taken from the queue for the next round
	reserved *plan      // of batch, if the commit before it has reserved it already
	foreign  sighting
	undoing  undoing
	yields   bool // the next round waits for another process
	alone    bool // this round saves for one caller only

	// Of small Saves:
	objects    map[cabinetName]payloadObject // stored for the batch, and not known to be referred to
	superseded []string                      // objects that later attempts do not use
	refusals   int                           // of this batch
	savedSmall time.Time                     // when the last one was done, if no other Save followed

	users int // guarded by writers.mu
	bytes int // guarded by writers.mu
}

// saveTimeout bounds a round, whatever becomes of the caller that leads it.
const saveTimeout = 20 * time.Second

// maxRound is how many events one round takes from several callers.
const maxRound = 10_000

// newWriter returns a writer that knows nothing of its recipient yet.
func newWriter(r *Repository, recipient domain.ActorID) *writer {
	w := &writer{r: r, recipient: recipient, index: newIndex(recipient)}
	w.leader = client.NewLeader[*pending]("save", saveTimeout, w.round, w.reset)
	return w
}

// save returns the outcome of p, which is saved together with what other callers have
// queued.
func (w *writer) save(ctx context.Context, p *pending) (repository.Saved, error) {
	if err := w.leader.Do(ctx, p); err != nil {
		return repository.Saved{}, err
	}
	return p.saved, nil
}

// reset forgets what the leader knew, after a panic.
func (w *writer) reset() {
	w.head, w.reserved, w.batch, w.index = nil, nil, nil, newIndex(w.recipient)
	w.alone = false
	w.objects, w.superseded, w.savedSmall = nil, nil, time.Time{}
}

// take moves what waits into the batch of the next round.
func (w *writer) take() {
	events := 0
	for _, p := range w.batch {
		events += len(p.events)
	}
	first := len(w.batch) == 0
	w.batch = append(w.batch, w.leader.Take(func(p *pending) bool {
		fits := first || events+len(p.events) <= maxRound
		first, events = false, events+len(p.events)
		return fits
	})...)
}

// complete returns the outcome of their Saves to the callers of batch.
func (w *writer) complete(batch []*pending, err error) {
	for _, p := range batch {
		w.leader.Complete(p, cmp.Or(p.refused, err))
	}
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
		e = ws.order.PushFront(newWriter(ws.r, recipient))
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
	if w.head != nil {
		size += w.head.tailBytes()
	}
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
