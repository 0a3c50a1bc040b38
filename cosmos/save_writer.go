package cosmos

import (
	"cmp"
	"container/list"
	"context"
	"sync"
	"sync/atomic"
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
	span    *domain.TraceContext // of the request that saves them; nil if no span is stored

	fresh     []int  // events to store, by the last dedupBatch
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

// beginAttempt notes that a commit is about to decide about the fresh events.
func (p *pending) beginAttempt() {
	for _, i := range p.fresh {
		p.attempted[i] = true
	}
}

// endAttempt notes that the attempt no longer decides about the fresh events.
func (p *pending) endAttempt() {
	for _, i := range p.fresh {
		p.attempted[i] = false
	}
}

// A recipientWriter saves for one recipient.
type recipientWriter struct {
	r         *Repository
	recipient domain.ActorID

	leader *client.Leader[*pending]

	// What follows belongs to the caller that leads.
	head     *head // as last written; nil if it must be read
	index    *index
	batch    []*pending // taken from the queue for the next round
	reserved *savePlan  // of batch, if the commit before it has reserved it already
	foreign  firstSeen
	undoing  undoing

	headIsRead bool // the head was read in this round: it is not one of an earlier round

	yields bool // the next round waits for another process
	alone  bool // this round saves for one caller

	compared  map[domain.Group]bool      // whose gates are not in front of the head
	looked    map[domain.CabinetKey]bool // cabinets without a drawer ahead of the head
	abandoned string                     // of the head that the index is of
	newest    domain.Sequence            // the highest watermark of a head that was read or written

	// Of small Saves:
	objects    map[cabinetName]payloadObject // stored for the batch, and not known to be referred to
	superseded []string                      // objects that later attempts do not use
	refusals   int                           // of this batch
	savedSmall time.Time                     // when the last one was done, if no other Save followed

	isOld atomic.Bool // an operator's action on this node has made what is known of the recipient obsolete

	users int // guarded by writers.mu
	bytes int // guarded by writers.mu
}

// saveTimeout bounds a round, even if the caller that leads it has left.
const saveTimeout = 20 * time.Second

// maxRound is how many events one round takes from several callers.
const maxRound = 10_000

// newWriter returns a writer that knows nothing of its recipient yet.
func newWriter(r *Repository, recipient domain.ActorID) *recipientWriter {
	w := &recipientWriter{r: r, recipient: recipient, index: newIndex(recipient, r.indexLimit())}
	w.leader = client.NewLeader[*pending]("save", saveTimeout, w.runRound, w.reset)
	return w
}

// save returns the outcome of p, which is saved together with what other callers have
// queued.
func (w *recipientWriter) save(ctx context.Context, p *pending) (repository.Saved, error) {
	if err := w.leader.Do(ctx, p); err != nil {
		return repository.Saved{}, err
	}
	return p.saved, nil
}

// reset forgets what the leader knew, after a panic.
func (w *recipientWriter) reset() {
	w.head, w.reserved, w.batch, w.index = nil, nil, nil, newIndex(w.recipient, w.r.indexLimit())
	w.compared, w.looked = nil, nil
	w.alone = false
	w.objects, w.superseded, w.savedSmall = nil, nil, time.Time{}
}

// takeBatch moves what waits into the batch of the next round.
func (w *recipientWriter) takeBatch() {
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

// completeBatch returns the outcome of their Saves to the callers of batch.
func (w *recipientWriter) completeBatch(batch []*pending, err error) {
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

func (ws *writers) acquire(recipient domain.ActorID) *recipientWriter {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	e, ok := ws.of[recipient]
	if !ok {
		e = ws.order.PushFront(newWriter(ws.r, recipient))
		ws.of[recipient] = e
	}
	ws.order.MoveToFront(e)
	w := e.Value.(*recipientWriter)
	w.users++
	return w
}

// forgetHead has the writer of a recipient, if there is one, read the head before it saves.
func (ws *writers) forgetHead(recipient domain.ActorID) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if e, ok := ws.of[recipient]; ok {
		e.Value.(*recipientWriter).isOld.Store(true)
	}
}

// indexLimit is how much memory the index of one recipient may keep from one Save to the
// next, in bytes.
func (r *Repository) indexLimit() int { return r.opts.IndexBytes / 2 }

// smallIndex is the size, in bytes, of an index that is dropped with its writer rather than
// filter by filter.
const smallIndex = 64 << 10

// release gives w back. While the writers take too much memory together, those that were not
// used for longest forget their filters first, and are dropped the next time.
func (ws *writers) release(w *recipientWriter) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.users--
	if w.users > 0 {
		return
	}
	ws.resize(w) // no other caller leads, so none changes the index
	for e := ws.order.Back(); e != nil && ws.bytes > ws.r.opts.IndexBytes; {
		idle, before := e.Value.(*recipientWriter), e.Prev()
		if idle.users == 0 && (idle.bytes <= smallIndex || !ws.forgetFilters(idle)) {
			ws.bytes -= idle.bytes
			delete(ws.of, idle.recipient)
			ws.order.Remove(e)
		}
		e = before
	}
}

// forgetFilters reports whether idle is small once its filters are forgotten. Otherwise it is
// dropped as well.
func (ws *writers) forgetFilters(idle *recipientWriter) bool {
	idle.index.shrink(smallIndex)
	ws.resize(idle)
	return idle.bytes <= smallIndex
}

// resize notes the memory that an idle writer takes.
func (ws *writers) resize(w *recipientWriter) {
	size := w.index.size()
	if w.head != nil {
		size += w.head.tailBytes()
	}
	ws.bytes += size - w.bytes
	w.bytes = size
}
