package simulate

import (
	"fmt"
	"net/http"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/history"
)

// An actor is one client of a recipient: it peeks and dequeues.
type actor struct {
	party
	name   string
	client int // among all clients of the world
	idle   time.Duration
	open   []string // bundles whose Dequeue it has given up for now
}

func (w *world) actors() []*actor {
	var all []*actor
	for i := range w.plan.recipients {
		for j := range w.plan.clients {
			all = append(all, &actor{party: w.newParty(fmt.Sprintf("client-%d.%d", i, j), uint64(100+10*i+j)), name: actorName(i), client: 10 + 10*i + j})
		}
	}
	return all
}

// act peeks and dequeues until finish is closed.
func (a *actor) act(finish <-chan struct{}) {
	for a.w.ctx.Err() == nil {
		select {
		case <-finish:
			return
		default:
		}
		if n := len(a.open); n > 0 && (a.w.calm || a.d.n(10) == 0) {
			id := a.open[n-1]
			a.open = a.open[:n-1]
			a.dequeue(id)
			continue
		}
		id, ok := a.peek()
		switch {
		case !ok:
			a.idle = min(2*a.idle+time.Second, 20*time.Second)
			a.pause(time.Duration(a.d.n(int(a.idle))))
			continue
		case !a.w.calm && a.d.n(5) == 0: // it has forgotten what it got
			continue
		}
		a.idle = 0
		if a.w.plan.operators && a.d.n(2) == 0 { // it works on what it got; operators may think that it is stuck
			a.pause(time.Duration(a.d.n(30)) * time.Second)
		}
		a.dequeue(id)
	}
}

// peek fetches a bundle, and returns its id.
func (a *actor) peek() (id string, ok bool) {
	path, group := "/v1/peek", ""
	if a.d.n(4) == 0 {
		group = a.w.plan.groups[a.d.n(len(a.w.plan.groups))]
		path += "/" + group
	}
	tick, came, shown := a.w.mailboxes.now(), history.Unknown, history.Bundle{}
	defer func() { a.w.mailboxes.peeked(a.client, tick, a.name, group, came, shown) }()
	if a.w.plan.waits && a.d.n(2) == 0 {
		path += fmt.Sprintf("?wait=%ds", a.d.n(30))
	}
	began, frozen := a.w.ledger.peekBegins(), a.w.ledger.frozen(a.name)
	r, err := a.call(a.w.ctx, http.MethodGet, path, nil, "X-Actor-Id", a.name)
	if err != nil {
		return "", false
	}
	switch r.status {
	case http.StatusOK:
		a.w.isThawed(a.name, frozen, "Peek")
		id = r.header["MessageId"][0] //nolint:staticcheck // as the original spells it
		if err := a.w.ledger.peeked(a.name, id, r, began, a.w); err != nil {
			a.w.fail(err)
			return "", false
		}
		came, shown = history.Shown, a.w.ledger.shown(a.name, id)
		return id, true
	case http.StatusNoContent:
		came = history.None
	case http.StatusTooManyRequests:
	case http.StatusServiceUnavailable:
		switch why := problemOf(r.body); why {
		case " no-answer":
			a.w.reached("a Peek was told that the domain has not answered")
		case " domain-failed":
			a.w.reached("a Peek was told that the domain has failed")
		case " content-gone":
			a.w.reached("a Peek found that its content was deleted")
		case " frozen":
			a.w.isFrozen(a.name)
		}
	default:
		a.w.fail(fmt.Errorf("a Peek was answered %d %s", r.status, r.body))
	}
	return "", false
}

// dequeue confirms a bundle until it is told that this is done.
func (a *actor) dequeue(id string) {
	for {
		if a.tries(id) {
			return
		}
		if a.d.n(4) == 0 && !a.w.calm || !a.pause(time.Duration(a.d.n(1000))*time.Millisecond) {
			a.open = append(a.open, id)
			return
		}
	}
}

// tries to confirm a bundle, and reports whether that is over.
func (a *actor) tries(id string) (isOver bool) {
	a.w.ledger.dequeueBegins(a.name, id)
	frozen := a.w.ledger.frozen(a.name)
	tick, came := a.w.mailboxes.now(), history.Unknown
	r, err := a.call(a.w.ctx, http.MethodDelete, "/v1/dequeue/"+id, nil, "X-Actor-Id", a.name)
	switch {
	case err != nil:
	case r.status == http.StatusOK:
		came = history.Done
	case r.status == http.StatusNotFound:
		came = history.NotFound
	}
	a.w.mailboxes.dequeued(a.client, tick, a.name, id, came)
	switch {
	case err != nil:
		return false
	case r.status == http.StatusOK:
		a.w.isThawed(a.name, frozen, "Dequeue")
		if err := a.w.ledger.dequeued(a.name, id); err != nil {
			a.w.fail(err)
		}
		return true
	case r.status == http.StatusNotFound:
		if isKnown, isTaken := a.w.ledger.orders(a.name, id); !isKnown {
			return false // an operator has given an order, and does not know yet what came of it
		} else if isTaken {
			a.w.reached("a bundle that an operator had taken back was to be confirmed")
			return true
		}
		if !a.w.ledger.mayBeGone(a.name, id) {
			a.w.fail(fmt.Errorf("H7: bundle %s is open, and its Dequeue was answered 404", id))
		}
		if err := a.w.ledger.dequeued(a.name, id); err != nil {
			a.w.fail(err)
		}
		return true
	case r.status == http.StatusServiceUnavailable && problemOf(r.body) == " frozen":
		a.w.isFrozen(a.name)
	case r.status != http.StatusTooManyRequests && r.status != http.StatusServiceUnavailable:
		a.w.fail(fmt.Errorf("a Dequeue was answered %d %s", r.status, r.body))
		return true
	}
	return false
}
