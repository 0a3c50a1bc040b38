package simulate

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/bench/simulate/truth/objects"
	"github.com/messagehub/messagehub/cosmos/client"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// An objectWorld is two nodes that store the events of objects on one account. The events are those of
// random buckets, each in a message that may be delivered again, in any order. Some seeds have one
// besides their other worlds.
type objectWorld struct {
	*world
	d        dice
	observer *objects.Observer
	options  objectstore.Options // of each node, without its clock and its randomness
	buckets  []*observedObject

	omu       sync.Mutex
	nodes     [objectNodes]*objectNode // nil: down
	starts    [objectNodes]int
	messages  []*objectMessage // to be delivered, some of them again
	underway  int              // messages
	delivered chan struct{}    // closed when nothing is left to deliver
}

const (
	objectNodes = 2
	// objectFaults is the number before the first fault of a world of objects.
	objectFaults = 5_000_000
	// objectUses is added to the use of each dice.
	objectUses = 40_000

	objectBucket = "bucket"
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
	l := &objectWorld{world: w, d: newDice(o.Seed, objectUses+501), delivered: make(chan struct{})}
	l.observer = w.judges[containers.TruthObjects].(*objects.Observer)
	w.shelf, w.plan.vandal, w.plan.receivers, w.numbers = nil, false, false, objectFaults
	w.weather.lasts = 60 + l.d.n(300)
	l.options = objectstore.Options{
		Shards: 1 + l.d.n(2), Limits: domain.ObjectLimits{Rows: 1 + l.d.n(4)}, Retries: []int{0, 0, 5}[l.d.n(3)],
	}
	for i := range 1 + l.d.n(3) {
		b, failure := l.newObject(fmt.Sprint("key-", i))
		l.buckets, err = append(l.buckets, b), errors.Join(err, failure)
	}
	l.mixMessages()
	return l, errors.Join(err, l.provision(), w.failed())
}

// newObject returns an object with a random history. With distinct times, its state does not depend on
// the order of delivery.
func (l *objectWorld) newObject(key string) (*observedObject, error) {
	name, err := domain.ParseObjectName(objectBucket, key)
	o := &observedObject{name: name, events: make(map[domain.ObjectRowID]*eventTally)}
	o.bucket = objecttest.RandomBucket(l.d.source, 12, l.d.n(2) == 0, time.Millisecond)
	for i := range o.bucket.Events {
		e := &o.bucket.Events[i]
		e.Carrier.Message += key
		o.events[e.ID()] = &eventTally{}
		o.ordered = append(o.ordered, e.ID())
	}
	return o, err
}

// mixMessages puts the events of all objects into messages, some of them twice, and has some messages
// come again.
func (l *objectWorld) mixMessages() {
	var all []repository.ObjectReport
	for _, o := range l.buckets {
		for _, e := range o.bucket.Events {
			all = append(all, repository.ObjectReport{Name: o.name, ObjectEvent: e})
		}
	}
	l.d.source.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for len(all) > 0 {
		n := min(1+l.d.n(6), len(all))
		m := &objectMessage{name: fmt.Sprint("message-", len(l.messages)), reports: slices.Clone(all[:n])}
		if all = all[n:]; l.d.n(3) == 0 {
			m.reports = append(m.reports, m.reports[l.d.n(n)])
		}
		l.messages = append(l.messages, m)
	}
	for _, m := range slices.Clone(l.messages) {
		for range l.d.n(3) {
			l.messages = append(l.messages, m)
		}
	}
	l.d.source.Shuffle(len(l.messages), func(i, j int) { l.messages[i], l.messages[j] = l.messages[j], l.messages[i] })
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

// direct has all messages delivered, and compares what is stored with the buckets.
func (l *objectWorld) direct() {
	for i := range 1 + l.d.n(4) {
		c := &objectCarrier{party: l.newParty(fmt.Sprint("carrier-", i), uint64(objectUses+1000+i)), l: l}
		l.ghosts.Go(c.deliverAll)
	}
	reader := &objectReader{party: l.newParty("reader", objectUses+1500), l: l}
	l.ghosts.Go(reader.readUntilDelivered)
	if len(l.messages) == 0 { // the buckets were left alone
		close(l.delivered)
	}
	select {
	case <-l.delivered:
	case <-l.ctx.Done():
	}
	if l.ctx.Err() == nil {
		if err := l.judgeObjects(); err != nil {
			l.fail(err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = true
	l.rouse()
}

// take returns a message to deliver, or nil if none is waiting.
func (l *objectWorld) take() *objectMessage {
	l.omu.Lock()
	defer l.omu.Unlock()
	if len(l.messages) == 0 {
		return nil
	}
	m := l.messages[0]
	l.messages = l.messages[1:]
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
	if len(l.messages)+l.underway == 0 {
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
