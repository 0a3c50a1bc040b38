package simulate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/domain"
)

// The poisons are the messages that can never be stored. Each must become a dead
// letter with its reason, and hold up nobody.
type poisons struct {
	mu        sync.Mutex
	messages  map[string]string // by message id: the reason
	conflicts map[string]bool   // ids of events that were sent with other content
}

func newPoisons() *poisons {
	return &poisons{messages: make(map[string]string), conflicts: make(map[string]bool)}
}

func (p *poisons) wants(id, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages[id] = reason
}

func (p *poisons) conflicting(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conflicts[id] = true
}

// poison sends a message that is none.
func (s *sender) poison() bool {
	recipient, other := actorName(s.d.n(s.w.plan.recipients)), "somebody-else"
	e := event{ID: s.newID().String(), Recipient: recipient, Origin: domain.TimeSeries.String(), ContentType: "type-a", DocumentType: "RSM012", Weight: 1}
	json, id := contract.JSON, "poison-"+s.newID().String()
	m := &azservicebus.Message{MessageID: &id, SessionID: &recipient, ContentType: &json}
	kinds := []struct {
		reason string
		make   func()
	}{
		{"not-json", func() { m.Body = []byte("{") }},
		{"not-json", func() { m.Body = eventsJSON([]event{e})[:40] }},
		{"invalid", func() { e.Weight = -1; m.Body = eventsJSON([]event{e}) }},
		{"invalid", func() { e.Recipient = ""; m.Body = eventsJSON([]event{e}) }},
		{"not-protobuf", func() { m.ContentType, m.Body = nil, []byte("no protobuf") }},
		{"invalid", func() { e.Origin = "Weather"; m.Body = eventsJSON([]event{e}) }},
		{"not-json", func() { m.Body = []byte(`[{"id":7,"recipient":}]`) }},
		{"unsupported-media-type", func() { text := "text/"; m.ContentType, m.Body = &text, []byte("hello") }},
		{"invalid", func() {
			m.ContentType = nil
			body, err := proto.Marshal(&contract.DataAvailableNotificationContract{UUID: "none", Recipient: recipient, Origin: "TimeSeries"})
			if err != nil {
				s.w.fail(err)
			}
			m.Body = body
		}},
		{"unsupported-media-type", func() { text := "text/plain"; m.ContentType, m.Body = &text, []byte("hello") }},
		{"wrong-message-type", func() {
			m.Body = eventsJSON([]event{e})
			m.ApplicationProperties = map[string]any{contract.PropertyMessageType: contract.Dequeue}
		}},
		{"too-many-events", func() { m.Body = slices.Concat([]byte("["), bytes.Repeat([]byte("0,"), 10_000), []byte("0]")) }},
		{"id-conflict", func() {
			twin := e
			twin.Weight++
			m.Body = eventsJSON([]event{e, twin})
		}},
		{"invalid", func() { m.Body = eventsJSON(s.tooManyKinds(recipient)) }},
		{"other-recipient", func() { e.Recipient = other; m.Body = eventsJSON([]event{e}) }},
	}
	if s.route == overQueue { // where there are no sessions
		kinds = kinds[:len(kinds)-1]
	}
	kind := kinds[s.d.n(len(kinds))]
	kind.make()
	s.w.poisons.wants(id, kind.reason)
	s.w.reached("a message was poison")
	return s.bus.raw(m)
}

// endsOnTheBus holds what is left on the bus to what may be left there: nothing to
// do, and of dead letters those that had to die.
func (w *world) endsOnTheBus() error {
	const patience, every = 30 * time.Minute, 5 * time.Second
	watch := party{w: w}
	for began := time.Now(); ; {
		left := w.bus.Stats()
		switch {
		case left.Active == 0:
			return w.checkDeadLetters(left.DeadLetters)
		case time.Since(began) > patience:
			return fmt.Errorf("%d messages have been on the bus for %s, and nobody takes them", left.Active, patience)
		case !watch.pause(every):
			return nil
		}
	}
}

func (w *world) checkDeadLetters(there int64) error {
	w.poisons.mu.Lock()
	defer w.poisons.mu.Unlock()
	if there == 0 && len(w.poisons.messages)+len(w.poisons.conflicts) == 0 {
		return nil
	}
	line := w.newBusLine("coroner")
	client, err := w.connecting(line)()
	if err != nil {
		return err
	}
	defer w.closing(client.Close)
	seen := make(map[string]bool)
	var errs []error
	for _, queue := range []string{contract.DataAvailableFIFO, contract.DataAvailableQueue} {
		found, err := deadLetters(w.ctx, client, queue)
		if err != nil {
			return err
		}
		there -= int64(len(found))
		for _, m := range found {
			reason, why := text(m.DeadLetterReason), text(m.DeadLetterErrorDescription)
			id := m.MessageID
			if _, known := w.poisons.messages[id]; !known && reason == "id-conflict" {
				id = strings.TrimPrefix(why, "Event ")
				id = id[:min(len(id), 36)]
				if !w.poisons.conflicts[id] {
					errs = append(errs, fmt.Errorf("H2: a message became a dead letter, and nothing in it conflicts: %s", why))
				}
			} else if want := w.poisons.messages[id]; want != reason {
				errs = append(errs, fmt.Errorf("message %s became a dead letter because of %q (%s), want %q", id, reason, why, want))
			}
			seen[id] = true
		}
	}
	if there != 0 {
		errs = append(errs, fmt.Errorf("%d more dead letters lie on other queues", there))
	}
	for id := range w.poisons.messages {
		if !seen[id] {
			errs = append(errs, fmt.Errorf("I9: message %s is poison, and no dead letter", id))
		}
	}
	for id := range w.poisons.conflicts {
		if !seen[id] {
			errs = append(errs, fmt.Errorf("H2: event %s came with other content, and no dead letter tells of it", id))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// deadLetters returns those of a queue.
func deadLetters(ctx context.Context, client *azservicebus.Client, queue string) (all []*azservicebus.ReceivedMessage, err error) {
	from, err := client.NewReceiverForQueue(queue, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		return nil, err
	}
	for {
		some, err := from.PeekMessages(ctx, 100, nil)
		if err != nil || len(some) == 0 {
			return all, err
		}
		all = append(all, some...)
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
