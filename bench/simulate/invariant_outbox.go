package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/cosmos/embedded"
)

// A noticeOutbox holds the keys of the stored notices: those whose domains may not have received them. It needs no
// lock, because commits update it one after the other.
type noticeOutbox map[string]bool

func (o noticeOutbox) noteCommit(changes []embedded.Change) {
	for _, c := range changes {
		isNotice := strings.HasPrefix(c.ID, "notice|") || strings.HasPrefix(c.ID, "watched")
		if c.Container != containers.Bundles || !isNotice {
			continue
		}
		key := fmt.Sprintf("%v %s", c.Partition, c.ID)
		if o[key] = true; c.JSON == nil {
			delete(o, key)
		}
	}
}

// awaitEmptyOutbox waits until no notice is stored.
func (sim *simulation) awaitEmptyOutbox() error {
	const patience, every = 30 * time.Minute, time.Second
	watch := baseClient{sim: sim}
	for began := time.Now(); len(sim.work.outbox) > 0; {
		if time.Since(began) > patience {
			return fmt.Errorf("the outbox still has the notices %s", slices.Sorted(maps.Keys(sim.work.outbox)))
		}
		if !watch.pause(every) {
			return nil
		}
	}
	return nil
}
