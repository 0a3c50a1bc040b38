package delivery

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Options of an Engine. The zero value is valid.
type Options struct {
	Incarnation string // id of this start of the node; default: random
	Workers     int    // limit for all calls under way; default 64
	Queues      int    // number of queues; default 12. Deliveries that failed more often are in the last queue
	Concurrency int    // limit for the calls under way of one receiver; default 16

	Timeout  time.Duration // limit for a call; default 30 s
	Overhead time.Duration // time to store the outcome of a call; default 30 s
	For      time.Duration // time after which Run returns; no call begins that could take longer. 0: no limit
	Grace    time.Duration // time for calls under way to end after the context of Run ends; default 10 s

	CheckInterval time.Duration                            // interval between checks for other nodes' changes; default 30 s
	Idle          time.Duration                            // time after which an idle cursor is removed from memory; default 5 minutes
	Window        int64                                    // limit for the bytes of stream entries in memory; default 32 MB
	Marked        int                                      // minimum number of watches in a page for which the engine stores how far the page was served; default 16
	Sweep         func(context.Context) error              // removes expired entries; called every hour
	Backoff       func(failures int) (pause time.Duration) // returns the pause after consecutive failures of the store; default 100 ms to 30 s
	Owns          func(shard int) bool                     // reports whether this node owns a shard, if Ports.Nodes is nil; default: it owns all
	// With NoTakeover, the engine does not take over the cursors of a dead node until it is asked
	// about one of these cursors; see the package comment.
	NoTakeover bool
	Clock      func() time.Time // stamps attempts; default: the system clock
	Random     func() uint64    // source of random numbers; default: math/rand/v2
	Logger     *slog.Logger     // default: log lines are discarded
}

func (o *Options) setDefaults() {
	if o.Random == nil {
		o.Random = rand.Uint64
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Owns == nil {
		o.Owns = func(int) bool { return true }
	}
	if o.Backoff == nil {
		o.Backoff = func(failures int) time.Duration { return retryPause(failures, o.Random) }
	}
	o.Incarnation = cmp.Or(o.Incarnation, strconv.FormatUint(o.Random(), 36)+strconv.FormatUint(o.Random(), 36))
	o.Workers = cmp.Or(o.Workers, 64)
	o.Queues = cmp.Or(o.Queues, 12)
	o.Concurrency = cmp.Or(o.Concurrency, 16)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.Overhead = cmp.Or(o.Overhead, 30*time.Second)
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	o.CheckInterval = cmp.Or(o.CheckInterval, 30*time.Second)
	o.Idle = cmp.Or(o.Idle, 5*time.Minute)
	o.Window = cmp.Or(o.Window, 32<<20)
	o.Marked = cmp.Or(o.Marked, 16) // to mark a smaller page costs more than to visit its watches again after a start
}

// retryPause returns the pause after consecutive failures: about 100 ms after the first failure,
// twice as long after each further failure, and up to 30 s.
func retryPause(failures int, random func() uint64) time.Duration {
	const limit = 30 * time.Second
	d := min(100*time.Millisecond<<min(max(failures-1, 0), 10), limit)
	return d/2 + time.Duration(random()%uint64(d)) //nolint:gosec // positive
}

// An Engine calls receivers. It is safe for concurrent use.
type Engine struct {
	Ports
	opts        Options
	dispatcher  *dispatcher
	window      *window
	store       *pool       // runs loads and reads
	settles     *pool       // runs settlements, except those of watches
	members     *membership // nil: the shards are not shared
	settlements settlements
	warned      [len(domain.WarningKinds)]atomic.Int64 // number of cursors with a warning, by the kind of the warning
	findWorkNow chan struct{}
	visits      chan struct{} // a slot for each visit to a watch
	residents   atomic.Int64  // watches that stay in memory after a visit

	mu       sync.Mutex
	running  sync.WaitGroup  // goroutines
	ctx      context.Context // context of all work; nil: Run was not called
	stop     context.CancelFunc
	state    engineState
	services map[domain.CursorID]*service
	topics   map[domain.StreamName]*topic
	watched  map[watchedKey]*watchedStream
	drained  chan struct{} // closed when the last service has ended while the engine stops
}

type engineState int

const (
	engineNew engineState = iota
	engineRunning
	engineStopping // no call begins
	engineStopped  // no goroutine begins
)

// A topic is a stream whose cursors or watches this node serves.
type topic struct {
	stream domain.StreamName

	mu        sync.Mutex
	end       [domain.Priorities]int64 // for each priority, the number after the last known entry
	isChecked bool                     // end was read from the store
	services  map[*service]struct{}
	watched   map[*watchedStream]struct{}

	isCheckQueued bool // a read of the end is queued

	crowds chan struct{} // a slot for each page with many watches that is being visited
}

// New returns an Engine. It does nothing until Run is called.
func New(ports Ports, opts Options) *Engine {
	opts.setDefaults()
	e := &Engine{
		Ports: ports, opts: opts, window: newWindow(opts.Window),
		services: make(map[domain.CursorID]*service), topics: make(map[domain.StreamName]*topic),
		watched: make(map[watchedKey]*watchedStream), drained: make(chan struct{}), visits: make(chan struct{}, maxVisits),
	}
	e.dispatcher = newDispatcher(opts.Workers, opts.Queues, opts.Random, func(p *permit) {
		if !p.service.postEvent(func(in *inbox) { in.permits = append(in.permits, p) }) {
			e.dispatcher.releasePermit(p)
		}
	})
	e.store = &pool{limit: 16, spawn: e.spawn}
	e.settles = &pool{limit: maxSettles, spawn: e.spawn}
	e.findWorkNow = make(chan struct{}, 1)
	if ports.Nodes != nil {
		e.members = newMembership(e)
	}
	return e
}

// margin is the time that is reserved between the last write and the end of Run.
const margin = 5 * time.Second

// Reserve returns the time before the end of Options.For in which no call begins.
func (o Options) Reserve() time.Duration {
	o.setDefaults()
	return o.Timeout + o.Overhead + margin
}

// Run serves cursors until ctx ends, or Options.For has passed. After that it begins no call,
// waits for the calls under way, stores their outcomes, and returns nil. It must be called only
// once.
func (e *Engine) Run(ctx context.Context) error {
	e.mu.Lock()
	e.ctx, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	e.state = engineRunning
	e.mu.Unlock()
	grace := e.opts.Grace
	var ending <-chan time.Time
	if e.opts.For > 0 {
		last := e.opts.Reserve() // how long a call that begins now may take
		timer := time.NewTimer(max(e.opts.For-last, 0))
		defer timer.Stop()
		ending, grace = timer.C, min(e.opts.For, last)-margin
		if e.opts.For <= last {
			e.dispatcher.close()
		}
	}
	var others sync.WaitGroup
	others.Go(func() { e.sweepRegularly() })
	others.Go(func() { e.reviewRegularly() })
	if e.members != nil {
		others.Go(func() { e.members.run(e.ctx) })
	}
	look := time.NewTimer(0)
	defer look.Stop()
	var looked time.Time
	for running := true; running; {
		select {
		case <-ctx.Done():
			running, grace = false, min(grace, e.opts.Grace)
		case <-ending:
			running = false
		case <-e.findWorkNow:
			look.Reset(max(minCheckInterval-time.Since(looked), 0))
		case <-look.C:
			looked = time.Now()
			e.findWork(ctx)
			look.Reset(e.opts.CheckInterval)
		}
	}
	e.drainServices(grace)
	others.Wait()
	if e.members != nil {
		e.members.leaveCluster(context.WithoutCancel(ctx))
	}
	return nil
}

// drainServices ends the services, and cancels all that have not ended after grace.
func (e *Engine) drainServices(grace time.Duration) {
	e.dispatcher.close()
	e.mu.Lock()
	e.state = engineStopping
	all := make([]*service, 0, len(e.services))
	for _, s := range e.services {
		all = append(all, s)
	}
	if len(all) == 0 {
		close(e.drained)
	}
	e.mu.Unlock()
	for _, s := range all {
		s.postEvent(func(in *inbox) { in.leave = true })
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-e.drained:
	case <-timer.C:
	}
	e.mu.Lock()
	e.state = engineStopped
	e.mu.Unlock()
	for _, s := range all { // not under mu: a service may lock mu while it holds its own mutex, which stopTimer locks
		s.stopTimer()
	}
	e.stop()
	e.running.Wait()
}

// spawn runs f in a goroutine that Run waits for. It returns false if Run was not called or has
// ended.
func (e *Engine) spawn(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != engineRunning && e.state != engineStopping {
		return false
	}
	e.running.Go(f)
	return true
}

// Published notifies the engine of entries that this process has appended to a stream, so that
// the receivers are called without delay.
func (e *Engine) Published(stream domain.StreamName, messages []domain.Message, appended []repository.Appended) {
	e.sendSignal(repository.Signal{Stream: stream})
	t := e.topicOf(stream)
	if t == nil {
		return
	}
	var entries []repository.Entry
	for i, a := range appended {
		if a.Outcome != repository.AppendedNow {
			continue
		}
		if len(messages[i].Payload) <= maxWindowPayload {
			entries = append(entries, repository.Entry{Message: messages[i], Position: a.Position, Published: a.Published, Accepted: a.Accepted})
		}
		t.extendEnd(a.Position.Priority, a.Position.Number+1)
	}
	e.window.putEntries(stream, entries)
	t.wakeCursors()
}

// maxWindowPayload is the limit for the payloads of the entries in the window. Larger payloads
// are read from the content store.
const maxWindowPayload = 16 << 10

// Created notifies the engine of a cursor that this process has created.
func (e *Engine) Created(id domain.CursorID, stream domain.StreamName) {
	e.requestShard(id)
	e.sendSignal(repository.Signal{Stream: stream, Cursor: id})
	e.serveCreated(repository.ShardEntry{Cursor: id, Stream: stream})
}

// serveCreated begins to serve a cursor that was created. If an earlier service has not found
// the cursor and is ending, another service follows it.
func (e *Engine) serveCreated(entry repository.ShardEntry) {
	if _, _, isWatch := domain.WatchOf(entry.Cursor); isWatch {
		e.serveWatched(repository.ShardOf(entry.Cursor), repository.WatchedStream{Stream: entry.Stream})
	}
	if s, isNew := e.serveCursor(entry); s != nil && !isNew {
		s.postEvent(func(in *inbox) { in.created = true })
	}
}

// Changed notifies the engine that the receiver of a cursor has changed or was deleted, or that
// a request to the cursor was stored.
func (e *Engine) Changed(id domain.CursorID) {
	e.requestShard(id)
	e.sendSignal(repository.Signal{Cursor: id})
	e.receiverChanged(id)
}

func (e *Engine) receiverChanged(id domain.CursorID) {
	if s := e.serviceOf(id); s != nil {
		s.postEvent(func(in *inbox) { in.changed = true })
	}
}

// IsCalling reports whether this process calls the receiver of a cursor with an entry.
func (e *Engine) IsCalling(id domain.CursorID, entry domain.EntryID) bool {
	s := e.serviceOf(id)
	return s != nil && s.isCalling(entry)
}

// serviceOf returns the service of a cursor, nil if it is not served.
func (e *Engine) serviceOf(id domain.CursorID) *service {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.services[id]
}

func (e *Engine) topicOf(stream domain.StreamName) *topic {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.topics[stream]
}

// serveCursor begins to serve a cursor, unless it is served already. The service is nil if the
// cursor has another owner or the engine ends.
func (e *Engine) serveCursor(entry repository.ShardEntry) (s *service, isNew bool) {
	shard := repository.ShardOf(entry.Cursor)
	if !e.hasShard(shard) {
		return nil, false
	}
	e.mu.Lock()
	s = e.services[entry.Cursor]
	if s != nil || e.state != engineRunning {
		e.mu.Unlock()
		if s != nil && s.requested.Load() < int64(entry.Requested) {
			s.postEvent(func(in *inbox) { in.changed = true })
		}
		return s, false
	}
	t := e.topicFor(entry.Stream)
	_, _, isWatch := domain.WatchOf(entry.Cursor)
	s = &service{engine: e, id: entry.Cursor, shard: shard, topic: t, wanted: true, isWatch: isWatch}
	s.noted.Store(entry.Changes)
	e.services[entry.Cursor] = s
	t.mu.Lock()
	t.services[s] = struct{}{}
	t.mu.Unlock()
	e.mu.Unlock()
	s.wake()
	if !e.hasShard(shard) { // the shard was lost since the check above
		s.postShed()
	}
	return s, true
}

// topicFor returns the topic of a stream, and creates it if it is missing. The caller holds mu.
func (e *Engine) topicFor(stream domain.StreamName) *topic {
	t := e.topics[stream]
	if t == nil {
		t = &topic{stream: stream, services: make(map[*service]struct{}), watched: make(map[*watchedStream]struct{}), crowds: make(chan struct{}, maxCrowds)}
		e.topics[stream] = t
		if e.members != nil {
			e.members.announceStream(stream)
		}
	}
	return t
}

// dropIdle removes a topic without services and watches. The caller holds mu of the engine and
// of the topic.
func (e *Engine) dropIdle(t *topic) {
	if len(t.services)+len(t.watched) == 0 {
		delete(e.topics, t.stream)
	}
}

// removeService ends the service of a cursor.
func (e *Engine) removeService(s *service) {
	s.stopTimer()
	if s.isResident {
		s.isResident = false
		e.residents.Add(-1)
	}
	if s.shedding || s.created {
		defer e.serveAgain(s)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.services[s.id] != s {
		return
	}
	delete(e.services, s.id)
	t := s.topic
	t.mu.Lock()
	delete(t.services, s)
	e.dropIdle(t)
	t.mu.Unlock()
	if e.state == engineStopping && len(e.services) == 0 {
		close(e.drained)
	}
}

// extendEnd records that the stream has entries of a priority up to number-1, and reports
// whether this is new.
func (t *topic) extendEnd(priority int, number int64) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if number <= t.end[priority] {
		return false
	}
	t.end[priority] = number
	return true
}

// knownEnds returns for each priority the number after the last known entry, and whether the end
// was read from the store.
func (t *topic) knownEnds() (end [domain.Priorities]int64, looked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end, t.isChecked
}

func (t *topic) wakeCursors() {
	t.mu.Lock()
	all := make([]*service, 0, len(t.services))
	for s := range t.services {
		all = append(all, s)
	}
	watched := slices.Collect(maps.Keys(t.watched))
	t.mu.Unlock()
	for _, s := range all {
		s.wake()
		runtime.Gosched() // see dispatcher.grantPermits
	}
	for _, w := range watched {
		w.visitSoon()
	}
}

// maxSettles is the limit for settlements under way. Without it, calls that end faster than the store
// accepts their results would fill the store with settlements, and appends would wait.
const maxSettles = 32

// A pool runs functions, up to limit at the same time.
type pool struct {
	limit int
	spawn func(func()) bool

	mu      sync.Mutex
	running int
	queue   turns[func()]
}

// runTask queues f, which belongs to topic t. A goroutine of the pool runs it, unless the
// engine ends first.
func (p *pool) runTask(t *topic, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.add(t, f)
	if p.running < p.limit && p.spawn(p.runWorker) {
		p.running++
	}
}

func (p *pool) runWorker() {
	for {
		p.mu.Lock()
		if p.queue.len() == 0 {
			p.running--
			p.mu.Unlock()
			return
		}
		f := p.queue.takeNext()
		p.mu.Unlock()
		f()
		runtime.Gosched() // see dispatcher.grantPermits
	}
}
