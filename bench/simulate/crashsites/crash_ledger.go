//go:build unix

package crashsites

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/messagehub/messagehub/bench/ledger"
)

// The numbers of the senders.
const (
	sendsOverHTTP = iota
	sendsOverBus
)

// A crashLedger records the events that the load sends and the bundles that it fetches. Each actor has one client, so
// bundles are received in the order in which the hub returned them. The ledger also records which notices are due, and
// wakes waiters on each change.
//
// It is safe for concurrent use.
type crashLedger struct {
	*ledger.Ledger

	mu       sync.Mutex
	open     map[[2]string]string // last received bundle, by actor and cabinet
	due      map[string][]string  // bundles whose domain must be notified, by actor
	notified map[string]bool      // received notices, by the name that the domain uses for the bundle
	changed  chan struct{}        // closed and replaced on each change
}

func newCrashLedger() *crashLedger {
	return &crashLedger{
		Ledger: ledger.New(ledger.Options{InOrder: true}), open: make(map[[2]string]string),
		due: make(map[string][]string), notified: make(map[string]bool), changed: make(chan struct{}),
	}
}

// notePeeked records a bundle that an actor received. The request for the bundle began at the moment start. It returns
// an error if the bundle breaks a rule.
func (l *crashLedger) notePeeked(actor, id string, body []byte, start ledger.Moment) error {
	isNew, err := l.Receive(actor, id, body, start, func() ([]ledger.Element, error) {
		var lines []struct {
			ID       string `json:"id"`
			Sequence int64  `json:"sequence"` // only manifests contain the sequence
		}
		if err := json.Unmarshal(body, &lines); err != nil {
			return nil, fmt.Errorf("its body is not a list of events: %.200q: %w", body, err)
		}
		all := make([]ledger.Element, len(lines))
		for i, line := range lines {
			all[i] = ledger.Element{ID: line.ID, Sequence: line.Sequence}
		}
		return all, nil
	})
	if err != nil || !isNew {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := [2]string{actor, l.Bundle(actor, id).Cabinet}
	if before := l.open[key]; before != "" {
		return l.Report("bundle %s of %s: bundle %s of %s is still open", id, actor, before, key[1])
	}
	l.open[key] = id
	return nil
}

// noteDequeued records that a Dequeue was answered.
func (l *crashLedger) noteDequeued(actor, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Confirm(actor, id, false)
	b := l.Bundle(actor, id)
	delete(l.open, [2]string{actor, b.Cabinet})
	if b.Cabinet == request {
		l.due[actor] = append(l.due[actor], id)
	}
	l.wakeWaiters()
}

// noteNotice records that the domain was notified of a bundle. name is the name that the domain uses for the bundle.
func (l *crashLedger) noteNotice(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notified[name] = true
	l.wakeWaiters()
}

// wakeWaiters wakes all waiters. The caller holds mu.
func (l *crashLedger) wakeWaiters() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// countOutstanding returns the number of unconfirmed events of actors, and a channel that is closed on the next
// change. Without actors it counts the events of all actors.
func (l *crashLedger) countOutstanding(actors ...string) (n int, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Outstanding(actors...), l.changed
}

// unnotifiedBundles returns the bundles whose notice is due, by the names that the domain uses, and a channel that is
// closed on the next change.
func (l *crashLedger) unnotifiedBundles() (names []string, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for actor, ids := range l.due {
		l.due[actor] = slices.DeleteFunc(ids, func(id string) bool { return l.notified[id+"_"+actor] })
		for _, id := range l.due[actor] {
			names = append(names, id+"_"+actor)
		}
	}
	return names, l.changed
}
