package simulate

import (
	"fmt"
	"net/http"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/history"
)

// An actorClient is one client of an actor. It peeks and dequeues.
type actorClient struct {
	baseClient
	name    string
	client  int // number of this client among all clients of the simulation
	idle    time.Duration
	givenUp []string // bundles whose Dequeue is postponed
}

func (sim *simulation) newActors() []*actorClient {
	var all []*actorClient
	for i := range sim.plan.recipients {
		for j := range sim.plan.clients {
			all = append(all, &actorClient{baseClient: sim.newClient(fmt.Sprintf("client-%d.%d", i, j), uint64(100+10*i+j)), name: actorName(i), client: 10 + 10*i + j})
		}
	}
	return all
}

// runUntil peeks and dequeues until finish is closed.
func (a *actorClient) runUntil(finish <-chan struct{}) {
	for a.sim.ctx.Err() == nil {
		select {
		case <-finish:
			return
		default:
		}
		if n := len(a.givenUp); n > 0 && (a.sim.FaultFree || a.rng.IntN(10) == 0) {
			id := a.givenUp[n-1]
			a.givenUp = a.givenUp[:n-1]
			a.dequeueBundle(id)
			continue
		}
		id, ok := a.peekBundle()
		switch {
		case !ok:
			a.idle = min(2*a.idle+time.Second, 20*time.Second)
			a.pause(time.Duration(a.rng.IntN(int(a.idle))))
			continue
		case !a.sim.FaultFree && a.rng.IntN(5) == 0: // the client fails and does not dequeue the bundle
			continue
		}
		a.idle = 0
		if a.sim.plan.hasOperators && a.rng.IntN(2) == 0 { // the client processes the bundle for so long that operators may assume that the bundle is stuck
			a.pause(time.Duration(a.rng.IntN(30)) * time.Second)
		}
		a.dequeueBundle(id)
	}
}

// peekBundle peeks, and returns the id of the bundle.
func (a *actorClient) peekBundle() (id string, ok bool) {
	path, group := "/v1/peek", ""
	if a.rng.IntN(4) == 0 {
		group = a.sim.plan.groups[a.rng.IntN(len(a.sim.plan.groups))]
		path += "/" + group
	}
	tick, came, shown := a.sim.work.mailboxes.nextTick(), history.Unknown, history.Bundle{}
	defer func() { a.sim.work.mailboxes.notePeek(a.client, tick, a.name, group, came, shown) }()
	if a.sim.plan.longPolls && a.rng.IntN(2) == 0 {
		path += fmt.Sprintf("?wait=%ds", a.rng.IntN(30))
	}
	began, frozen := a.sim.work.ledger.beginPeek(), a.sim.work.ledger.freezeNumber(a.name)
	r, err := a.call(a.sim.ctx, http.MethodGet, path, nil, "X-Actor-Id", a.name)
	if err != nil {
		return "", false
	}
	switch r.status {
	case http.StatusOK:
		a.sim.checkNotFrozen(a.name, frozen, "Peek")
		id = r.header["MessageId"][0] //nolint:staticcheck // the spelling of the original hub
		if err := a.sim.work.ledger.notePeeked(a.name, id, r, began, a.sim); err != nil {
			a.sim.Fail(err)
			return "", false
		}
		came, shown = history.Returned, a.sim.work.ledger.shownBundle(a.name, id)
		return id, true
	case http.StatusNoContent:
		came = history.None
	case http.StatusTooManyRequests:
	case http.StatusServiceUnavailable:
		switch why := problemName(r.body); why {
		case " no-answer":
			a.sim.MarkReached("a Peek was answered that the domain did not answer")
		case " domain-failed":
			a.sim.MarkReached("a Peek was answered that the domain failed")
		case " content-gone":
			a.sim.MarkReached("a Peek found that its content was deleted")
		case " frozen":
			a.sim.noteFrozenAnswer(a.name)
		}
	default:
		a.sim.Fail(fmt.Errorf("a Peek returned %d %s", r.status, r.body))
	}
	return "", false
}

// dequeueBundle repeats a Dequeue until a hub responds. Sometimes it stops after an attempt, and adds the bundle to
// givenUp, so that the bundle is dequeued later.
func (a *actorClient) dequeueBundle(id string) {
	for {
		if a.tryDequeue(id) {
			return
		}
		if a.rng.IntN(4) == 0 && !a.sim.FaultFree || !a.pause(time.Duration(a.rng.IntN(1000))*time.Millisecond) {
			a.givenUp = append(a.givenUp, id)
			return
		}
	}
}

// tryDequeue sends one Dequeue. isDone is true if the bundle needs no further Dequeue.
func (a *actorClient) tryDequeue(id string) (isDone bool) {
	a.sim.work.ledger.beginDequeue(a.name, id)
	frozen := a.sim.work.ledger.freezeNumber(a.name)
	tick, came := a.sim.work.mailboxes.nextTick(), history.Unknown
	r, err := a.call(a.sim.ctx, http.MethodDelete, "/v1/dequeue/"+id, nil, "X-Actor-Id", a.name)
	switch {
	case err != nil:
	case r.status == http.StatusOK:
		came = history.Done
	case r.status == http.StatusNotFound:
		came = history.NotFound
	}
	a.sim.work.mailboxes.noteDequeue(a.client, tick, a.name, id, came)
	switch {
	case err != nil:
		return false
	case r.status == http.StatusOK:
		a.sim.checkNotFrozen(a.name, frozen, "Dequeue")
		if err := a.sim.work.ledger.noteDequeued(a.name, id); err != nil {
			a.sim.Fail(err)
		}
		return true
	case r.status == http.StatusNotFound:
		if isKnown, isTaken := a.sim.work.ledger.orderState(a.name, id); !isKnown {
			return false // the outcome of an operator's order about the bundle is unknown
		} else if isTaken {
			a.sim.MarkReached("a bundle was dequeued after an operator had released it")
			return true
		}
		if !a.sim.work.ledger.canBeGone(a.name, id) {
			a.sim.Fail(fmt.Errorf("H7: bundle %s is open, but its Dequeue returned 404", id))
		}
		if err := a.sim.work.ledger.noteDequeued(a.name, id); err != nil {
			a.sim.Fail(err)
		}
		return true
	case r.status == http.StatusServiceUnavailable && problemName(r.body) == " frozen":
		a.sim.noteFrozenAnswer(a.name)
	case r.status != http.StatusTooManyRequests && r.status != http.StatusServiceUnavailable:
		a.sim.Fail(fmt.Errorf("a Dequeue returned %d %s", r.status, r.body))
		return true
	}
	return false
}
