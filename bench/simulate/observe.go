package simulate

import (
	"maps"
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/bench/simulate/steps"
	"github.com/messagehub/messagehub/cosmos/faulty"
)

// A witness notes the rare states that the requests of the hubs reach. It is told of
// each that was carried out.
type witness struct {
	w *world

	owner map[string]string // of the intent of a recipient: the hub that has reserved
	lost  map[string]string // by hub: the write whose answer it did not get
	gates map[string]string // by recipient: the hub that has written the gate last
	owes  map[string]bool   // by hub: it has closed a bundle and not written its hints
	opens map[string]string // by recipient: the hub that shows bundles
	asks  map[string]string // by recipient: the hub that has committed, and does not know it

	flushing map[string]bool // by hub: it has written a page of a tail, and no head since

	letsGo chan struct{} // holds one when a sweep is about to let something go
}

func newWitness(w *world) *witness {
	return &witness{
		w: w, owner: make(map[string]string), lost: make(map[string]string), gates: make(map[string]string),
		owes: make(map[string]bool), opens: make(map[string]string), asks: make(map[string]string),
		flushing: make(map[string]bool), letsGo: make(chan struct{}, 1),
	}
}

// saw notes a request that was carried out with this status, and whether its sender
// learns of it.
func (v *witness) saw(x *exchange, status int, f faulty.Fault) {
	key, _, _ := strings.Cut(strings.Trim(x.req.Header.Get("x-ms-documentdb-partitionkey"), `[]"`), "|")
	name, who := steps.Name(x.what), x.line.who
	written := status < http.StatusMultiStatus
	refused := status == http.StatusConflict || status == http.StatusPreconditionFailed || status == http.StatusMultiStatus
	if x.isRead {
		if name == steps.ReadHead && v.asks[key] == who && status < http.StatusMultiStatus && f == faulty.None {
			delete(v.asks, key)
		}
		if strings.HasSuffix(x.req.URL.Path, "/filter-cabinets") && status == http.StatusOK && f == faulty.None {
			v.w.reached("a hub read the filter of a recipient")
		}
		return
	}
	if x.line.dead.Load() && written {
		v.w.reached("a write of a dead hub arrived")
	}
	if written && (f.IsAfter() || x.req.Context().Err() != nil) {
		v.lost[who] = x.more + x.what
		if name == steps.Commit || name == steps.Reserve {
			v.w.reached("a commit was carried out, and its answer was lost")
			v.asks[key] = who
		}
		if name == steps.Commit && v.owner[key] == "" {
			v.w.reached("a small Save was carried out, and its answer was lost")
		}
		if name == steps.Settle {
			v.w.reached("a settlement was carried out, and its answer was lost")
		}
		if isIngest(name) {
			v.w.reached("events of objects were stored, and the answer was lost")
		}
		if name == steps.Dequeue {
			v.w.reached("a Dequeue was carried out, and its answer was lost")
		}
	}
	if refused {
		if v.lost[who] == x.more+x.what {
			v.w.reached("a 409 or 412 that was one's own doing")
		} else {
			v.w.reached("a 409 or 412 that was another's doing")
			v.refusedByAnother(name, key)
		}
	}
	switch name { //nolint:exhaustive // the others say nothing
	case steps.Reserve:
		if written {
			v.owner[key], v.flushing[who] = who, false
		}
	case steps.Commit:
		if written {
			delete(v.owner, key)
			v.flushing[who] = false
		}
	case steps.Flush:
		if written {
			v.w.reached("a tail was flushed")
			v.flushing[who] = true
		}
	case steps.Clear:
		if owner := v.owner[key]; written && owner != "" && owner != who {
			v.w.reached("an intent of another process was rolled back")
		}
		if written {
			delete(v.owner, key)
		}
	case steps.OpenBundle, steps.Dequeue:
		if refused && name == steps.OpenBundle {
			v.w.reached("a bundle that was computed from what is no longer so was refused")
			if v.gates[key] != who {
				v.w.reached("two hubs raced for one gate")
			}
		}
		if written {
			v.gates[key] = who
			v.owes[who] = name == steps.Dequeue
		}
	case steps.Position:
		v.owes[who] = false
	case steps.Mend:
		switch {
		case !written:
		case x.req.Method == http.MethodDelete:
			v.w.reached("a catalog entry was deleted on sight")
		case x.req.Method == http.MethodPut:
			v.w.reached("a catalog entry was raised on sight")
		case x.req.Method == http.MethodPost:
			v.w.reached("a catalog entry was put back on sight")
		}
	case steps.Prove:
		select {
		case v.letsGo <- struct{}{}:
		default:
		}
	case steps.Retain:
		if written && v.asks[key] != "" {
			v.w.reached("a sweep changed a head of which a Save did not know whether it was its own")
		}
	case steps.Remove:
		if written {
			v.w.reached("a sweep removed what was acknowledged")
		}
	case steps.Seal:
		if written {
			v.w.reached("a drawer was sealed by a reader")
		}
	}
}

// refusedByAnother notes a write that was refused because of what another hub has written.
func (v *witness) refusedByAnother(name steps.Name, recipient string) {
	switch {
	case name == steps.Settle:
		v.w.reached("a settlement of a node that had lost its cursor was refused")
	case isIngest(name):
		v.w.reached("two nodes stored events of one object at the same time")
	case name == steps.Flush:
		v.w.reached("two hubs flushed one tail")
	case name == steps.Commit && v.owner[recipient] == "":
		v.w.reached("a small Save was refused, because another hub had saved")
	}
}

// isIngest reports whether a write stores events of objects.
func isIngest(name steps.Name) bool {
	return name == steps.CreateObjects || name == steps.UpdateObjects || name == steps.Spill
}

// died notes that a hub is no more.
func (v *witness) died(who string) {
	if v.flushing[who] {
		v.w.reached("a hub died between the page of a flush and its head")
		v.flushing[who] = false
	}
	if v.owes[who] {
		v.w.reached("a hub died between a Dequeue and its hints")
	}
	maps.DeleteFunc(v.asks, func(_, asks string) bool { return asks == who })
}
