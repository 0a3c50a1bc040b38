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

// The Saves of one recipient in one process are queued; those that are in the queue when the round
// before is done are saved together (see client.Leader).

// A pending is a Save that waits for its outcome.
type pending struct {
	events  []domain.Event
	digests []domain.Digest
	span    *domain.TraceContext // span of the request; nil if it is not stored

	fresh     []int  // indexes of the events to store, by the last dedupBatch
	attempted []bool // events of a commit whose outcome is unknown
	refused   error  // why none of its events may be stored
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

// beginAttempt records that a commit is about to decide about the fresh events.
func (p *pending) beginAttempt() {
	for _, i := range p.fresh {
		p.attempted[i] = true
	}
}

// endAttempt records that the attempt can no longer decide about the fresh events.
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

	// Only the caller that is the leader may use the following fields.
	head     *head // as last written; nil if it must be read
	index    *index
	batch    []*pending // the Saves of this round
	reserved *savePlan  // the plan of batch, if the commit before it has reserved it already
	foreign  firstSeen
	undoing  undoing

	headIsRead bool // the head was read in this round

	yields bool // the next round waits for another process
	alone  bool // this round saves for one caller

	compared  map[domain.Group]bool      // groups whose gates are not in front of the head
	looked    map[domain.CabinetKey]bool // cabinets without a drawer ahead of the head
	abandoned string                     // Abandoned of the head on which the index is based
	newest    domain.Sequence            // the highest watermark of a head that was read or written

	// Of small Saves:
	objects    map[cabinetName]payloadObject // stored for the batch; no saved event is known to refer to them
	superseded []string                      // objects that later attempts do not use
	refusals   int                           // how often this batch was refused
	savedSmall time.Time                     // when the last small Save was done, if no other Save followed

	isOld atomic.Bool // an operator's action on this node has made the memory of the recipient obsolete

	users int // guarded by writers.mu
	bytes int // guarded by writers.mu
}

// saveTimeout limits a round, even if the caller that leads it has left.
const saveTimeout = 20 * time.Second

// maxRound is the limit for the events that one round takes from several callers.
const maxRound = 10_000

// newWriter returns a writer without any state of its recipient.
func newWriter(r *Repository, recipient domain.ActorID) *recipientWriter {
	w := &recipientWriter{r: r, recipient: recipient, index: newIndex(recipient, r.indexLimit())}
	w.leader = client.NewLeader[*pending]("save", saveTimeout, w.runRound, w.reset)
	return w
}

// save queues p, which is saved together with the Saves of other callers, and returns its outcome.
func (w *recipientWriter) save(ctx context.Context, p *pending) (repository.Saved, error) {
	if err := w.leader.Do(ctx, p); err != nil {
		return repository.Saved{}, err
	}
	return p.saved, nil
}

// reset drops the leader's state after a panic.
func (w *recipientWriter) reset() {
	w.head, w.reserved, w.batch, w.index = nil, nil, nil, newIndex(w.recipient, w.r.indexLimit())
	w.compared, w.looked = nil, nil
	w.alone = false
	w.objects, w.superseded, w.savedSmall = nil, nil, time.Time{}
}

// takeBatch moves queued Saves into the batch of the next round.
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

// completeBatch returns the outcomes to the callers of batch.
func (w *recipientWriter) completeBatch(batch []*pending, err error) {
	for _, p := range batch {
		w.leader.Complete(p, cmp.Or(p.refused, err))
	}
}

// writers keeps the writers that are in use and, within a limit for memory, those that were used last.
type writers struct {
	r *Repository

	mu    sync.Mutex
	of    map[domain.ActorID]*list.Element
	order *list.List // of *writer, the one used last first
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

// forgetHead makes the writer of a recipient, if there is one, read the head before its next Save.
func (ws *writers) forgetHead(recipient domain.ActorID) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if e, ok := ws.of[recipient]; ok {
		e.Value.(*recipientWriter).isOld.Store(true)
	}
}

// indexLimit is the memory in bytes that the index of one recipient may keep from one Save to the next.
func (r *Repository) indexLimit() int { return r.opts.IndexBytes / 2 }

// smallIndex is the size in bytes up to which an index is dropped together with its writer, and not
// filter by filter.
const smallIndex = 64 << 10

// release returns w to ws. While all writers together take too much memory, those that were not used
// for the longest time drop their filters first, and are removed the next time.
func (ws *writers) release(w *recipientWriter) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.users--
	if w.users > 0 {
		return
	}
	ws.resize(w) // no other caller leads w, so none changes the index
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

// forgetFilters drops the filters of idle and reports whether idle is small then. Otherwise the caller
// removes it as well.
func (ws *writers) forgetFilters(idle *recipientWriter) bool {
	idle.index.shrink(smallIndex)
	ws.resize(idle)
	return idle.bytes <= smallIndex
}

// resize records the memory that an idle writer takes.
func (ws *writers) resize(w *recipientWriter) {
	size := w.index.size()
	if w.head != nil {
		size += w.head.tailBytes()
	}
	ws.bytes += size - w.bytes
	w.bytes = size
}
