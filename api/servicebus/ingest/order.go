package ingest

import (
	"container/list"
	"sync"

	"github.com/messagehub/messagehub/domain"
)

// watchedRecipients is the maximum number of recipients that an orderMonitor tracks.
const watchedRecipients = 10_000

// An orderMonitor checks whether messages are stored in the order of their sequence numbers, which
// the bus assigns when it accepts a message. It only reports late events: an event is already
// stored when its lateness is noticed.
//
// A redelivered message also has a lower number than later messages. The store recognizes its
// events as duplicates. The delivery count does not identify a redelivery, because it stays the
// same when a session returns a message. A redelivered message can also be late, if another message
// overtook it between two deliveries.
type orderMonitor struct {
	mu      sync.Mutex
	marks   map[domain.ActorID]*list.Element // maps a recipient to its element in byUsage, whose value is a *mark
	byUsage *list.List                       // marks, the most recently used first
}

// A mark is the highest sequence number of all stored messages with events for recipient.
type mark struct {
	recipient domain.ActorID
	highest   int64
}

func newOrderMonitor() *orderMonitor {
	return &orderMonitor{marks: make(map[domain.ActorID]*list.Element), byUsage: list.New()}
}

// observe records the messages of one save, in the order in which they were saved. It returns the
// number of late events: events in messages with a number below the mark of their recipient. It
// subtracts the duplicates, because a duplicate looks like a late event.
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
