package simulate

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/cosmos/client"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A pushWorld is nodes that share the shards of one account, those who publish, and receivers
// that are called. Some seeds have one besides their world of mailboxes.
type pushWorld struct {
	*world
	d        dice
	uses     uint64 // is added to the use of each dice
	observer *push.Observer
	content  repository.Content
	stream   domain.StreamName // to which senders publish
	segments int64             // bytes of a segment
	attempts int               // limit for the attempts of a delivery
	course   func() error      // lets all parties act, until nothing is left to deliver
	broker   *brokerWorld      // that it belongs to; may be nil

	subscriptions *subscriptionWorld // that it belongs to; may be nil
	watches       *watchWorld        // that it belongs to; may be nil
	failSafe      failSafe
	unfinished    func() string // describes what is left besides deliveries, or ""; may be nil

	pmu       sync.Mutex
	nodes     [pushNodes]*pushNode
	lifes     [pushNodes]int
	receivers map[string]*pushReceiver // by cursor
	addresses map[string]*pushReceiver
	accepted  int // messages
}

const pushNodes = 2

// pushFaults is the number before the first fault of a push world: those of the world of
// mailboxes have lower ones.
const pushFaults = 1_000_000

// hasPush reports whether a seed has a push world.
func hasPush(seed uint64) bool { return newDice(seed, 500).n(3) == 0 }

// newPushWorld returns a world with other dice for each number of uses, and with numbers of faults
// above faults.
func newPushWorld(o *Options, uses uint64, faults int) (*pushWorld, error) {
	w, err := newWorld(o)
	if err != nil {
		return nil, err
	}
	p := &pushWorld{
		world: w, d: newDice(o.Seed, 501+uses), uses: uses, attempts: len(pushDelays), content: memory.NewContent(),
		receivers: make(map[string]*pushReceiver), addresses: make(map[string]*pushReceiver),
	}
	p.course, p.failSafe = p.publishAll, newFailSafe(newDice(o.Seed, 503+uses))
	if p.failSafe.hasOff() {
		w.weather.kills = []int{0, 100}[p.failSafe.d.n(2)] // so that a node that survives runs for long
	}
	w.shelf, w.plan.vandal, w.plan.receivers, w.numbers = nil, false, false, faults
	w.weather.lasts = 150 + p.d.n(600)
	p.segments = []int64{0, 0, 2000}[p.d.n(3)]
	p.observer = w.judges[containers.InvariantsPush].(*push.Observer)
	p.observer.SetWitness(push.Witness{
		Matches: p.matches, Accepted: p.hasAccepted, Calls: p.calls,
		Budget: func(string) int { return p.attempts }, Reached: w.reached,
	})
	p.stream, err = domain.ParseTopic("prices")
	if err == nil {
		err = p.provision()
	}
	return p, errors.Join(err, w.failed())
}

// provision creates the containers, before anything goes wrong.
func (p *pushWorld) provision() error {
	db, err := client.Connect(client.Connection{Endpoint: secure(p.engine.Endpoint()), Key: p.engine.Key(), Transport: p.engine.Transport()})
	if err != nil {
		return err
	}
	defer db.Close()
	store := pushstore.New(db, p.content, pushstore.Options{Random: p.d.next})
	_, err = store.Provision(p.ctx, client.ProvisionOptions{})
	return err
}

// simulate lets the world run to its end, and returns what was wrong with it.
func (p *pushWorld) simulate() error {
	for i := range pushNodes {
		p.begins(i)
	}
	p.ghosts.Go(p.direct)
	isDone := func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.done }
	err := p.run(isDone, func() error { p.mishapsOfNodes(); return nil })
	p.ending.Store(true)
	p.cancel()
	for i := range pushNodes {
		if n := p.node(i); n != nil {
			n.kill()
		}
	}
	for _, l := range p.httpLines {
		l.cut()
	}
	for _, r := range p.receivers {
		r.close()
	}
	p.ghosts.Wait()
	return err
}

// direct is the course of events: receivers subscribe, messages are published, and then
// everything has to come to its end.
func (p *pushWorld) direct() {
	err := p.course()
	if err != nil && p.ctx.Err() == nil {
		p.fail(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	p.rouse()
}

func (p *pushWorld) publishAll() error {
	owner := p.newParty("owner", 510)
	for i := range 2 + p.d.n(3) {
		if err := p.subscribes(&owner, i); err != nil {
			return err
		}
	}
	var all sync.WaitGroup
	failures := make([]error, 1+p.d.n(3))
	for i := range failures {
		sender := &pushSender{party: p.newParty(fmt.Sprint("sender-", i), uint64(520+i)), p: p}
		p.ghosts.Add(1)
		all.Go(func() { defer p.ghosts.Done(); failures[i] = sender.sends() })
	}
	var refused error
	if hasReplays(p.o.Seed) {
		operator := &pushOperator{party: p.newParty("operator", 530), p: p}
		p.ghosts.Add(1)
		all.Go(func() { defer p.ghosts.Done(); refused = operator.replays() })
	}
	all.Wait()
	if err := errors.Join(errors.Join(failures...), refused); err != nil {
		return err
	}
	if err := p.ends(&owner, func() error { return nil }); err != nil || p.ctx.Err() != nil {
		return err
	}
	if total := p.published(p.stream); int64(p.accepted) > total {
		return fmt.Errorf("P1: %d messages were accepted, and %d published", p.accepted, total)
	}
	return p.judge()
}

// runTogether runs functions at the same time, and returns their errors.
func (p *pushWorld) runTogether(acts ...func() error) error {
	var all sync.WaitGroup
	failures := make([]error, len(acts))
	for i, act := range acts {
		p.ghosts.Add(1)
		all.Go(func() { defer p.ghosts.Done(); failures[i] = act() })
	}
	all.Wait()
	return errors.Join(failures...)
}

// published returns the number of entries of a stream.
func (p *pushWorld) published(stream domain.StreamName) (total int64) {
	for _, n := range p.observer.Published(stream.String()) {
		total += n
	}
	return total
}

// ends calls each from time to time until nothing is left to deliver. A clock that was set back
// makes retries late by as much, up to two hours here.
func (p *pushWorld) ends(owner *party, each func() error) error {
	const limit, every = 2*time.Hour + 20*time.Minute, 3 * time.Second
	began := time.Time{}
	for {
		if !owner.pause(every) {
			return nil
		}
		if _, ok := owner.turn("looks at what is left"); !ok {
			return nil
		}
		if err := errors.Join(p.recoverCursors(owner.d), each()); err != nil {
			return err
		}
		left, isCalm := p.left(), p.isCalm()
		switch {
		case left == "" && isCalm:
			return nil
		case isCalm && began.IsZero():
			began = time.Now()
		case isCalm && time.Since(began) > limit:
			return fmt.Errorf("P1: %v after the last fault, %s", limit, left)
		}
	}
}

// left describes the deliveries that are outstanding, or "".
func (p *pushWorld) left() string {
	if p.unfinished != nil {
		if left := p.unfinished(); left != "" {
			return left
		}
	}
	for _, id := range p.observer.Cursors() {
		outstanding, at := p.observer.Outstanding(id)
		if len(outstanding) > 0 {
			return fmt.Sprintf("cursor %s has %v", id, outstanding)
		}
		if followed, requested, isRunning := p.observer.Replaying(id); followed < requested || isRunning {
			return fmt.Sprintf("cursor %s has followed %d of %d requests to replay, or replays", id, followed, requested)
		}
		if p.observer.IsRetired(id) {
			continue
		}
		for priority, n := range p.observer.Published(p.streamOf(id)) {
			if at[priority] < n {
				return fmt.Sprintf("cursor %s has taken %d of %d entries of priority %d", id, at[priority], n, priority)
			}
		}
	}
	return ""
}

// streamOf returns the name of the stream of a cursor.
func (p *pushWorld) streamOf(cursor string) string {
	p.pmu.Lock()
	defer p.pmu.Unlock()
	return p.receivers[cursor].stream.String()
}

// entryOf returns the entry of a stream with an id.
func entryOf(stream domain.StreamName, e domain.EntryID) push.Entry {
	return push.Entry{Stream: stream.String(), Priority: e.Priority, Number: e.Number}
}

// judge compares what receivers got with what was published.
func (p *pushWorld) judge() error {
	p.pmu.Lock()
	defer p.pmu.Unlock()
	for id, r := range p.receivers {
		begin := p.observer.Begin(id)
		for priority, n := range p.observer.Published(r.stream.String()) {
			for number := begin[priority]; number < n; number++ {
				e := push.Entry{Stream: r.stream.String(), Priority: priority, Number: number}
				if !r.isDeleted && r.matches(e) && !r.accepted[e] && !r.fetched[e] && !p.observer.Dead(id, e) {
					return fmt.Errorf("P1: the receiver of %s has never accepted %s, and it is no dead letter", id, e)
				}
			}
		}
		attempts, losses := p.observer.Attempts(id)
		limit := int64(r.concurrency * losses)
		if r.isDeleted {
			limit += int64(r.concurrency) // results are dropped that come after the deliveries were cancelled
		}
		if n := r.begun - attempts; n > limit {
			return fmt.Errorf("P5: %d calls of %s have left no trace, want at most %d: its owner lost it %d times", n, id, limit, losses)
		}
		_, requests, _ := p.observer.Replaying(id)
		if limit := 2 * (domain.MaxClaims + 1) * (1 + requests); r.ends > limit {
			return fmt.Errorf("P9: a delivery of %s has ended %d nodes, want at most %d", id, r.ends, limit)
		}
		if limit := r.concurrency * pushNodes; r.peak > limit {
			return fmt.Errorf("P11: the receiver of %s had %d calls at the same time, want at most %d", id, r.peak, limit)
		}
	}
	return nil
}

// mishapsOfNodes are those that happen to no single request.
func (p *pushWorld) mishapsOfNodes() {
	n := p.node(p.mishaps.n(pushNodes))
	if p.isCalm() || n == nil {
		return
	}
	happens := func(rate int) bool {
		return rate > 0 && p.mishaps.n(100_000) < rate && p.mayHappen()
	}
	switch {
	case p.beginOutage() && p.mayHappen():
		p.tell(n.who + " is killed, and stays down")
		n.staysDown = true // before its end
		n.kill()
		p.reached("a hub was killed")
	case happens(2 * p.weather.kills):
		p.tell(n.who + " is killed")
		n.kill()
		p.reached("a hub was killed")
	case happens(2 * p.weather.stops):
		p.tell(n.who + " is told to stop")
		n.end()
		p.reached("a hub was told to stop, and started again")
	case happens(2 * p.weather.pauses):
		d := time.Duration(1+p.mishaps.n(90)) * time.Second
		p.tell(n.who + " is paused for " + d.String())
		p.mutePause(n.who, d)
		p.reached("a hub was paused")
		if n.underway.Load() > 0 {
			p.reached("a node was paused while it called")
		}
	case happens(p.weather.storms):
		d := time.Duration(1+p.mishaps.n(60)) * time.Second
		p.storm, p.hot = time.Now().Add(d), ""
		p.tell("the account throttles everybody for " + d.String())
		p.reached("the account throttled everybody for a while")
	case happens(p.weather.jumps):
		d := time.Duration(p.mishaps.n(7200)-3600) * time.Second
		p.tell(n.who + " has its clock moved by " + d.String())
		n.skew.Store(int64(d))
		p.reached("a clock jumped")
	}
}

// simulatePush lets the push world of a seed run, in a bubble.
func simulatePush(o *Options) (r Result) {
	p, err := newPushWorld(o, 0, pushFaults)
	if err != nil {
		return Result{Err: err}
	}
	return p.result(wrapPush(p.simulate()))
}

// result returns what came of a world that ended with err.
func (p *pushWorld) result(err error) Result {
	return Result{
		Err: errors.Join(err, p.close()), Steps: p.steps, Faulted: p.faulted, Happened: p.happen,
		Sum: p.trace.sum, Trace: p.trace.lines, Sometimes: p.sometimes, Passed: time.Since(p.began),
	}
}

func wrapPush(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("push: %w", err)
}
