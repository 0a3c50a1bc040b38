package hub

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// An actor that finds no data can wait for events instead of polling. An event that is saved on this node wakes the
// Listener immediately, without a read. For events saved on other nodes, the Listener reads the actor's watermark every
// few seconds, which is the cheapest read.
//
// If reads may be stale, the Peek after a notification may not find the events. Therefore the Listener notifies a
// second time at its next look. The first look notifies only once, because it has no earlier watermark to compare with;
// this makes idle Listeners cheap.

// A Listener is notified of events for an actor. Its first Wait needs a place. Places are limited for each actor, for
// all actors without a mailbox, and in total, because otherwise requests for invented actors could occupy all places.
type Listener struct {
	hub    *Hub
	actor  domain.ActorID
	groups []domain.Group
	place  listenerPlace // guarded by hub.listeners.mu

	mu        sync.Mutex
	notify    func()          // function passed to Notify, until it is called; otherwise nil
	timer     *time.Timer     // fires when Notify must read the watermark next
	pending   bool            // true if events arrived after the last Wait or Notify
	woken     chan struct{}   // wakes Wait, which creates it when needed, because most Listeners do not; capacity 1
	looks     int             // number of reads of the watermark since the last notification
	watermark domain.Sequence // last watermark that was read, or -1
	news      bool            // true if the last look, or an event after it, has notified
}

// A listenerPlace is the kind of place that a Listener occupies.
type listenerPlace int

const (
	noPlace       listenerPlace = iota
	ordinaryPlace               // ordinaryPlace is for an actor with a mailbox
	newcomerPlace               // newcomerPlace is for an actor without a mailbox; there are Listeners/newcomerShare of them
)

const newcomerShare = 10

// Listen returns a Listener for events of actor in groups; no groups means all. It is notified of events that are saved
// after Listen returns, so the caller must peek once more before waiting. One goroutine must use the Listener and close
// it.
func (h *Hub) Listen(actor domain.ActorID, groups []domain.Group) *Listener {
	if len(groups) == 0 {
		groups = h.opts.Groups.All()
	}
	l := &Listener{hub: h, actor: actor, groups: groups, watermark: -1}
	h.listeners.add(l)
	return l
}

// TakePlace occupies a place until Close. hasMailbox tells whether events were ever saved for the actor; a Peek that
// fails with ErrNoMailbox shows that none were. When the actor gets a mailbox, a second call changes the kind of place.
// TakePlace fails with Busy if no place is free.
func (l *Listener) TakePlace(hasMailbox bool) error {
	want := ordinaryPlace
	if !hasMailbox {
		want = newcomerPlace
	}
	opts := &l.hub.opts
	return l.hub.listeners.takePlace(l, want, opts.Listeners, max(1, opts.Listeners/newcomerShare), opts.ListenersPerActor)
}

// Wait waits until there may be new events, and returns nil. If ctx ends first, it returns the error of ctx. It may be
// called repeatedly.
func (l *Listener) Wait(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		woken := l.beginWait()
		timer := time.NewTimer(l.hub.opts.LookAgain(l.looks))
		select {
		case <-woken:
			timer.Stop()
			l.endWait()
			return nil
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		watermark, err := l.hub.events.Watermark(ctx, l.actor)
		if err != nil {
			return ctx.Err() // if ctx has not ended, the next Peek fails with the same error and reports it
		}
		if l.observeWatermark(watermark) {
			return nil
		}
	}
}

// Notify calls notify once, when there may be new events. Unlike Wait, it needs no goroutine. notify must not block or
// use the Listener, and may be called before Notify returns. After ctx has ended, Notify no longer reads the store.
func (l *Listener) Notify(ctx context.Context, notify func()) {
	l.mu.Lock()
	isPending := l.pending
	if isPending {
		l.pending = false
		l.restartLooks()
	} else {
		l.notify = notify
		l.timer = time.AfterFunc(l.hub.opts.LookAgain(l.looks), func() { l.checkStore(ctx) })
	}
	l.mu.Unlock()
	if isPending {
		notify()
	}
}

// beginWait returns the channel on which Wait is woken.
func (l *Listener) beginWait() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.woken == nil {
		l.woken = make(chan struct{}, 1)
	}
	if l.pending {
		select {
		case l.woken <- struct{}{}:
		default:
		}
	}
	return l.woken
}

// endWait records that Wait was woken.
func (l *Listener) endWait() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = false
	l.restartLooks()
}

// StopNotify cancels Notify, unless its function has been called.
func (l *Listener) StopNotify() { l.takeNotify() }

// takeNotify removes and returns the function passed to Notify, so that it is called only once.
func (l *Listener) takeNotify() (notify func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if notify = l.notify; notify != nil {
		l.notify = nil
		l.timer.Stop()
	}
	return notify
}

// checkStore reads the watermark. If there may be new events, it calls the function of Notify; otherwise it schedules
// the next look.
func (l *Listener) checkStore(ctx context.Context) {
	if !l.beginLook() {
		return
	}
	defer l.hub.looks.Done()
	watermark, err := l.hub.events.Watermark(ctx, l.actor)
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	again := l.notify != nil && err == nil && !l.observeWatermark(watermark)
	if again {
		l.timer.Reset(l.hub.opts.LookAgain(l.looks))
	}
	l.mu.Unlock()
	if again {
		return
	}
	if notify := l.takeNotify(); notify != nil {
		notify()
	}
}

// beginLook adds a look to Hub.looks, for which Hub.Close waits. It returns false if Notify was stopped.
func (l *Listener) beginLook() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.notify == nil {
		return false
	}
	l.hub.looks.Add(1)
	return true
}

// observeWatermark records the watermark that was read. It reports whether there may be new events.
func (l *Listener) observeWatermark(watermark domain.Sequence) bool {
	l.looks++
	first, changed, again := l.watermark < 0, watermark != l.watermark, l.news
	l.watermark, l.news = watermark, changed && !first
	return changed || again
}

// restartLooks makes the next pauses short, because after new events the next looks may find more.
func (l *Listener) restartLooks() { l.looks, l.news = 0, true }

// Close releases the place. Further calls have no effect.
func (l *Listener) Close() {
	l.StopNotify()
	l.hub.listeners.remove(l)
}

// recheckDelay returns approximately how long a Listener waits before look n: 2, 4, 8 and then 10 seconds.
func recheckDelay(n int) time.Duration {
	const limit = 10 * time.Second
	return min(2*time.Second<<min(n, 3), limit)
}

// withJitter randomly changes d by up to a quarter.
func withJitter(d time.Duration, random func() uint64) time.Duration {
	return d - d/4 + time.Duration(random()%uint64(max(d/2, 1))) //nolint:gosec // positive
}

// listeners contains the Listeners of this node.
type listeners struct {
	mu        sync.Mutex
	of        map[domain.ActorID]*actorListeners
	places    int // number of occupied places
	newcomers int // number of places that actors without a mailbox occupy
}

// actorListeners contains the Listeners of one actor, at least one.
type actorListeners struct {
	all    []*Listener
	places int
}

func (ls *listeners) add(l *Listener) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.of == nil {
		ls.of = make(map[domain.ActorID]*actorListeners)
	}
	own := ls.of[l.actor]
	if own == nil {
		own = &actorListeners{}
		ls.of[l.actor] = own
	}
	own.all = append(own.all, l)
}

func (ls *listeners) takePlace(l *Listener, want listenerPlace, limit, newcomerLimit, actorLimit int) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	own := ls.of[l.actor]
	switch {
	case l.place == want, l.place == ordinaryPlace: // keep the place: mailboxes are never removed, so hasMailbox may come from a stale read
		return nil
	case want == newcomerPlace && ls.newcomers >= newcomerLimit:
		return domain.Errorf(domain.Busy, "too many Peeks of actors that never had data wait on this node; peek without wait")
	case l.place == noPlace && ls.places >= limit:
		return domain.Errorf(domain.Busy, "too many Peeks wait on this node; peek without wait")
	case l.place == noPlace && own.places >= actorLimit:
		return domain.Errorf(domain.Busy, "%d Peeks of actor %s wait on this node, which is the maximum; wait until one of them ends, or peek without wait", actorLimit, l.actor)
	}
	ls.leavePlace(l, own)
	l.place = want
	ls.places++
	own.places++
	if want == newcomerPlace {
		ls.newcomers++
	}
	return nil
}

func (ls *listeners) leavePlace(l *Listener, own *actorListeners) {
	switch l.place {
	case noPlace:
		return
	case newcomerPlace:
		ls.newcomers--
	case ordinaryPlace:
	}
	ls.places--
	own.places--
	l.place = noPlace
}

func (ls *listeners) remove(l *Listener) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	own := ls.of[l.actor]
	if own == nil {
		return // the Listener was already closed
	}
	ls.leavePlace(l, own)
	last := len(own.all) - 1
	if i := slices.Index(own.all, l); i >= 0 {
		own.all[i], own.all[last] = own.all[last], nil
		own.all = own.all[:last]
	}
	if len(own.all) == 0 {
		delete(ls.of, l.actor)
	}
}

// listenersOf returns the Listeners of actor. The caller must hold mu.
func (ls *listeners) listenersOf(actor domain.ActorID) []*Listener {
	if own := ls.of[actor]; own != nil {
		return own.all
	}
	return nil
}

// wakeListeners wakes the Listeners of the recipient of events. All events must have the same recipient.
func (h *Hub) wakeListeners(events []domain.Event) {
	ls := &h.listeners
	ls.mu.Lock()
	defer ls.mu.Unlock()
	all := ls.listenersOf(events[0].Recipient)
	if len(all) == 0 {
		return
	}
	came := make(map[domain.Group]bool)
	for i := range events {
		if group, err := h.opts.Groups.GroupOf(events[i].Origin); err == nil {
			came[group] = true
		}
	}
	for _, l := range all {
		for _, group := range l.groups {
			if came[group] {
				l.wake()
			}
		}
	}
}

// wakeActor wakes all Listeners of an actor, in every group.
func (h *Hub) wakeActor(actor domain.ActorID) {
	ls := &h.listeners
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.listenersOf(actor) {
		l.wake()
	}
}

func (l *Listener) wake() {
	l.mu.Lock()
	notify := l.notify
	if notify != nil {
		l.notify = nil
		l.timer.Stop()
		l.restartLooks()
	} else {
		l.pending = true
		select {
		case l.woken <- struct{}{}: // wakes a Wait; without one, woken is nil
		default: // woken is nil, or already contains a signal
		}
	}
	l.mu.Unlock()
	if notify != nil {
		notify()
	}
}
