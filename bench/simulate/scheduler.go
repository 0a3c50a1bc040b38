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
	who  string // a node, a domain, an actor
	what string
	more string        // tells it from others with the same name
	goes func() string // lets it go on, and says what came of it

	// faults that may befall it instead.
	faults func() []fault

	// many says that there are many turns like this one, so that a fault befalls each
	// more rarely.
	many bool

	// isRare, if set, reports that there was hardly ever one like this.
	isRare func() bool

	arrival uint64
	late    time.Time // not before this

	// urgent, if set, reports that no time must pass before it.
	urgent func() bool
}

func (t *turn) isUrgent() bool { return t.urgent != nil && t.urgent() }

// A fault is what befalls a turn instead of what it waits for.
type fault struct {
	name string
	goes func() string
}

// A scheduler lets one thing happen at a time. Between two steps everything else
// is blocked, so what happens next is decided by the dice alone, and by what is
// waiting, in an order of its own that no goroutine has a say in.
type scheduler struct {
	began   time.Time
	order   dice // who is next
	mishaps dice // and what befalls it; of its own, so that a fault less changes little
	weather weather
	dropped map[int]bool // faults that do not happen, by number

	mu       sync.Mutex
	waiting  []*turn
	arrivals uint64
	paused   map[string]time.Time // who does not get a turn until then
	wake     chan struct{}        // holds one if something has come since the last look
	failure  error

	calm    bool // no faults any more
	steps   int
	faulted int
	numbers int   // of faults drawn, dropped ones too
	happen  []int // numbers of those that happened
	trace   trace

	counting  sync.Mutex // guards sometimes: two hubs may fail to start at the same time
	sometimes sometimes
}

// reached counts a rare state.
func (s *scheduler) reached(what string) {
	s.counting.Lock()
	defer s.counting.Unlock()
	s.sometimes.reached(what)
}

// A trace is what happened, in order.
type trace struct {
	keep  bool
	lines []string
	sum   uint64
}

func (t *trace) add(line string) {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%x %s", t.sum, line) // a hash takes everything
	t.sum = h.Sum64()
	if t.keep {
		t.lines = append(t.lines, line)
	}
}

func newScheduler(o *Options, w weather) *scheduler {
	s := &scheduler{
		began: time.Now(), order: newDice(o.Seed, 1), mishaps: newDice(o.Seed, 2), weather: w,
		dropped: make(map[int]bool), paused: make(map[string]time.Time), wake: make(chan struct{}, 1),
		sometimes: newSometimes(),
	}
	for _, n := range o.Drop {
		s.dropped[n] = true
	}
	s.trace.keep = o.Trace
	return s
}

// wait puts t into the line.
func (s *scheduler) wait(t *turn) {
	s.mu.Lock()
	s.arrivals++
	t.arrival = s.arrivals
	s.waiting = append(s.waiting, t)
	s.mu.Unlock()
	s.rouse()
}

func (s *scheduler) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// leave takes t out of the line, if it is still there.
func (s *scheduler) leave(t *turn) {
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

func (s *scheduler) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// idleLimit is how long nothing at all may happen.
const idleLimit = 30 * time.Minute

// run makes steps until done, or a failure. each is called after every step.
func (s *scheduler) run(done func() bool, each func() error) error {
	for {
		// Not synctest.Wait, to which a goroutine that waits for a mutex is a busy one:
		// Microsoft's client for Service Bus holds mutexes while it waits for the
		// namespace, and here the namespace waits for us.
		settle()
		if err := s.failed(); err != nil {
			return err
		}
		if done() {
			return nil
		}
		if s.hurry() {
			continue
		}
		t := s.next()
		if t == nil {
			if !s.idle() {
				return fmt.Errorf("nothing has happened for %s, and something was to", idleLimit)
			}
			continue
		}
		s.step(t)
		if err := each(); err != nil {
			return err
		}
	}
}

// idle lets time pass until something comes. It reports false if nothing does.
func (s *scheduler) idle() bool {
	s.mu.Lock()
	patience := idleLimit
	for _, t := range s.waiting { // those that are late, or paused
		patience = min(patience, max(time.Until(t.late), time.Until(s.paused[t.who])))
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

// hurry lets all go on that are urgent, and reports whether there were any. They are
// no steps of their own, unless something befalls them: that a client shakes hands
// with the bus is of no interest.
func (s *scheduler) hurry() bool {
	s.mu.Lock()
	s.sort()
	var urgent []*turn
	s.waiting = slices.DeleteFunc(s.waiting, func(t *turn) bool {
		if t.isUrgent() {
			urgent = append(urgent, t)
		}
		return t.isUrgent()
	})
	s.mu.Unlock()
	for _, t := range urgent {
		if f := s.mishap(t); f != nil {
			s.steps++
			s.tell(t.who + " " + t.what + " [" + f.name + "] → " + f.goes())
			continue
		}
		s.tell(t.who + " " + t.what + " → " + t.goes())
	}
	return len(urgent) > 0
}

// sort puts who waits into an order that no goroutine has a say in.
func (s *scheduler) sort() {
	slices.SortStableFunc(s.waiting, func(a, b *turn) int {
		return cmp.Or(strings.Compare(a.who, b.who), strings.Compare(a.what, b.what), strings.Compare(a.more, b.more), cmp.Compare(a.arrival, b.arrival))
	})
}

// next takes the turn that is to go out of the line, nil if there is none yet.
func (s *scheduler) next() *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.wake:
	default:
	}
	now := time.Now()
	ready := make([]int, 0, len(s.waiting))
	s.sort()
	for i, t := range s.waiting {
		if !t.late.After(now) && (s.calm || !s.paused[t.who].After(now)) {
			ready = append(ready, i)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	i := ready[s.order.n(len(ready))]
	t := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return t
}

// step lets t go on, or something else befall it.
func (s *scheduler) step(t *turn) {
	s.steps++
	s.calm = s.calm || s.steps > s.weather.lasts
	name, goes := "", t.goes
	if f := s.mishap(t); f != nil {
		name, goes = " ["+f.name+"]", f.goes
	}
	outcome := goes()
	s.tell(t.who + " " + t.what + name + " → " + outcome)
	if !s.calm && s.order.chance(s.weather.passes) {
		s.pass()
	}
}

func (s *scheduler) tell(line string) {
	s.trace.add(fmt.Sprintf("%d %s %s", s.steps, time.Since(s.began), line))
}

// mishap returns what befalls t, nil if nothing does.
func (s *scheduler) mishap(t *turn) *fault {
	if s.calm || t.faults == nil {
		return nil
	}
	isFirst := s.weather.firsts > 0 && t.isRare != nil && t.isRare()
	if isFirst && !s.mishaps.chance(s.weather.firsts) || !isFirst && (!s.mishaps.chance(s.weather.faults) || t.many && s.mishaps.n(15) > 0) {
		return nil
	}
	var possible []fault
	for _, f := range t.faults() {
		if s.weather.has(f.name) || f.name == s.weather.usual {
			possible = append(possible, f)
		}
	}
	if len(possible) == 0 {
		return nil
	}
	f := possible[s.mishaps.n(len(possible))]
	if i := slices.IndexFunc(possible, func(f fault) bool { return f.name == s.weather.usual }); i >= 0 && s.mishaps.n(2) == 0 {
		f = possible[i]
	}
	if !s.mayHappen() {
		return nil
	}
	return &f
}

// mayHappen numbers a fault, and reports whether it is one that happens.
func (s *scheduler) mayHappen() bool {
	s.numbers++
	if s.dropped[s.numbers] {
		return false
	}
	s.faulted++
	s.happen = append(s.happen, s.numbers)
	return true
}

// mayPass reports whether time may pass before the next turn.
func (s *scheduler) mayPass() bool {
	settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.waiting, (*turn).isUrgent)
}

// pass lets some time pass in which nobody who waits gets a turn.
func (s *scheduler) pass() {
	spans := [...]time.Duration{time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second, 6 * time.Second, 40 * time.Second}
	d := spans[min(s.order.n(len(spans)), s.order.n(len(spans)))]
	timer, began := time.NewTimer(d), time.Now()
	defer timer.Stop()
	for s.mayPass() {
		select {
		case <-timer.C:
			s.tell("passed " + d.String())
			return
		case <-s.wake:
		}
	}
	s.tell("passed " + time.Since(began).String())
}
