package simulate

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/bench/simulate/invariants/objects"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// An objectWorld is two nodes that keep the objects of a bucket on one account. The events are those of
// random objects, each in a message that may be delivered again, in any order. In some worlds the bucket
// changes meanwhile, nodes crawl it, users patch rows, and nodes forget old ones.
type objectWorld struct {
	*world
	d        dice
	plan     objectPlan
	observer *objects.Observer
	options  objectstore.Options // of each node, without its clock and its randomness
	buckets  []*observedObject
	source   *memory.Source // the bucket as it is

	clock objectClock
	calls atomic.Int64 // of nodes that have not ended
	rests atomic.Bool  // no node is started

	hasSkew   bool // the clock of a node has jumped
	hasJumped bool // by more than crawls bear

	omu       sync.Mutex
	nodes     [objectNodes]*objectNode // nil: down
	starts    [objectNodes]int
	messages  []*objectMessage // to be delivered, some of them again
	all       []*objectMessage // that were ever to be delivered
	underway  int              // messages
	changes   int              // of the bucket that are left
	delivered chan struct{}    // closed when nothing is left to deliver
}

// An objectPlan says what happens besides events.
type objectPlan struct {
	crawls    bool
	loses     bool // some events are never reported
	patches   bool
	topic     bool          // changes are stored for it, and nothing publishes them
	retention time.Duration // 0: for ever
	changes   int           // of the bucket while nodes work
}

// crawlsOnce reports whether one crawl has to find all that was never reported, after all that was.
func (p *objectPlan) crawlsOnce() bool { return p.crawls && p.loses && p.changes == 0 }

func newObjectPlan(d dice) (p objectPlan) {
	if p.crawls = d.n(2) == 0; p.crawls {
		p.loses, p.changes = d.n(2) == 0, max(d.n(24)-12, 0)
	}
	p.patches = d.n(2) == 0
	if d.n(3) == 0 {
		p.retention = 6 * time.Hour
	}
	p.topic = d.n(3) == 0
	return p
}

const (
	objectNodes = 2
	// objectFaults is the number before the first fault of a world of objects.
	objectFaults = 5_000_000
	// objectUses is added to the use of each dice.
	objectUses = 40_000

	objectBucket = "bucket"

	// maxObjectSkew is how far the clock of a node may be wrong: two of them are not further apart than the
	// ledger promises to bear.
	maxObjectSkew = 25 * time.Minute
)

// An observedObject is an object, what happened to it, and what became of each of its events.
type observedObject struct {
	name    domain.ObjectName
	bucket  *objecttest.Bucket
	events  map[domain.ObjectRowID]*eventTally
	ordered []domain.ObjectRowID // in the order in which they happened
}

// An eventTally counts the deliveries of an event.
type eventTally struct {
	stored  int // answered that it was stored
	known   int // answered that it was a duplicate
	unsure  int // which may have been applied
	repeats int // that may have been applied once more: see noteForgotten
	isLost  bool
}

// An objectMessage is a message with some events.
type objectMessage struct {
	name    string
	reports []repository.ObjectReport
}

// hasObjects reports whether a seed has a world of objects.
func hasObjects(seed uint64) bool { return newDice(seed, objectUses+500).n(3) == 0 }

func newObjectWorld(o *Options) (*objectWorld, error) {
	w, err := newWorld(o)
	if err != nil {
		return nil, err
	}
	l := &objectWorld{world: w, d: newDice(o.Seed, objectUses+501), plan: newObjectPlan(newDice(o.Seed, objectUses+502)), source: memory.NewSource(objectBucket)}
	l.clock.shift = time.Until(objecttest.FirstMoment.Add(time.Hour))
	l.observer = w.judges[containers.InvariantsObjects].(*objects.Observer)
	if l.plan.retention > 0 {
		l.observer.Forgets = func() (rows, dead time.Time) {
			latest := l.clock.now().Add(maxObjectSkew)
			return latest.Add(-l.plan.retention), latest.Add(-domain.MinDeadRetention - time.Hour)
		}
	}
	w.shelf, w.plan.vandal, w.plan.receivers, w.numbers = nil, false, false, objectFaults
	if w.weather.lasts = 60 + l.d.n(300); l.plan.crawlsOnce() {
		w.weather.lasts += 400
	}
	l.options = objectstore.Options{
		Shards: 1 + l.d.n(2), Limits: domain.ObjectLimits{Rows: 1 + l.d.n(4)}, Retries: []int{0, 0, 5}[l.d.n(3)],
		Retention: domain.ObjectRetention(l.plan.retention), Topic: l.plan.topic,
	}
	l.observer.HasTopic = l.plan.topic
	limit := 3
	if l.plan.crawls { // so that nodes die within a crawl
		limit = 8
	}
	for i := range 1 + l.d.n(limit) {
		b, failure := l.newObject(fmt.Sprint("key-", i))
		l.buckets, err = append(l.buckets, b), errors.Join(err, failure)
	}
	var reports []repository.ObjectReport
	for _, o := range l.buckets {
		reports = append(reports, o.reports(o.bucket.Events)...)
	}
	l.messages = l.mix(reports)
	return l, errors.Join(err, l.provision(), w.failed())
}

// newObject returns an object with a random history. With distinct times, its state does not depend on
// the order of delivery.
func (l *objectWorld) newObject(key string) (*observedObject, error) {
	name, err := domain.ParseObjectName(objectBucket, key)
	o := &observedObject{name: name, events: make(map[domain.ObjectRowID]*eventTally)}
	o.bucket = objecttest.RandomBucket(l.d.source, 12, l.d.n(2) == 0, time.Millisecond)
	for i := range o.bucket.Events {
		o.note(&o.bucket.Events[i])
	}
	l.show(o)
	return o, err
}

// note notes an event that happened, and gives it what the store says of it.
func (o *observedObject) note(e *domain.ObjectEvent) {
	e.Carrier.Message += o.name.Key()
	e.ETag = domain.QuoteETag(e.ETag)
	o.events[e.ID()] = &eventTally{}
	o.ordered = append(o.ordered, e.ID())
}

// reports returns the reports of events.
func (o *observedObject) reports(events []domain.ObjectEvent) (reports []repository.ObjectReport) {
	for _, e := range events {
		reports = append(reports, repository.ObjectReport{Name: o.name, ObjectEvent: e})
	}
	return reports
}

// mix puts events into messages, some of them twice, and has some messages come again. Some worlds lose
// some of the events.
func (l *objectWorld) mix(all []repository.ObjectReport) (messages []*objectMessage) {
	if l.plan.loses {
		all = slices.DeleteFunc(all, func(r repository.ObjectReport) bool {
			isLost := l.d.n(4) == 0
			l.find(r.Name).events[r.ID()].isLost = isLost
			return isLost
		})
	}
	l.d.source.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for len(all) > 0 {
		n := min(1+l.d.n(6), len(all))
		m := &objectMessage{name: fmt.Sprint("message-", len(l.all)), reports: slices.Clone(all[:n])}
		if all = all[n:]; l.d.n(3) == 0 {
			m.reports = append(m.reports, m.reports[l.d.n(n)])
		}
		l.all = append(l.all, m)
		messages = append(messages, m)
	}
	for _, m := range slices.Clone(messages) {
		for range l.d.n(3) {
			messages = append(messages, m)
		}
	}
	l.d.source.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
	return messages
}

// provision creates the container, before anything goes wrong.
func (l *objectWorld) provision() error {
	db, err := l.connect()
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Provision(l.ctx, objectstore.Containers())
}

// connect returns a connection on which nothing goes wrong.
func (l *objectWorld) connect() (*client.Database, error) {
	return client.Connect(client.Connection{Endpoint: secure(l.engine.Endpoint()), Key: l.engine.Key(), Transport: l.engine.Transport()})
}

// simulate lets the world run to its end, and returns what was wrong with it.
func (l *objectWorld) simulate() error {
	for i := range objectNodes {
		l.begins(i)
	}
	l.ghosts.Go(l.direct)
	isDone := func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.done }
	err := l.run(isDone, func() error { l.mishapsOfObjectNodes(); return nil })
	l.ending.Store(true)
	l.cancel()
	for i := range objectNodes {
		if n := l.objectNode(i); n != nil {
			n.kill()
		}
	}
	for _, line := range l.httpLines {
		line.cut()
	}
	l.ghosts.Wait()
	return err
}

// direct has all messages delivered, perhaps in two phases, and compares what is stored with the bucket.
func (l *objectWorld) direct() {
	l.phase(0)
	if l.plan.retention > 0 && l.ctx.Err() == nil {
		l.rest(15 * 24 * time.Hour)
		l.rests.Store(false)
		l.messages = l.mixAgain()
		l.phase(1)
	}
	if l.plan.crawlsOnce() {
		p := &objectParty{party: l.newParty("crawler", objectUses+6000), l: l}
		p.crawlOnce()
	}
	if l.ctx.Err() == nil {
		if err := l.judgeObjects(); err != nil && l.ctx.Err() == nil {
			l.fail(err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = true
	l.rouse()
}

// phase has parties work until all messages are delivered.
func (l *objectWorld) phase(n int) {
	use := uint64(objectUses + 1000 + 2000*n) //nolint:gosec // small
	l.delivered, l.changes = make(chan struct{}), l.plan.changes
	if len(l.messages)+l.changes == 0 { // the buckets were left alone
		close(l.delivered)
	}
	var parties sync.WaitGroup
	for i := range 1 + l.d.n(4) {
		c := &objectCarrier{party: l.newParty(fmt.Sprint("carrier-", i), use+uint64(i)), l: l}
		parties.Go(c.deliverAll)
	}
	reader := &objectReader{party: l.newParty("reader", use+500), l: l}
	parties.Go(reader.readUntilDelivered)
	for i, does := range l.tasks() {
		p := &objectParty{party: l.newParty(does.who, use+600+100*uint64(i)), l: l}
		parties.Go(func() { p.work(does) })
	}
	select {
	case <-l.delivered:
	case <-l.ctx.Done():
	}
	parties.Wait()
}

// rest stops all nodes until nothing that they have requested can arrive, and lets time pass.
func (l *objectWorld) rest(d time.Duration) {
	l.rests.Store(true)
	for i := range objectNodes {
		if n := l.objectNode(i); n != nil {
			n.kill()
		}
	}
	const late = 5 * time.Minute
	for _ = clock.Sleep(l.ctx, late); l.calls.Load() > 0 && l.ctx.Err() == nil; { // of calls that wait for their end
		_ = clock.Sleep(l.ctx, late)
	}
	l.clock.advance(d)
}

// mixAgain returns messages that were delivered before, and are again.
func (l *objectWorld) mixAgain() (messages []*objectMessage) {
	for _, m := range l.all {
		if l.d.n(2) == 0 {
			messages = append(messages, m)
		}
	}
	return messages
}

// take returns a message to deliver, or nil if none is waiting.
func (l *objectWorld) take() *objectMessage {
	l.omu.Lock()
	defer l.omu.Unlock()
	if len(l.messages) == 0 {
		return nil
	}
	m := l.messages[0]
	l.messages = slices.Delete(l.messages, 0, 1)
	l.underway++
	return m
}

// putBack ends a delivery. The message comes again unless it is done.
func (l *objectWorld) putBack(m *objectMessage, isDone bool) {
	l.omu.Lock()
	defer l.omu.Unlock()
	l.underway--
	if !isDone {
		l.messages = append(l.messages, m)
	}
	l.closeDelivered()
}

// closeDelivered closes delivered if nothing is left to deliver. The caller holds omu.
func (l *objectWorld) closeDelivered() {
	if len(l.messages)+l.underway+l.changes == 0 {
		close(l.delivered)
	}
}

func (l *objectWorld) find(name domain.ObjectName) *observedObject {
	i := slices.IndexFunc(l.buckets, func(o *observedObject) bool { return o.name == name })
	return l.buckets[i]
}

// simulateObjects lets the world of objects of a seed run, in a bubble.
func simulateObjects(o *Options) (r Result) {
	l, err := newObjectWorld(o)
	if err != nil {
		return Result{Err: err}
	}
	if err = l.simulate(); err != nil {
		err = fmt.Errorf("objects: %w", err)
	}
	return Result{
		Err: errors.Join(err, l.close()), Steps: l.steps, Faulted: l.faulted, Happened: l.happen,
		Sum: l.trace.sum, Trace: l.trace.lines, Sometimes: l.sometimes, Passed: time.Since(l.began),
	}
}
