package ingest

import (
	"container/list"
	"sync"

	"github.com/messagehub/messagehub/domain"
)

// watchedRecipients is the maximum number of recipients in an orderMonitor.
const watchedRecipients = 10_000

// An orderMonitor watches whether messages are stored in the order of their
// sequence numbers, which the bus assigns in the order in which it accepts
// them. It only raises an alarm and refuses nothing: by then the order cannot
// be restored.
//
// Redelivered messages also have lower numbers. The store recognizes them,
// because it has their events. The delivery count cannot be used: it does not
// change when a session returns a message, and an event that was overtaken
// while its message was delivered twice is out of order.
type orderMonitor struct {
	mu      sync.Mutex
	marks   map[domain.ActorID]*list.Element // elements are *mark
	byUsage *list.List                       // most recently used first
}

// A mark is the highest number of a stored message with events for recipient.
type mark struct {
	recipient domain.ActorID
	highest   int64
}

func newOrder() *orderMonitor {
	return &orderMonitor{marks: make(map[domain.ActorID]*list.Element), byUsage: list.New()}
}

// observe records the messages of one save, in its order, and returns how many
// events were late: those below the mark of their recipient, minus the
// duplicates, each of which may be one of them.
func (o *orderMonitor) observe(saved []*busMessage, duplicates int) (inversions int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	late := 0
	for _, m := range saved {
		if m.SequenceNumber == nil {
			continue
		}
		number := *m.SequenceNumber
		for i := range m.Content.events {
			k := o.markOf(m.Content.events[i].Recipient)
			if number < k.highest {
				late++
			}
			k.highest = max(k.highest, number)
		}
	}
	return max(0, late-duplicates)
}

func (o *orderMonitor) markOf(recipient domain.ActorID) *mark {
	if e := o.marks[recipient]; e != nil {
		o.byUsage.MoveToFront(e)
		return e.Value.(*mark)
	}
	if o.byUsage.Len() == watchedRecipients {
		oldest := o.byUsage.Back()
		delete(o.marks, oldest.Value.(*mark).recipient)
		o.byUsage.Remove(oldest)
	}
	k := &mark{recipient: recipient}
	o.marks[recipient] = o.byUsage.PushFront(k)
	return k
}
