// Package scheduler decides which step of a simulation comes next, and whether a fault replaces it.
//
// Every process and client enqueues a [Turn] for each action and waits until the scheduler chooses that turn. When all
// other goroutines in the bubble of testing/synctest are blocked, [Scheduler.Run] draws one of the ready turns, and
// runs its action or injects one of its faults in place of the action. A [Profile] says which faults happen and how
// often. Each fault has a number, so that a failed simulation can be repeated without some of its faults.
//
// The same seed takes the same steps if package seeded controls the choices of the Go runtime. The names of turns
// and faults decide the order of turns and which faults happen: a changed name changes the simulation of a seed.
//
// After a failure or a panic, the waiting turns remain enqueued; the caller ends the processes.
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

// A Turn is an action that waits to be chosen: a request or its response, a frame to or from the bus, or the
// next action of a client.
type Turn struct {
	Who     string // the process or client
	What    string
	Detail  string        // text that distinguishes turns with the same Who and What
	Proceed func() string // function that runs the action and describes the outcome

	// Faults returns the faults that may replace the action. It may be nil.
	Faults func() []Fault

	// IsFrequent is true if there are many turns of this kind. A frequent turn is less likely to get a fault.
	IsFrequent bool

	// IsRare reports whether few turns of this kind have happened in this simulation. It may be nil.
	IsRare func() bool

	arrival   uint64
	NotBefore time.Time // earliest time at which the turn may be chosen

	// Urgent reports whether the turn must happen before simulated time advances. It may be nil.
	Urgent func() bool
}

func (t *Turn) isUrgent() bool { return t.Urgent != nil && t.Urgent() }

// A Fault is an outcome that replaces the action of a turn.
type Fault struct {
	Name   string
	Inject func() string
}

// A Scheduler takes one step at a time. Between two steps all other goroutines are blocked, so the next step depends
// only on the random sources and the waiting turns. The turns are sorted, so that the order in which goroutines
// enqueued them does not matter.
type Scheduler struct {
	Began         time.Time
	orderRNG      random.Source // source for the choice of the next turn
	FaultRNG      random.Source // source for the choice of faults; separate from orderRNG, so that dropping a fault changes few other choices
	Profile       Profile
	droppedFaults map[int]bool // numbers of the faults to omit

	mu       sync.Mutex
	waiting  []*Turn
	arrivals uint64
	paused   map[string]time.Time // paused processes, each with the time at which its pause ends
	wake     chan struct{}        // receives a value when a turn was added
	failure  error

	FaultFree   bool // true when no further faults happen
	Steps       int
	Faulted     int
	FaultNumber int   // number of the last fault that was drawn; omitted faults count too
	Happened    []int // numbers of the injected faults
	Trace       Trace

	counting sync.Mutex // guards Coverage, because two hubs that start concurrently may both fail
	Coverage coverage.Counts
}

// MarkReached counts that the simulation reached a rare state.
func (s *Scheduler) MarkReached(what string) {
	s.counting.Lock()
	defer s.counting.Unlock()
	s.Coverage.Count(what)
}

// A Trace lists the steps of a simulation.
type Trace struct {
	keep  bool
	Lines []string
	Sum   uint64
}

func (t *Trace) addLine(line string) {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%x %s", t.Sum, line) // writing to a hash never fails
	t.Sum = h.Sum64()
	if t.keep {
		t.Lines = append(t.Lines, line)
	}
}

// New returns the scheduler of a seed. It omits the faults with the numbers in drop.
func New(seed uint64, drop []int, keepTrace bool, profile Profile) *Scheduler {
	s := &Scheduler{
		Began: time.Now(), orderRNG: random.New(seed, 1), FaultRNG: random.New(seed, 2), Profile: profile,
		droppedFaults: make(map[int]bool), paused: make(map[string]time.Time), wake: make(chan struct{}, 1),
		Coverage: coverage.New(),
	}
	for _, n := range drop {
		s.droppedFaults[n] = true
	}
	s.Trace.keep = keepTrace
	return s
}

// Enqueue adds a turn.
func (s *Scheduler) Enqueue(t *Turn) {
	s.mu.Lock()
	s.arrivals++
	t.arrival = s.arrivals
	s.waiting = append(s.waiting, t)
	s.mu.Unlock()
	s.WakeUp()
}

// WakeUp makes Run check the waiting turns again.
func (s *Scheduler) WakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Remove removes a waiting turn.
func (s *Scheduler) Remove(t *Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, t); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
}

// Fail ends the simulation. The first error is its result.
func (s *Scheduler) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = err
	}
}

// Failure returns the first error, or nil.
func (s *Scheduler) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// idleLimit is the longest time without a step.
const idleLimit = 30 * time.Minute

// Run takes steps until done returns true or the simulation fails. After every step, Run calls the function each.
func (s *Scheduler) Run(done func() bool, each func() error) error {
	for {
		// synctest.Wait would not return while a goroutine waits for a mutex. Azure's client for Service Bus holds
		// mutexes while it waits for the namespace, and the simulated namespace waits for this loop.
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
				return fmt.Errorf("no step in %s, although clients have not finished", idleLimit)
			}
			continue
		}
		s.runStep(t)
		if err := each(); err != nil {
			return err
		}
	}
}

// waitForWork lets time pass until a turn is added or becomes ready. It returns false if no turn is waiting and no turn
// is added within idleLimit.
func (s *Scheduler) waitForWork() bool {
	s.mu.Lock()
	patience := idleLimit
	for _, t := range s.waiting { // a turn may have to wait for its NotBefore, or for the end of its process's pause
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

// runUrgent takes all urgent turns, and reports whether there were any. An urgent turn, mostly a part of a handshake
// with the bus, counts as a step only if a fault replaces it.
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
			name := s.nameFault(f)
			s.Log(t.Who + " " + t.What + name + " → " + f.Inject())
			continue
		}
		s.Log(t.Who + " " + t.What + " → " + t.Proceed())
	}
	return len(urgent) > 0
}

// sortWaiting sorts the turns, so that the order in which goroutines enqueued them does not matter.
func (s *Scheduler) sortWaiting() {
	slices.SortStableFunc(s.waiting, func(a, b *Turn) int {
		return cmp.Or(strings.Compare(a.Who, b.Who), strings.Compare(a.What, b.What), strings.Compare(a.Detail, b.Detail), cmp.Compare(a.arrival, b.arrival))
	})
}

// takeNext removes a random ready turn and returns it, or nil if none is ready.
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

// runStep runs the action of t, or injects a fault in its place.
func (s *Scheduler) runStep(t *Turn) {
	s.Steps++
	s.FaultFree = s.FaultFree || s.Steps > s.Profile.LastStep
	name, goes := "", t.Proceed
	if f := s.drawFault(t); f != nil {
		name, goes = s.nameFault(f), f.Inject
	}
	outcome := goes()
	s.Log(t.Who + " " + t.What + name + " → " + outcome)
	if !s.FaultFree && s.orderRNG.Permille(s.Profile.TimePasses) {
		s.passTime()
	}
}

// Log adds a line to the trace.
func (s *Scheduler) Log(line string) {
	s.Trace.addLine(fmt.Sprintf("%d %s %s", s.Steps, time.Since(s.Began), line))
}

// LogFault adds a line about the fault that began last.
func (s *Scheduler) LogFault(line string) { s.Log(s.AddNumber(line)) }

// AddNumber appends the number of the fault that began last to a text for the trace.
func (s *Scheduler) AddNumber(text string) string {
	return fmt.Sprintf("%s [#%d]", text, s.FaultNumber)
}

// nameFault returns the name and the number of f, which began last. The caller must call it before it injects f, because
// the injection may begin another fault.
func (s *Scheduler) nameFault(f *Fault) string {
	return fmt.Sprintf(" [%s #%d]", f.Name, s.FaultNumber)
}

// drawFault returns the fault that replaces t, or nil.
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
	if !s.BeginFault() {
		return nil
	}
	return &f
}

// BeginFault assigns the next number to a fault. It returns false if the fault with this number must be left out.
func (s *Scheduler) BeginFault() bool {
	s.FaultNumber++
	if s.droppedFaults[s.FaultNumber] {
		return false
	}
	s.Faulted++
	s.Happened = append(s.Happened, s.FaultNumber)
	return true
}

// canTimePass reports whether time may pass: it may if no turn is urgent.
func (s *Scheduler) canTimePass() bool {
	settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.waiting, (*Turn).isUrgent)
}

// passTime lets simulated time pass without a turn.
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

// SetFaultFree stops all faults if isFree is true. Otherwise it allows faults in the next steps, for the number of
// steps in the profile.
func (s *Scheduler) SetFaultFree(isFree bool) {
	s.mu.Lock()
	if s.FaultFree = isFree; !isFree {
		s.Profile.LastStep += s.Steps
	}
	s.mu.Unlock()
	s.WakeUp()
}

// ResumeFaults allows faults in the given number of next steps.
func (s *Scheduler) ResumeFaults(steps int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.FaultFree, s.Profile.LastStep = false, s.Steps+steps
}

// IsFaultFree reports whether no further faults happen.
func (s *Scheduler) IsFaultFree() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.FaultFree
}

// Pause makes the scheduler choose no turn of a process for the duration d.
func (s *Scheduler) Pause(who string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused[who] = time.Now().Add(d)
}
