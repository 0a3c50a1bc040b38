package scheduler

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/coverage"
	"github.com/messagehub/messagehub/bench/simulate/random"
)

// A Turn is something that waits to be let go on: a request or its answer, a
// frame on its way to the bus or back, a party that wants to do the next thing.
type Turn struct {
	Who     string // a node, a domain, an actor
	What    string
	Detail  string        // tells it from others with the same name
	Proceed func() string // lets it go on, and says what came of it

	// faults that may befall it instead.
	Faults func() []Fault

	// many says that there are many turns like this one, so that a fault befalls each
	// more rarely.
	IsFrequent bool

	// isRare, if set, reports that there was hardly ever one like this.
	IsRare func() bool

	arrival   uint64
	NotBefore time.Time // not before this

	// urgent, if set, reports that no time must pass before it.
	Urgent func() bool
}

func (t *Turn) isUrgent() bool { return t.Urgent != nil && t.Urgent() }

// A Fault is what befalls a turn instead of what it waits for.
type Fault struct {
	Name   string
	Inject func() string
}

// A Scheduler lets one thing happen at a time. Between two steps everything else
// is blocked, so what happens next is decided by the dice alone, and by what is
// waiting, in an order of its own that no goroutine has a say in.
type Scheduler struct {
	Began         time.Time
	orderRNG      random.Source // who is next
	FaultRNG      random.Source // and what befalls it; of its own, so that a fault less changes little
	Profile       Profile
	droppedFaults map[int]bool // faults that do not happen, by number

	mu       sync.Mutex
	waiting  []*Turn
	arrivals uint64
	paused   map[string]time.Time // who does not get a turn until then
	wake     chan struct{}        // holds one if something has come since the last look
	failure  error

	FaultFree   bool // no faults any more
	Steps       int
	Faulted     int
	FaultNumber int   // of faults drawn, dropped ones too
	Happened    []int // numbers of those that happened
	Trace       Trace

	counting sync.Mutex // guards sometimes: two hubs may fail to start at the same time
	Coverage coverage.Counts
}

// MarkReached counts a rare state.
func (s *Scheduler) MarkReached(what string) {
	s.counting.Lock()
	defer s.counting.Unlock()
	s.Coverage.Count(what)
}

// A Trace is what happened, in order.
type Trace struct {
	keep  bool
	Lines []string
	Sum   uint64
}

func (t *Trace) addLine(line string) {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%x %s", t.Sum, line) // a hash takes everything
	t.Sum = h.Sum64()
	if t.keep {
		t.Lines = append(t.Lines, line)
	}
}

func New(seed uint64, drop []int, keepTrace bool, profile Profile) *Scheduler {
	s := &Scheduler{
		Began: time.Now(), orderRNG: random.NewSource(seed, 1), FaultRNG: random.NewSource(seed, 2), Profile: profile,
		droppedFaults: make(map[int]bool), paused: make(map[string]time.Time), wake: make(chan struct{}, 1),
		Coverage: coverage.NewCounts(),
	}
	for _, n := range drop {
		s.droppedFaults[n] = true
	}
	s.Trace.keep = keepTrace
	return s
}

// Enqueue puts t into the line.
func (s *Scheduler) Enqueue(t *Turn) {
	s.mu.Lock()
	s.arrivals++
	t.arrival = s.arrivals
	s.waiting = append(s.waiting, t)
	s.mu.Unlock()
	s.WakeUp()
}

func (s *Scheduler) WakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Remove takes t out of the line, if it is still there.
func (s *Scheduler) Remove(t *Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, t); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
}

// Fail ends the simulation with the first error.
func (s *Scheduler) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = err
	}
}

func (s *Scheduler) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// idleLimit is how long nothing at all may happen.
const idleLimit = 30 * time.Minute

// Run makes steps until done, or a failure. each is called after every step.
func (s *Scheduler) Run(done func() bool, each func() error) error {
	for {
		// Not synctest.Wait, to which a goroutine that waits for a mutex is a busy one:
		// Microsoft's client for Service Bus holds mutexes while it waits for the
		// namespace, and here the namespace waits for us.
		settle()
		if err := s.Failure(); err != nil {
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
func (s *Scheduler) waitForWork() bool {
	s.mu.Lock()
	patience := idleLimit
	for _, t := range s.waiting { // those that are late, or paused
		patience = min(patience, max(time.Until(t.NotBefore), time.Until(s.paused[t.Who])))
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
func (s *Scheduler) runUrgent() bool {
	s.mu.Lock()
	s.sortWaiting()
	var urgent []*Turn
	s.waiting = slices.DeleteFunc(s.waiting, func(t *Turn) bool {
		if t.isUrgent() {
			urgent = append(urgent, t)
		}
		return t.isUrgent()
	})
	s.mu.Unlock()
	for _, t := range urgent {
		if f := s.drawFault(t); f != nil {
			s.Steps++
			s.Log(t.Who + " " + t.What + " [" + f.Name + "] → " + f.Inject())
			continue
		}
		s.Log(t.Who + " " + t.What + " → " + t.Proceed())
	}
	return len(urgent) > 0
}

// sortWaiting puts who waits into an order that no goroutine has a say in.
func (s *Scheduler) sortWaiting() {
	slices.SortStableFunc(s.waiting, func(a, b *Turn) int {
		return cmp.Or(strings.Compare(a.Who, b.Who), strings.Compare(a.What, b.What), strings.Compare(a.Detail, b.Detail), cmp.Compare(a.arrival, b.arrival))
	})
}

// takeNext takes the turn that is to go out of the line, nil if there is none yet.
func (s *Scheduler) takeNext() *Turn {
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
		if !t.NotBefore.After(now) && (s.FaultFree || !s.paused[t.Who].After(now)) {
			ready = append(ready, i)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	i := ready[s.orderRNG.IntN(len(ready))]
	t := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return t
}

// runStep lets t go on, or something else befall it.
func (s *Scheduler) runStep(t *Turn) {
	s.Steps++
	s.FaultFree = s.FaultFree || s.Steps > s.Profile.LastStep
	name, goes := "", t.Proceed
	if f := s.drawFault(t); f != nil {
		name, goes = " ["+f.Name+"]", f.Inject
	}
	outcome := goes()
	s.Log(t.Who + " " + t.What + name + " → " + outcome)
	if !s.FaultFree && s.orderRNG.Permille(s.Profile.TimePasses) {
		s.passTime()
	}
}

func (s *Scheduler) Log(line string) {
	s.Trace.addLine(fmt.Sprintf("%d %s %s", s.Steps, time.Since(s.Began), line))
}

// drawFault returns what befalls t, nil if nothing does.
func (s *Scheduler) drawFault(t *Turn) *Fault {
	if s.FaultFree || t.Faults == nil {
		return nil
	}
	isFirst := s.Profile.RareRequests > 0 && t.IsRare != nil && t.IsRare()
	if isFirst && !s.FaultRNG.Permille(s.Profile.RareRequests) || !isFirst && (!s.FaultRNG.Permille(s.Profile.TurnFaults) || t.IsFrequent && s.FaultRNG.IntN(15) > 0) {
		return nil
	}
	var possible []Fault
	for _, f := range t.Faults() {
		if s.Profile.hasKind(f.Name) || f.Name == s.Profile.FrequentFault {
			possible = append(possible, f)
		}
	}
	if len(possible) == 0 {
		return nil
	}
	f := possible[s.FaultRNG.IntN(len(possible))]
	if i := slices.IndexFunc(possible, func(f Fault) bool { return f.Name == s.Profile.FrequentFault }); i >= 0 && s.FaultRNG.IntN(2) == 0 {
		f = possible[i]
	}
	if !s.Injects() {
		return nil
	}
	return &f
}

// Injects numbers a fault, and reports whether it is one that happens.
func (s *Scheduler) Injects() bool {
	s.FaultNumber++
	if s.droppedFaults[s.FaultNumber] {
		return false
	}
	s.Faulted++
	s.Happened = append(s.Happened, s.FaultNumber)
	return true
}

// canTimePass reports whether time may pass before the next turn.
func (s *Scheduler) canTimePass() bool {
	settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.waiting, (*Turn).isUrgent)
}

// passTime lets some time pass in which nobody who waits gets a turn.
func (s *Scheduler) passTime() {
	spans := [...]time.Duration{time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second, 6 * time.Second, 40 * time.Second}
	d := spans[min(s.orderRNG.IntN(len(spans)), s.orderRNG.IntN(len(spans)))]
	timer, began := time.NewTimer(d), time.Now()
	defer timer.Stop()
	for s.canTimePass() {
		select {
		case <-timer.C:
			s.Log("passed " + d.String())
			return
		case <-s.wake:
		}
	}
	s.Log("passed " + time.Since(began).String())
}

// SetFaultFree ends all faults, or lets them happen again for as many steps as the profile says.
func (s *Scheduler) SetFaultFree(isFree bool) {
	s.mu.Lock()
	if s.FaultFree = isFree; !isFree {
		s.Profile.LastStep += s.Steps
	}
	s.mu.Unlock()
	s.WakeUp()
}

// ResumeFaults lets faults happen again, for a number of steps.
func (s *Scheduler) ResumeFaults(steps int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.FaultFree, s.Profile.LastStep = false, s.Steps+steps
}

// IsFaultFree reports whether the last fault has happened.
func (s *Scheduler) IsFaultFree() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.FaultFree
}

// Pause gives a process no turn for a while.
func (s *Scheduler) Pause(who string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused[who] = time.Now().Add(d)
}
