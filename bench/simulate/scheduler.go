package simulate

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"
)

// A turn is something that waits to be let go on: a request or its answer, a
// frame on its way to the bus or back, a party that wants to do the next thing.
type turn struct {
	who     string // a node, a domain, an actor
	what    string
	detail  string        // tells it from others with the same name
	proceed func() string // lets it go on, and says what came of it

	// faults that may befall it instead.
	faults func() []fault

	// many says that there are many turns like this one, so that a fault befalls each
	// more rarely.
	isFrequent bool

	// isRare, if set, reports that there was hardly ever one like this.
	isRare func() bool

	arrival   uint64
	notBefore time.Time // not before this

	// urgent, if set, reports that no time must pass before it.
	urgent func() bool
}

func (t *turn) isUrgent() bool { return t.urgent != nil && t.urgent() }

// A fault is what befalls a turn instead of what it waits for.
type fault struct {
	name   string
	inject func() string
}

// A scheduler lets one thing happen at a time. Between two steps everything else
// is blocked, so what happens next is decided by the dice alone, and by what is
// waiting, in an order of its own that no goroutine has a say in.
type scheduler struct {
	began         time.Time
	orderRNG      rng // who is next
	faultRNG      rng // and what befalls it; of its own, so that a fault less changes little
	profile       faultProfile
	droppedFaults map[int]bool // faults that do not happen, by number

	mu       sync.Mutex
	waiting  []*turn
	arrivals uint64
	paused   map[string]time.Time // who does not get a turn until then
	wake     chan struct{}        // holds one if something has come since the last look
	failure  error

	faultFree   bool // no faults any more
	steps       int
	faulted     int
	faultNumber int   // of faults drawn, dropped ones too
	happened    []int // numbers of those that happened
	trace       trace

	counting sync.Mutex // guards sometimes: two hubs may fail to start at the same time
	coverage coverage
}

// markReached counts a rare state.
func (s *scheduler) markReached(what string) {
	s.counting.Lock()
	defer s.counting.Unlock()
	s.coverage.count(what)
}

// A trace is what happened, in order.
type trace struct {
	keep  bool
	lines []string
	sum   uint64
}

func (t *trace) addLine(line string) {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%x %s", t.sum, line) // a hash takes everything
	t.sum = h.Sum64()
	if t.keep {
		t.lines = append(t.lines, line)
	}
}

func newScheduler(o *Options, w faultProfile) *scheduler {
	s := &scheduler{
		began: time.Now(), orderRNG: newRNG(o.Seed, 1), faultRNG: newRNG(o.Seed, 2), profile: w,
		droppedFaults: make(map[int]bool), paused: make(map[string]time.Time), wake: make(chan struct{}, 1),
		coverage: newCoverage(),
	}
	for _, n := range o.Drop {
		s.droppedFaults[n] = true
	}
	s.trace.keep = o.Trace
	return s
}

// enqueue puts t into the line.
func (s *scheduler) enqueue(t *turn) {
	s.mu.Lock()
	s.arrivals++
	t.arrival = s.arrivals
	s.waiting = append(s.waiting, t)
	s.mu.Unlock()
	s.wakeUp()
}

func (s *scheduler) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// remove takes t out of the line, if it is still there.
func (s *scheduler) remove(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, t); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
}

// fail ends the simulation with the first error.
func (s *scheduler) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = err
	}
}

func (s *scheduler) firstFailure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// idleLimit is how long nothing at all may happen.
const idleLimit = 30 * time.Minute

// runSteps makes steps until done, or a failure. each is called after every step.
func (s *scheduler) runSteps(done func() bool, each func() error) error {
	for {
		// Not synctest.Wait, to which a goroutine that waits for a mutex is a busy one:
		// Microsoft's client for Service Bus holds mutexes while it waits for the
		// namespace, and here the namespace waits for us.
		settle()
		if err := s.firstFailure(); err != nil {
			return err
		}
		if done() {
			return nil
		}
		if s.runUrgent() {
			continue
		}
		t := s.takeNext()
		if t == nil {
			if !s.waitForWork() {
				return fmt.Errorf("nothing has happened for %s, and something was to", idleLimit)
			}
			continue
		}
		s.runStep(t)
		if err := each(); err != nil {
			return err
		}
	}
}

// waitForWork lets time pass until something comes. It reports false if nothing does.
func (s *scheduler) waitForWork() bool {
	s.mu.Lock()
	patience := idleLimit
	for _, t := range s.waiting { // those that are late, or paused
		patience = min(patience, max(time.Until(t.notBefore), time.Until(s.paused[t.who])))
	}
	isEmpty := len(s.waiting) == 0
	s.mu.Unlock()
	timer := time.NewTimer(max(patience, time.Millisecond))
	defer timer.Stop()
	select {
	case <-s.wake:
		return true
	case <-timer.C:
		return !isEmpty
	}
}

// runUrgent lets all go on that are urgent, and reports whether there were any. They are
// no steps of their own, unless something befalls them: that a client shakes hands
// with the bus is of no interest.
func (s *scheduler) runUrgent() bool {
	s.mu.Lock()
	s.sortWaiting()
	var urgent []*turn
	s.waiting = slices.DeleteFunc(s.waiting, func(t *turn) bool {
		if t.isUrgent() {
			urgent = append(urgent, t)
		}
		return t.isUrgent()
	})
	s.mu.Unlock()
	for _, t := range urgent {
		if f := s.drawFault(t); f != nil {
			s.steps++
			s.traceLine(t.who + " " + t.what + " [" + f.name + "] → " + f.inject())
			continue
		}
		s.traceLine(t.who + " " + t.what + " → " + t.proceed())
	}
	return len(urgent) > 0
}

// sortWaiting puts who waits into an order that no goroutine has a say in.
func (s *scheduler) sortWaiting() {
	slices.SortStableFunc(s.waiting, func(a, b *turn) int {
		return cmp.Or(strings.Compare(a.who, b.who), strings.Compare(a.what, b.what), strings.Compare(a.detail, b.detail), cmp.Compare(a.arrival, b.arrival))
	})
}

// takeNext takes the turn that is to go out of the line, nil if there is none yet.
func (s *scheduler) takeNext() *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.wake:
	default:
	}
	now := time.Now()
	ready := make([]int, 0, len(s.waiting))
	s.sortWaiting()
	for i, t := range s.waiting {
		if !t.notBefore.After(now) && (s.faultFree || !s.paused[t.who].After(now)) {
			ready = append(ready, i)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	i := ready[s.orderRNG.intN(len(ready))]
	t := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return t
}

// runStep lets t go on, or something else befall it.
func (s *scheduler) runStep(t *turn) {
	s.steps++
	s.faultFree = s.faultFree || s.steps > s.profile.lastStep
	name, goes := "", t.proceed
	if f := s.drawFault(t); f != nil {
		name, goes = " ["+f.name+"]", f.inject
	}
	outcome := goes()
	s.traceLine(t.who + " " + t.what + name + " → " + outcome)
	if !s.faultFree && s.orderRNG.drawPermille(s.profile.timePasses) {
		s.passTime()
	}
}

func (s *scheduler) traceLine(line string) {
	s.trace.addLine(fmt.Sprintf("%d %s %s", s.steps, time.Since(s.began), line))
}

// drawFault returns what befalls t, nil if nothing does.
func (s *scheduler) drawFault(t *turn) *fault {
	if s.faultFree || t.faults == nil {
		return nil
	}
	isFirst := s.profile.rareRequests > 0 && t.isRare != nil && t.isRare()
	if isFirst && !s.faultRNG.drawPermille(s.profile.rareRequests) || !isFirst && (!s.faultRNG.drawPermille(s.profile.turnFaults) || t.isFrequent && s.faultRNG.intN(15) > 0) {
		return nil
	}
	var possible []fault
	for _, f := range t.faults() {
		if s.profile.hasKind(f.name) || f.name == s.profile.frequentFault {
			possible = append(possible, f)
		}
	}
	if len(possible) == 0 {
		return nil
	}
	f := possible[s.faultRNG.intN(len(possible))]
	if i := slices.IndexFunc(possible, func(f fault) bool { return f.name == s.profile.frequentFault }); i >= 0 && s.faultRNG.intN(2) == 0 {
		f = possible[i]
	}
	if !s.injects() {
		return nil
	}
	return &f
}

// injects numbers a fault, and reports whether it is one that happens.
func (s *scheduler) injects() bool {
	s.faultNumber++
	if s.droppedFaults[s.faultNumber] {
		return false
	}
	s.faulted++
	s.happened = append(s.happened, s.faultNumber)
	return true
}

// canTimePass reports whether time may pass before the next turn.
func (s *scheduler) canTimePass() bool {
	settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.waiting, (*turn).isUrgent)
}

// passTime lets some time pass in which nobody who waits gets a turn.
func (s *scheduler) passTime() {
	spans := [...]time.Duration{time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second, 6 * time.Second, 40 * time.Second}
	d := spans[min(s.orderRNG.intN(len(spans)), s.orderRNG.intN(len(spans)))]
	timer, began := time.NewTimer(d), time.Now()
	defer timer.Stop()
	for s.canTimePass() {
		select {
		case <-timer.C:
			s.traceLine("passed " + d.String())
			return
		case <-s.wake:
		}
	}
	s.traceLine("passed " + time.Since(began).String())
}
