package bus

import (
	"container/heap"
	"time"
)

// A deadline is a function that runs at a time.
type deadline struct {
	at    time.Time
	run   func()
	order uint64 // determines the order of deadlines with the same time
	index int    // index in the heap; -1 if the deadline is not in the heap
}

// deadlines is a heap with the earliest deadline first.
type deadlines []*deadline

func (d deadlines) Len() int { return len(d) }

func (d deadlines) Less(i, j int) bool {
	return d[i].at.Before(d[j].at) || d[i].at.Equal(d[j].at) && d[i].order < d[j].order
}

func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

func (d *deadlines) Push(x any) {
	it := x.(*deadline)
	it.index = len(*d)
	*d = append(*d, it)
}

func (d *deadlines) Pop() any {
	last := len(*d) - 1
	it := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	it.index = -1
	return it
}

func (b *Bus) addDeadline(at time.Time, run func()) *deadline {
	b.order++
	d := &deadline{at: at, run: run, order: b.order}
	heap.Push(&b.deadlines, d)
	return d
}

// moveDeadline changes the time of a deadline. A deadline that has already run is scheduled again.
func (b *Bus) moveDeadline(d *deadline, at time.Time) {
	b.order++
	d.at, d.order = at, b.order
	if d.index < 0 {
		heap.Push(&b.deadlines, d)
	} else {
		heap.Fix(&b.deadlines, d.index)
	}
}

// cancelDeadline cancels a deadline, which may be nil.
func (b *Bus) cancelDeadline(d *deadline) {
	if d != nil && d.index >= 0 {
		heap.Remove(&b.deadlines, d.index)
	}
}

// catchUp runs the deadlines that are due, but no deadline that is added during the call. So a deadline that
// reschedules itself runs again only after the lock was released.
func (b *Bus) catchUp() {
	now, newest := b.clock.Now(), b.order
	for len(b.deadlines) > 0 && !b.deadlines[0].at.After(now) && b.deadlines[0].order <= newest {
		heap.Pop(&b.deadlines).(*deadline).run()
	}
}

// setTimer sets a timer for the earliest deadline. If a timer already fires earlier, setTimer does nothing; it is
// called again when that timer fires.
func (b *Bus) setTimer() {
	if len(b.deadlines) == 0 || b.closed {
		return
	}
	at := b.deadlines[0].at
	if b.timer != nil && !b.timerAt.After(at) {
		return
	}
	b.stopTimer()
	b.timerAt = at
	b.timers.Add(1)
	var mine Timer
	mine = b.clock.AfterFunc(max(0, at.Sub(b.clock.Now())), func() {
		defer b.timers.Done()
		b.lockAndCatchUp()
		if b.timer == mine {
			b.timer = nil
		}
		b.scheduleAndUnlock()
	})
	b.timer = mine
}

func (b *Bus) stopTimer() {
	if b.timer != nil && b.timer.Stop() {
		b.timers.Done()
	}
	b.timer = nil
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
