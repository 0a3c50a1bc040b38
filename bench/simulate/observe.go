package simulate

import (
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
}

func newWitness(w *world) *witness {
	return &witness{
		w: w, owner: make(map[string]string), lost: make(map[string]string), gates: make(map[string]string),
		owes: make(map[string]bool), opens: make(map[string]string),
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
		return
	}
	if x.line.dead.Load() && written {
		v.w.reached(zombieWrote)
	}
	if written && (f.IsAfter() || x.req.Context().Err() != nil) {
		v.lost[who] = x.more + x.what
		switch name {
		case steps.Commit, steps.Reserve:
			v.w.reached(commitLost)
		case steps.Dequeue:
			v.w.reached(dequeueLost)
		}
	}
	if refused {
		if v.lost[who] == x.more+x.what {
			v.w.reached(ownConflict)
		} else {
			v.w.reached(foreignConflict)
		}
	}
	switch name {
	case steps.Reserve:
		if written {
			v.owner[key] = who
		}
	case steps.Clear:
		if owner := v.owner[key]; written && owner != "" && owner != who {
			v.w.reached(rolledBackAnother)
		}
	case steps.OpenBundle, steps.Dequeue:
		if refused && name == steps.OpenBundle {
			v.w.reached(staleBundle)
			if v.gates[key] != who {
				v.w.reached(gateRace)
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
		case x.req.Method == http.MethodPut:
			v.w.reached(entryRaised)
		case x.req.Method == http.MethodPost:
			v.w.reached(entryInserted)
		}
	case steps.Remove:
		if written && !strings.Contains(x.more, "cabinet") {
			v.w.reached(entryDeleted)
		}
	case steps.Seal:
		if written {
			v.w.reached(sealedByReader)
		}
	}
}

// died notes that a hub is no more.
func (v *witness) died(who string) {
	if v.owes[who] {
		v.w.reached(noHints)
	}
}
