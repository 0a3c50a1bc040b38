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
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// An objectSimulation runs two nodes that store the objects of one bucket. The events come from random objects, in
// messages that are delivered repeatedly and in any order. In some simulations the bucket also changes, nodes crawl
// it, users patch rows, and nodes forget old rows.
type objectSimulation struct {
	*simulation
	rng          random.Source
	plan         objectPlan
	observer     *objects.Observer
	storeOptions objectstore.Options // options of each node's store, without clock and random source
	buckets      []*observedObject
	source       *memory.Source // the bucket

	clock     objectClock
	calls     atomic.Int64 // number of active calls to nodes
	isResting atomic.Bool  // true while no node may start

	hasSkew   bool // true after a node's clock jumped
	hasJumped bool // true after a node's clock jumped by more than crawls tolerate

	omu       sync.Mutex
	nodes     [objectNodes]*objectNode // nodes by index; nil while a node is down
	starts    [objectNodes]int
	messages  []*objectMessage // messages that wait for delivery; some occur more than once
	all       []*objectMessage // all messages that were queued so far
	underway  int              // number of messages that are being delivered
	changes   int              // number of remaining changes of the bucket
	delivered chan struct{}    // closed when all messages are delivered
}

// An objectPlan says which activities a simulation has in addition to the delivery of events.
type objectPlan struct {
	crawls    bool
	loses     bool // some events are never reported
	patches   bool
	topic     bool          // changes are stored for the topic, but not published
	retention time.Duration // 0: unlimited
	changes   int           // number of changes of the bucket while nodes work
}

// crawlsOnce reports whether a single crawl, at the end, must find all events that were never reported.
func (p *objectPlan) crawlsOnce() bool { return p.crawls && p.loses && p.changes == 0 }

func newObjectPlan(rng random.Source) (p objectPlan) {
	if p.crawls = rng.IntN(2) == 0; p.crawls {
		p.loses, p.changes = rng.IntN(2) == 0, max(rng.IntN(24)-12, 0)
	}
	p.patches = rng.IntN(2) == 0
	if rng.IntN(3) == 0 {
		p.retention = 6 * time.Hour
	}
	p.topic = rng.IntN(3) == 0
	return p
}

const (
	objectNodes = 2
	// objectFaults is the offset of fault numbers in an object simulation.
	objectFaults = 5_000_000
	// objectPurposes is added to the purpose of each random source of an object simulation.
	objectPurposes = 40_000

	objectBucket = "bucket"

	// maxObjectSkew is the maximum error of a node's clock. It ensures that the ledger tolerates the difference between
	// two clocks.
	maxObjectSkew = 25 * time.Minute
)

// An observedObject is an object with its history and the deliveries of its events.
type observedObject struct {
	name    domain.ObjectName
	bucket  *objecttest.Bucket
	events  map[domain.ObjectRowID]*eventTally
	ordered []domain.ObjectRowID // ids of the rows, in the order of the events
}

// An eventTally counts the deliveries of an event.
type eventTally struct {
	stored  int // number of responses that report the event as stored
	known   int // number of responses that report the event as a duplicate
	unsure  int // number of deliveries with an unknown outcome
	repeats int // number of deliveries that may have been counted once more; see noteForgotten and noteResults
	isLost  bool
}

// An objectMessage is a message that reports events of objects.
type objectMessage struct {
	name    string
	reports []repository.ObjectReport
}

// hasObjects reports whether a seed has an object simulation.
func hasObjects(seed uint64) bool { return random.New(seed, objectPurposes+500).IntN(3) == 0 }

func newObjectSimulation(o *Options) (*objectSimulation, error) {
	base, err := newSimulation(o)
	if err != nil {
		return nil, err
	}
	sim := &objectSimulation{simulation: base, rng: random.New(o.Seed, objectPurposes+501), plan: newObjectPlan(random.New(o.Seed, objectPurposes+502)), source: memory.NewSource(objectBucket)}
	sim.clock.shift = time.Until(objecttest.FirstMoment.Add(time.Hour))
	sim.observer = base.work.checkers[containers.InvariantsObjects].(*objects.Observer)
	if sim.plan.retention > 0 {
		sim.observer.Forgets = func() (rows, dead time.Time) {
			latest := sim.clock.nextTime().Add(maxObjectSkew)
			return latest.Add(-sim.plan.retention), latest.Add(-domain.MinDeadRetention - time.Hour)
		}
	}
	base.env.stored, base.plan.hasCorruptor, base.plan.usesReceivers, base.FaultNumber = nil, false, false, objectFaults
	if base.Profile.LastStep = 60 + sim.rng.IntN(300); sim.plan.crawlsOnce() {
		base.Profile.LastStep += 400
	}
	sim.storeOptions = objectstore.Options{
		Shards: 1 + sim.rng.IntN(2), Limits: domain.ObjectLimits{Rows: 1 + sim.rng.IntN(4)}, Retries: []int{0, 0, 5}[sim.rng.IntN(3)],
		Retention: domain.ObjectRetention(sim.plan.retention), Topic: sim.plan.topic,
	}
	sim.observer.HasTopic = sim.plan.topic
	limit := 3
	if sim.plan.crawls { // enough objects for nodes to die during a crawl
		limit = 8
	}
	for i := range 1 + sim.rng.IntN(limit) {
		b, failure := sim.newObject(fmt.Sprint("key-", i))
		sim.buckets, err = append(sim.buckets, b), errors.Join(err, failure)
	}
	var reports []repository.ObjectReport
	for _, o := range sim.buckets {
		reports = append(reports, o.reportsOf(o.bucket.Events)...)
	}
	sim.messages = sim.mixMessages(reports)
	return sim, errors.Join(err, sim.provisionContainers(), base.Failure())
}

// newObject returns an object with a random history. If all times are distinct, its state does not
// depend on the order of delivery.
func (sim *objectSimulation) newObject(key string) (*observedObject, error) {
	name, err := domain.ParseObjectName(objectBucket, key)
	o := &observedObject{name: name, events: make(map[domain.ObjectRowID]*eventTally)}
	o.bucket = objecttest.RandomBucket(sim.rng.Rand, 12, sim.rng.IntN(2) == 0, time.Millisecond)
	for i := range o.bucket.Events {
		o.noteEvent(&o.bucket.Events[i])
	}
	sim.listObject(o)
	return o, err
}

// noteEvent adds an event to the history of the object, with its fields in the form that the store returns.
func (o *observedObject) noteEvent(e *domain.ObjectEvent) {
	e.Carrier.Message += o.name.Key()
	e.ETag = domain.QuoteETag(e.ETag)
	o.events[e.ID()] = &eventTally{}
	o.ordered = append(o.ordered, e.ID())
}

// reportsOf returns the reports for events of the object.
func (o *observedObject) reportsOf(events []domain.ObjectEvent) (reports []repository.ObjectReport) {
	for _, e := range events {
		reports = append(reports, repository.ObjectReport{Name: o.name, ObjectEvent: e})
	}
	return reports
}

// mixMessages distributes events to messages in random order. Some events occur twice, and some messages are repeated.
// In some simulations, mixMessages omits some of the events.
func (sim *objectSimulation) mixMessages(all []repository.ObjectReport) (messages []*objectMessage) {
	if sim.plan.loses {
		all = slices.DeleteFunc(all, func(r repository.ObjectReport) bool {
			isLost := sim.rng.IntN(4) == 0
			sim.findObject(r.Name).events[r.ID()].isLost = isLost
			return isLost
		})
	}
	sim.rng.Rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for len(all) > 0 {
		n := min(1+sim.rng.IntN(6), len(all))
		m := &objectMessage{name: fmt.Sprint("message-", len(sim.all)), reports: slices.Clone(all[:n])}
		if all = all[n:]; sim.rng.IntN(3) == 0 {
			m.reports = append(m.reports, m.reports[sim.rng.IntN(n)])
		}
		sim.all = append(sim.all, m)
		messages = append(messages, m)
	}
	for _, m := range slices.Clone(messages) {
		for range sim.rng.IntN(3) {
			messages = append(messages, m)
		}
	}
	sim.rng.Rand.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
	return messages
}

// provisionContainers creates the containers. No faults are injected into its requests.
func (sim *objectSimulation) provisionContainers() error {
	db, err := sim.connectCosmos()
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Provision(sim.ctx, objectstore.Containers())
}

// connectCosmos returns a connection to the Cosmos account into which no faults are injected.
func (sim *objectSimulation) connectCosmos() (*client.Database, error) {
	return client.Connect(client.Connection{Endpoint: withHTTPS(sim.env.engine.Endpoint()), Key: sim.env.engine.Key(), Transport: sim.env.engine.Transport()})
}

// runToEnd runs the simulation to its end, and returns the first violation.
func (sim *objectSimulation) runToEnd() error {
	for i := range objectNodes {
		sim.keepNodeRunning(i)
	}
	sim.background.Go(sim.runClients)
	isDone := func() bool { sim.mu.Lock(); defer sim.mu.Unlock(); return sim.work.isDone }
	err := sim.Run(isDone, func() error { sim.injectNodeFaults(); return nil })
	sim.isEnding.Store(true)
	sim.cancel()
	for i := range objectNodes {
		if n := sim.nodeAt(i); n != nil {
			n.kill()
		}
	}
	for _, line := range sim.env.httpTransports {
		line.cutOff()
	}
	sim.background.Wait()
	return err
}

// runClients delivers all messages, in one phase or two, and compares the stored objects with the bucket.
func (sim *objectSimulation) runClients() {
	sim.runPhase(0)
	if sim.plan.retention > 0 && sim.ctx.Err() == nil {
		sim.stopNodes(15 * 24 * time.Hour)
		sim.isResting.Store(false)
		sim.messages = sim.mixAgain()
		sim.runPhase(1)
	}
	if sim.plan.crawlsOnce() {
		p := &objectClient{baseClient: sim.newClient("crawler", objectPurposes+6000), sim: sim}
		p.crawlOnce()
	}
	if sim.ctx.Err() == nil {
		if err := sim.verifyObjects(); err != nil && sim.ctx.Err() == nil {
			sim.Fail(err)
		}
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.work.isDone = true
	sim.WakeUp()
}

// runPhase runs clients until all messages are delivered.
func (sim *objectSimulation) runPhase(n int) {
	use := uint64(objectPurposes + 1000 + 2000*n) //nolint:gosec // small
	sim.delivered, sim.changes = make(chan struct{}), sim.plan.changes
	if len(sim.messages)+sim.changes == 0 { // there is nothing to deliver
		close(sim.delivered)
	}
	var clients sync.WaitGroup
	for i := range 1 + sim.rng.IntN(4) {
		c := &objectCarrier{baseClient: sim.newClient(fmt.Sprint("carrier-", i), use+uint64(i)), sim: sim}
		clients.Go(c.deliverAll)
	}
	reader := &objectReader{baseClient: sim.newClient("reader", use+500), sim: sim}
	clients.Go(reader.readUntilDelivered)
	for i, task := range sim.clientTasks() {
		p := &objectClient{baseClient: sim.newClient(task.who, use+600+100*uint64(i)), sim: sim}
		clients.Go(func() { p.runTask(task) })
	}
	select {
	case <-sim.delivered:
	case <-sim.ctx.Done():
	}
	clients.Wait()
}

// stopNodes kills all nodes, waits until no late request of a node can arrive, and lets the time d pass.
func (sim *objectSimulation) stopNodes(d time.Duration) {
	sim.isResting.Store(true)
	for i := range objectNodes {
		if n := sim.nodeAt(i); n != nil {
			n.kill()
		}
	}
	const late = 5 * time.Minute
	for _ = clock.Sleep(sim.ctx, late); sim.calls.Load() > 0 && sim.ctx.Err() == nil; { // some calls may still wait for their timeout
		_ = clock.Sleep(sim.ctx, late)
	}
	sim.clock.advance(d)
}

// mixAgain returns some of the delivered messages, to be delivered again.
func (sim *objectSimulation) mixAgain() (messages []*objectMessage) {
	for _, m := range sim.all {
		if sim.rng.IntN(2) == 0 {
			messages = append(messages, m)
		}
	}
	return messages
}

// takeMessage returns the next message to deliver, or nil.
func (sim *objectSimulation) takeMessage() *objectMessage {
	sim.omu.Lock()
	defer sim.omu.Unlock()
	if len(sim.messages) == 0 {
		return nil
	}
	m := sim.messages[0]
	sim.messages = slices.Delete(sim.messages, 0, 1)
	sim.underway++
	return m
}

// putBack ends a delivery. If isDone is false, it queues the message again.
func (sim *objectSimulation) putBack(m *objectMessage, isDone bool) {
	sim.omu.Lock()
	defer sim.omu.Unlock()
	sim.underway--
	if !isDone {
		sim.messages = append(sim.messages, m)
	}
	sim.closeDelivered()
}

// closeDelivered closes delivered if all messages are delivered and all changes made. The caller holds omu.
func (sim *objectSimulation) closeDelivered() {
	if len(sim.messages)+sim.underway+sim.changes == 0 {
		close(sim.delivered)
	}
}

func (sim *objectSimulation) findObject(name domain.ObjectName) *observedObject {
	i := slices.IndexFunc(sim.buckets, func(o *observedObject) bool { return o.name == name })
	return sim.buckets[i]
}

// runObjects runs the object simulation of a seed in a synctest bubble.
func runObjects(o *Options) (r Result) {
	sim, err := newObjectSimulation(o)
	if err != nil {
		return Result{Err: err}
	}
	if err = sim.runToEnd(); err != nil {
		err = fmt.Errorf("objects: %w", err)
	}
	return sim.newResult(err)
}
