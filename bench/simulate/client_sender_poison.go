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

// poisonMessages holds the messages that can never be stored. Each must become a dead letter with its reason, and
// must not delay other messages.
type poisonMessages struct {
	mu        sync.Mutex
	messages  map[string]string // reasons for the dead letters, by message id
	conflicts map[string]bool   // ids that were sent a second time with different content
}

func newPoisonMessages() *poisonMessages {
	return &poisonMessages{messages: make(map[string]string), conflicts: make(map[string]bool)}
}

func (p *poisonMessages) expectDeadLetter(id, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages[id] = reason
}

func (p *poisonMessages) expectConflict(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conflicts[id] = true
}

// sendPoison sends a malformed message.
func (s *batchSender) sendPoison() bool {
	recipient, other := actorName(s.rng.IntN(s.sim.plan.recipients)), "somebody-else"
	e := sentData{ID: s.newID().String(), Recipient: recipient, Origin: domain.TimeSeries.String(), ContentType: "type-a", DocumentType: "RSM012", Weight: 1}
	json, id := contract.JSON, "poison-"+s.newID().String()
	m := &azservicebus.Message{MessageID: &id, SessionID: &recipient, ContentType: &json}
	kinds := []struct {
		reason string
		make   func()
	}{
		{"not-json", func() { m.Body = []byte("{") }},
		{"not-json", func() { m.Body = encodeEvents([]sentData{e})[:40] }},
		{"invalid", func() { e.Weight = -1; m.Body = encodeEvents([]sentData{e}) }},
		{"invalid", func() { e.Recipient = ""; m.Body = encodeEvents([]sentData{e}) }},
		{"not-protobuf", func() { m.ContentType, m.Body = nil, []byte("no protobuf") }},
		{"invalid", func() { e.Origin = "Weather"; m.Body = encodeEvents([]sentData{e}) }},
		{"not-json", func() { m.Body = []byte(`[{"id":7,"recipient":}]`) }},
		{"unsupported-media-type", func() { text := "text/"; m.ContentType, m.Body = &text, []byte("hello") }},
		{"invalid", func() {
			m.ContentType = nil
			body, err := proto.Marshal(&contract.DataAvailableNotificationContract{UUID: "none", Recipient: recipient, Origin: "TimeSeries"})
			if err != nil {
				s.sim.Fail(err)
			}
			m.Body = body
		}},
		{"unsupported-media-type", func() { text := "text/plain"; m.ContentType, m.Body = &text, []byte("hello") }},
		{"wrong-message-type", func() {
			m.Body = encodeEvents([]sentData{e})
			m.ApplicationProperties = map[string]any{contract.PropertyMessageType: contract.Dequeue}
		}},
		{"too-many-events", func() { m.Body = slices.Concat([]byte("["), bytes.Repeat([]byte("0,"), 10_000), []byte("0]")) }},
		{"id-conflict", func() {
			twin := e
			twin.Weight++
			m.Body = encodeEvents([]sentData{e, twin})
		}},
		{"invalid", func() { m.Body = encodeEvents(s.tooManyKinds(recipient)) }},
		{"other-recipient", func() { e.Recipient = other; m.Body = encodeEvents([]sentData{e}) }},
	}
	if s.route == overQueue { // the queue has no sessions
		kinds = kinds[:len(kinds)-1]
	}
	kind := kinds[s.rng.IntN(len(kinds))]
	kind.make()
	s.sim.work.poison.expectDeadLetter(id, kind.reason)
	s.sim.MarkReached("a malformed message was sent")
	return s.publisher.sendRaw(m)
}

// verifyBus waits until the bus has no active messages. It returns an error if this takes too long, or if the dead
// letters differ from the expected ones.
func (sim *simulation) verifyBus() error {
	const patience, every = 30 * time.Minute, 5 * time.Second
	watch := baseClient{sim: sim}
	for began := time.Now(); ; {
		left := sim.env.bus.Stats()
		switch {
		case left.Active == 0:
			return sim.verifyDeadLetters(left.DeadLetters)
		case time.Since(began) > patience:
			return fmt.Errorf("%d messages have been on the bus for %s without being received by a hub", left.Active, patience)
		case !watch.pause(every):
			return nil
		}
	}
}

func (sim *simulation) verifyDeadLetters(there int64) error {
	sim.work.poison.mu.Lock()
	defer sim.work.poison.mu.Unlock()
	if there == 0 && len(sim.work.poison.messages)+len(sim.work.poison.conflicts) == 0 {
		return nil
	}
	line := sim.newBusTransport("coroner")
	client, err := sim.busConnector(line)()
	if err != nil {
		return err
	}
	defer sim.closeInTime(client.Close)
	seen := make(map[string]bool)
	var errs []error
	for _, queue := range []string{contract.DataAvailableFIFO, contract.DataAvailableQueue} {
		found, err := readDeadLetters(sim.ctx, client, queue)
		if err != nil {
			return err
		}
		there -= int64(len(found))
		for _, m := range found {
			reason, why := stringOf(m.DeadLetterReason), stringOf(m.DeadLetterErrorDescription)
			id := m.MessageID
			if _, known := sim.work.poison.messages[id]; !known && reason == "id-conflict" {
				id = strings.TrimPrefix(why, "Event ")
				id = id[:min(len(id), 36)]
				if !sim.work.poison.conflicts[id] {
					errs = append(errs, fmt.Errorf("H2: a message became a dead letter without a conflict: %s", why))
				}
			} else if want := sim.work.poison.messages[id]; want != reason {
				errs = append(errs, fmt.Errorf("message %s became a dead letter because of %q (%s), want %q", id, reason, why, want))
			}
			seen[id] = true
		}
	}
	if there != 0 {
		errs = append(errs, fmt.Errorf("other queues have %d more dead letters", there))
	}
	for id := range sim.work.poison.messages {
		if !seen[id] {
			errs = append(errs, fmt.Errorf("I9: message %s is malformed, but not a dead letter", id))
		}
	}
	for id := range sim.work.poison.conflicts {
		if !seen[id] {
			errs = append(errs, fmt.Errorf("H2: event %s was sent with different content, but no dead letter reports it", id))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// readDeadLetters returns the dead letters of a queue.
func readDeadLetters(ctx context.Context, client *azservicebus.Client, queue string) (all []*azservicebus.ReceivedMessage, err error) {
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

func stringOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
