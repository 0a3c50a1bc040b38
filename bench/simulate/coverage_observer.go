package simulate

import (
	"maps"
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/bench/simulate/steps"
	"github.com/messagehub/messagehub/cosmos/faulty"
)

// A coverageObserver counts the rare states that the hubs' requests reach. It is notified of every request that an
// account executed.
type coverageObserver struct {
	sim *simulation

	intentOwner  map[string]string // hub that reserved the intent, by recipient
	lostWrites   map[string]string // write whose response was lost, by hub
	gateWriter   map[string]string // hub that last wrote the gate, by recipient
	hintsPending map[string]bool   // true if the hub closed a bundle and has not written the hints after it, by hub

	unsureCommit map[string]string // hub that committed a Save but received no response, by recipient

	flushing map[string]bool // true if the hub wrote the page of a tail and has not written the head, by hub

	sweepStarts chan struct{} // receives a value when a sweep is about to remove documents
}

func newCoverageObserver(sim *simulation) *coverageObserver {
	return &coverageObserver{
		sim: sim, intentOwner: make(map[string]string), lostWrites: make(map[string]string), gateWriter: make(map[string]string),
		hintsPending: make(map[string]bool), unsureCommit: make(map[string]string),
		flushing: make(map[string]bool), sweepStarts: make(chan struct{}, 1),
	}
}

// observeRequest updates the rare states after an account executed a request with the given status. f determines
// whether the sender receives the response.
func (v *coverageObserver) observeRequest(x *httpExchange, status int, f faulty.Fault) {
	key, _, _ := strings.Cut(strings.Trim(x.req.Header.Get("x-ms-documentdb-partitionkey"), `[]"`), "|")
	name, who := steps.Name(x.what), x.transport.who
	written := status < http.StatusMultiStatus
	refused := status == http.StatusConflict || status == http.StatusPreconditionFailed || status == http.StatusMultiStatus
	if x.isRead {
		if name == steps.ReadHead && v.unsureCommit[key] == who && status < http.StatusMultiStatus && f == faulty.None {
			delete(v.unsureCommit, key)
		}
		if strings.HasSuffix(x.req.URL.Path, "/filter-cabinets") && status == http.StatusOK && f == faulty.None {
			v.sim.MarkReached("a hub read the filter of a recipient")
		}
		return
	}
	if x.transport.dead.Load() && written {
		v.sim.MarkReached("a write of a dead hub arrived")
	}
	if written && (f.IsAfter() || x.req.Context().Err() != nil) {
		v.lostWrites[who] = x.detail + x.what
		if name == steps.Commit || name == steps.Reserve {
			v.sim.MarkReached("a commit was carried out, and its answer was lost")
			v.unsureCommit[key] = who
		}
		if name == steps.Commit && v.intentOwner[key] == "" {
			v.sim.MarkReached("a small Save was carried out, and its answer was lost")
		}
		if name == steps.Settle {
			v.sim.MarkReached("a settlement was carried out, and its answer was lost")
		}
		if isObjectIngest(name) {
			v.sim.MarkReached("events of objects were stored, and the answer was lost")
		}
		if name == steps.Dequeue {
			v.sim.MarkReached("a Dequeue was carried out, and its answer was lost")
		}
	}
	if refused {
		if v.lostWrites[who] == x.detail+x.what {
			v.sim.MarkReached("a 409 or 412 was caused by the sender's own write")
		} else {
			v.sim.MarkReached("a 409 or 412 was caused by another write")
			v.countConflict(name, key)
		}
	}
	switch name { //nolint:exhaustive // other steps reach no rare state
	case steps.Reserve:
		if written {
			v.intentOwner[key], v.flushing[who] = who, false
		}
	case steps.Commit:
		if written {
			delete(v.intentOwner, key)
			v.flushing[who] = false
		}
	case steps.Flush:
		if written {
			v.sim.MarkReached("a tail was flushed")
			v.flushing[who] = true
		}
	case steps.Clear:
		if owner := v.intentOwner[key]; written && owner != "" && owner != who {
			v.sim.MarkReached("an intent of another process was rolled back")
		}
		if written {
			delete(v.intentOwner, key)
		}
	case steps.OpenBundle, steps.Dequeue:
		if refused && name == steps.OpenBundle {
			v.sim.MarkReached("a bundle computed from a stale state was refused")
			if v.gateWriter[key] != who {
				v.sim.MarkReached("two hubs raced for one gate")
			}
		}
		if written {
			v.gateWriter[key] = who
			v.hintsPending[who] = name == steps.Dequeue
		}
	case steps.Position:
		v.hintsPending[who] = false
	case steps.Mend:
		switch {
		case !written:
		case x.req.Method == http.MethodDelete:
			v.sim.MarkReached("a catalog entry was deleted on sight")
		case x.req.Method == http.MethodPut:
			v.sim.MarkReached("a catalog entry was raised on sight")
		case x.req.Method == http.MethodPost:
			v.sim.MarkReached("a catalog entry was put back on sight")
		}
	case steps.Prove:
		select {
		case v.sweepStarts <- struct{}{}:
		default:
		}
	case steps.Retain:
		if written && v.unsureCommit[key] != "" {
			v.sim.MarkReached("a sweep changed a head while the outcome of its Save was unknown")
		}
	case steps.Remove:
		if written {
			v.sim.MarkReached("a sweep removed what was acknowledged")
		}
	case steps.Seal:
		if written {
			v.sim.MarkReached("a drawer was sealed by a reader")
		}
	}
}

// countConflict counts a write that was refused because another hub had changed the document.
func (v *coverageObserver) countConflict(name steps.Name, recipient string) {
	switch {
	case name == steps.Settle:
		v.sim.MarkReached("a settlement of a node that had lost its cursor was refused")
	case isObjectIngest(name):
		v.sim.MarkReached("two nodes stored events of one object at the same time")
	case name == steps.Flush:
		v.sim.MarkReached("two hubs flushed one tail")
	case name == steps.Commit && v.intentOwner[recipient] == "":
		v.sim.MarkReached("a small Save was refused, because another hub had saved")
	}
}

// isObjectIngest reports whether a write stores events of objects.
func isObjectIngest(name steps.Name) bool {
	return name == steps.CreateObjects || name == steps.UpdateObjects || name == steps.Spill
}

// observeDeath updates the rare states after a hub was killed.
func (v *coverageObserver) observeDeath(who string) {
	if v.flushing[who] {
		v.sim.MarkReached("a hub died between the page of a flush and its head")
		v.flushing[who] = false
	}
	if v.hintsPending[who] {
		v.sim.MarkReached("a hub died between a Dequeue and its hints")
	}
	maps.DeleteFunc(v.unsureCommit, func(_, asks string) bool { return asks == who })
}
