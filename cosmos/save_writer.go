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

// The Saves of one recipient in one process are queued. When a round ends, the next round stores the
// queued Saves together; see client.Leader.

// A pendingSave is a Save that waits for its result.
type pendingSave struct {
	events  []domain.Event
	digests []domain.Digest
	span    *domain.TraceContext // span of the request; nil if spans are not stored

	fresh     []int  // indexes of the new events, set by dedupBatch
	attempted []bool // for each event, whether it was in a commit whose outcome is unknown
	refused   error  // set by dedupBatch if no event of this Save may be stored
	saved     repository.Saved
}

func newPending(events []domain.Event) *pendingSave {
	p := &pendingSave{
		events:    events,
		digests:   make([]domain.Digest, len(events)),
		attempted: make([]bool, len(events)),
	}
	for i := range events {
		p.digests[i] = events[i].Digest()
	}
	return p
}

// beginAttempt records that a commit with the new events is about to be written.
func (p *pendingSave) beginAttempt() {
	for _, i := range p.fresh {
		p.attempted[i] = true
	}
}

// endAttempt records that the commit with the new events was not applied.
func (p *pendingSave) endAttempt() {
	for _, i := range p.fresh {
		p.attempted[i] = false
	}
}

// A recipientWriter stores the Saves of this process for one recipient.
type recipientWriter struct {
	r         *Repository
	recipient domain.ActorID

	leader *client.Leader[*pendingSave]

	// Only the caller that leads the current round may use the following fields.
	head     *head // head that was last read or written; nil if it must be read
	index    *index
	batch    []*pendingSave // Saves of the current round
	reserved *savePlan      // plan of batch, if the previous commit has stored its intent
	foreign  firstSeen
	rollback rollbackProgress

	headIsRead bool // whether the head was read in this round

	yields bool // whether the next round lets another process write the head first
	alone  bool // whether saveOneByOne stores the Saves of this round

	compared  map[domain.Group]bool      // groups whose gates were compared with the head and are not in front of it
	probed    map[domain.CabinetKey]bool // cabinets that were queried and have no drawer ahead of the head
	abandoned string                     // value of Abandoned in the head from which the index was built
	newest    domain.Sequence            // highest watermark of a head that was read or written

	// The following fields are used only by small Saves.
	objects    map[cabinetName]payloadObject // objects that were stored for the batch before its commit
	superseded []string                      // names of stored objects that later attempts do not use
	refusals   int                           // how often a write of this batch was refused
	savedSmall time.Time                     // when the last small Save ended; zero if a large Save followed

	mustReadHead atomic.Bool // set if an operator's action on this node has changed the head

	users int // guarded by writers.mu
	bytes int // guarded by writers.mu
}

// saveTimeout limits the duration of a round, because a round continues after the context of a caller has
// ended.
const saveTimeout = 20 * time.Second

// maxRound limits the number of events that one round stores.
const maxRound = 10_000

// newWriter returns a writer without a head and with an empty index.
func newWriter(r *Repository, recipient domain.ActorID) *recipientWriter {
	w := &recipientWriter{r: r, recipient: recipient, index: newIndex(recipient, r.indexLimit())}
	w.leader = client.NewLeader[*pendingSave]("save", saveTimeout, w.runRound, w.reset)
	return w
}

// save queues p, waits for the round that stores p, and returns the result.
func (w *recipientWriter) save(ctx context.Context, p *pendingSave) (repository.Saved, error) {
	if err := w.leader.Do(ctx, p); err != nil {
		return repository.Saved{}, err
	}
	return p.saved, nil
}

// reset discards the state of the writer after a panic.
func (w *recipientWriter) reset() {
	w.head, w.reserved, w.batch, w.index = nil, nil, nil, newIndex(w.recipient, w.r.indexLimit())
	w.compared, w.probed = nil, nil
	w.alone = false
	w.objects, w.superseded, w.savedSmall = nil, nil, time.Time{}
}

// takeBatch moves queued Saves into the batch.
func (w *recipientWriter) takeBatch() {
	events := 0
	for _, p := range w.batch {
		events += len(p.events)
	}
	first := len(w.batch) == 0
	w.batch = append(w.batch, w.leader.Take(func(p *pendingSave) bool {
		fits := first || events+len(p.events) <= maxRound
		first, events = false, events+len(p.events)
		return fits
	})...)
}

// completeBatch returns the results to the callers of the Saves in batch.
func (w *recipientWriter) completeBatch(batch []*pendingSave, err error) {
	for _, p := range batch {
		w.leader.Complete(p, cmp.Or(p.refused, err))
	}
}

// writers contains the writers in use and the most recently used idle writers, within a memory limit.
type writers struct {
	r *Repository

	mu    sync.Mutex
	of    map[domain.ActorID]*list.Element
	order *list.List // list of *recipientWriter, most recently used first
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
		e.Value.(*recipientWriter).mustReadHead.Store(true)
	}
}

// indexLimit returns the limit in bytes for the index of one recipient between two Saves.
func (r *Repository) indexLimit() int { return r.opts.IndexBytes / 2 }

// smallIndex is a size in bytes. To free memory, a larger index is first shrunk to this size, and a
// smaller one is removed together with its writer.
const smallIndex = 64 << 10

// release returns w to ws. While all writers together use too much memory, release shrinks the indexes of
// the least recently used writers, and removes a writer whose index is small.
func (ws *writers) release(w *recipientWriter) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.users--
	if w.users > 0 {
		return
	}
	ws.resize(w) // no caller uses w, so its index does not change
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

// forgetFilters evicts the filters of an idle writer, and reports whether its size is then at most
// smallIndex. If not, the caller removes the writer.
func (ws *writers) forgetFilters(idle *recipientWriter) bool {
	idle.index.shrink(smallIndex)
	ws.resize(idle)
	return idle.bytes <= smallIndex
}

// resize updates the recorded memory of an idle writer.
func (ws *writers) resize(w *recipientWriter) {
	size := w.index.size()
	if w.head != nil {
		size += w.head.tailBytes()
	}
	ws.bytes += size - w.bytes
	w.bytes = size
}
