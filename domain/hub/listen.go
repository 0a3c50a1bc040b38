package hub

import (
	"context"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// An actor that finds nothing may listen for something rather than ask again and
// again. What this node saves wakes it at once, and costs the store nothing. What
// other nodes save it learns by looking at the actor's watermark every few seconds:
// one read, of the cheapest kind there is. Where reads may be old, the Peek that
// follows news may not see them yet; so news are told again at the next look, which
// costs a Peek only if the first has found nothing. The first look of all has nothing
// to compare with, and is told once: a Listener that hears nothing shall stay cheap.

// A Listener hears of events for an actor.
type Listener struct {
	hub    *Hub
	actor  domain.ActorID
	groups []domain.Group

	woken     chan struct{}   // holds one
	looks     int             // at the watermark, since it was woken
	watermark domain.Sequence // as it was seen last; -1: never
	news      bool            // were told since the last look, or by it
}

// Listen begins to listen for events for actor in groups; none means all of them.
// Whatever is saved from then on will be heard, so the caller looks for data once
// more before it waits. It fails with Busy if too many listen already. The caller
// closes the Listener, and uses it in one goroutine.
func (h *Hub) Listen(actor domain.ActorID, groups []domain.Group) (*Listener, error) {
	if len(groups) == 0 {
		groups = h.opts.Groups.All()
	}
	l := &Listener{hub: h, actor: actor, groups: groups, woken: make(chan struct{}, 1), watermark: -1}
	if err := h.listeners.add(l, h.opts.Listeners, h.opts.ListenersPerActor); err != nil {
		return nil, err
	}
	return l, nil
}

// Wait returns nil when there may be something, and the error of ctx once that has
// ended. It may be called again and again.
func (l *Listener) Wait(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		timer := time.NewTimer(l.hub.opts.LookAgain(l.looks))
		select {
		case <-l.woken:
			timer.Stop()
			l.looks, l.news = 0, true // a store whose reads are old may show only soon what has come
			return nil
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		watermark, err := l.hub.events.Watermark(ctx, l.actor)
		if err != nil {
			return ctx.Err() // unless it has ended, the Peek that follows will meet the trouble, and tell
		}
		l.looks++
		first, changed, again := l.watermark < 0, watermark != l.watermark, l.news
		l.watermark, l.news = watermark, changed && !first
		if changed || again {
			return nil
		}
	}
}

// Close gives the place back.
func (l *Listener) Close() { l.hub.listeners.remove(l) }

// lookAgain is about how long a Listener waits before it looks for the n-th time
// whether another node has saved something: 2, 4, 8 and then 10 seconds.
func lookAgain(n int) time.Duration {
	const most = 10 * time.Second
	return min(2*time.Second<<min(n, 3), most)
}

// around returns d, give or take a quarter.
func around(d time.Duration, random func() uint64) time.Duration {
	return d - d/4 + time.Duration(random()%uint64(max(d/2, 1))) //nolint:gosec // positive
}

// listeners are those who listen on this node.
type listeners struct {
	mu sync.Mutex
	of map[domain.ActorID][]*Listener
	n  int
}

func (ls *listeners) add(l *Listener, most, perActor int) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	switch {
	case ls.n >= most:
		return domain.Errorf(domain.Busy, "too many requests wait for data already; peek without waiting")
	case len(ls.of[l.actor]) >= perActor:
		return domain.Errorf(domain.Busy, "%d requests of actor %s wait for data already; let them", perActor, l.actor)
	}
	if ls.of == nil {
		ls.of = make(map[domain.ActorID][]*Listener)
	}
	ls.of[l.actor] = append(ls.of[l.actor], l)
	ls.n++
	return nil
}

func (ls *listeners) remove(l *Listener) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	all := ls.of[l.actor]
	for i := range all {
		if all[i] == l {
			all[i] = all[len(all)-1]
			ls.of[l.actor] = all[:len(all)-1]
			ls.n--
			break
		}
	}
	if len(ls.of[l.actor]) == 0 {
		delete(ls.of, l.actor)
	}
}

// wake tells those who listen for events of one recipient that some have come.
func (h *Hub) wake(events []domain.Event) {
	ls := &h.listeners
	ls.mu.Lock()
	defer ls.mu.Unlock()
	all := ls.of[events[0].Recipient]
	if len(all) == 0 {
		return
	}
	came := make(map[domain.Group]bool)
	for i := range events {
		if group, err := h.opts.Groups.Of(events[i].Origin); err == nil {
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

// wakeActor tells those who listen for events of an actor, in whatever group, that
// there may be some.
func (h *Hub) wakeActor(actor domain.ActorID) {
	ls := &h.listeners
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.of[actor] {
		l.wake()
	}
}

func (l *Listener) wake() {
	select {
	case l.woken <- struct{}{}:
	default: // it is awake already
	}
}
