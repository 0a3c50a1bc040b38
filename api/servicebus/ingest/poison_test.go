package ingest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// panickingMessage returns a message on which Microsoft's client panics, because the client assumes
// that the property DeadLetterReason is a string.
func panickingMessage(m *azservicebus.Message) *azservicebus.Message {
	m.ApplicationProperties = map[string]any{"DeadLetterReason": int64(1)}
	return m
}

// Microsoft's client panics on a property of an unexpected type. If this test fails, the client has
// been fixed, and a receiver need not recover panics.
func TestClient_PanicsOnAPropertyOfAnotherType(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		out := s.sender(plainRecipient)
		out.sendMessage(panickingMessage(out.message(rt.Event(rt.NewActor()))))
		r, err := s.newClient().NewReceiverForQueue(plainRecipient, nil)
		require.NoError(t, err)
		require.Panics(t, func() { _, _ = r.ReceiveMessages(t.Context(), 1, nil) })
	})
}

// Microsoft's client panics on one message of a session. After the maximum number of deliveries,
// the message becomes a dead letter. Until then, only this session waits.
func TestAMessageOnWhichTheClientPanicsEndsAsADeadLetter(t *testing.T) {
	for _, queue := range []string{fifo, plainRecipient} {
		t.Run(queue, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newSite(t, withLocks("PT20S", 3))
				stop := s.startIngestion()
				out := s.sender(queue)
				stricken, other := rt.NewActor(), rt.NewActor()
				before, after, others := rt.Events(2, stricken), rt.Events(2, stricken), rt.Events(3, other)
				poison := out.message(rt.Event(stricken))
				for _, e := range before {
					out.sendEvents(e)
				}
				out.sendMessage(panickingMessage(poison))
				for _, e := range after {
					out.sendEvents(e)
				}
				began := time.Now()
				for _, e := range others {
					out.sendEvents(e)
				}
				s.waitUntilStored(len(before) + len(others))
				require.Less(t, time.Since(began), 2*time.Second, "others are not held up")
				s.waitUntilStored(len(before) + len(others) + len(after))
				eventually(t, "three deliveries", func() bool { return s.metric("receiver_panics_total", queue) == 3 })
				dead := s.deadLetters(queue, 1)
				require.Equal(t, string(poison.Body), dead[0].body)
				require.Equal(t, "MaxDeliveryCountExceeded", dead[0].reason)
				stop()
				s.has(stricken, slices.Concat(before, after)...)
				s.has(other, others...)
				require.True(t, s.logs.has("a message cannot be read"))
			})
		})
	}
}

func TestIngest_DeadLettersOnlyAnInvalidMessage(t *testing.T) {
	actor, stranger := rt.NewActor(), rt.NewActor()
	stored := rt.Event(actor)
	changed := stored
	changed.Weight++
	nowhere, err := domain.ParseOrigin("Nowhere")
	require.NoError(t, err)
	with := func(m *azservicebus.Message, change func(*azservicebus.Message)) *azservicebus.Message {
		change(m)
		return m
	}
	for _, tc := range []struct {
		name, reason string
		message      func(*queueSender) *azservicebus.Message
		alsoStored   []domain.Event
	}{
		{name: "no JSON", reason: "not-json", message: func(s *queueSender) *azservicebus.Message {
			return with(s.message(rt.Event(actor)), func(m *azservicebus.Message) { m.Body = []byte("{") })
		}},
		{name: "no contract", reason: "not-protobuf", message: func(s *queueSender) *azservicebus.Message {
			return with(s.message(rt.Event(actor)), func(m *azservicebus.Message) { m.ContentType = nil })
		}},
		{name: "an unknown content type", reason: "unsupported-media-type", message: func(s *queueSender) *azservicebus.Message {
			return with(s.message(rt.Event(actor)), func(m *azservicebus.Message) { m.ContentType = to.Ptr("text/plain") })
		}},
		{name: "an unknown origin", reason: "invalid", message: func(s *queueSender) *azservicebus.Message { return s.message(rt.Event(actor, rt.WithOrigin(nowhere))) }},
		{name: "another session", reason: "other-recipient", message: func(s *queueSender) *azservicebus.Message {
			return with(s.message(rt.Event(stranger)), func(m *azservicebus.Message) { m.SessionID = to.Ptr(actor.String()) })
		}},
		{name: "two recipients in one session", reason: "other-recipient", message: func(s *queueSender) *azservicebus.Message { return s.message(rt.Event(actor), rt.Event(stranger)) }},
		{name: "an id with other content than is stored", reason: "id-conflict", message: func(s *queueSender) *azservicebus.Message { return s.message(changed) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newSite(t)
				out := s.sender(fifo)
				others := rt.Events(6, actor)
				poison := tc.message(out)
				out.sendEvents(stored)
				for _, e := range others[:3] {
					out.sendEvents(e)
				}
				out.sendMessage(poison)
				for _, e := range others[3:] {
					out.sendEvents(e)
				}
				stop := s.startIngestion()
				s.waitUntilStored(1 + len(others))
				dead := s.deadLetters(fifo, 1)
				require.Equal(t, tc.reason, dead[0].reason)
				require.NotEmpty(t, dead[0].description)
				require.Equal(t, string(poison.Body), dead[0].body)
				stop()
				s.has(actor, append([]domain.Event{stored}, others...)...)
				s.has(stranger)
				require.Empty(t, s.deliveryCounts(actor.String()))
				require.EqualValues(t, 1, s.metric("messages_dead_lettered_total"))
				require.EqualValues(t, 1, s.metric("messages_dead_lettered_total", tc.reason, fifo))
			})
		})
	}
}

// holdFirstSave delays the first save until n more messages have arrived, which the next save then
// stores together.
func (s *ingestSite) holdFirstSave(n float64) {
	f := func(context.Context, []domain.Event) error {
		s.hub.before.Store(nil)
		eventually(s.T, "messages in hand", func() bool { return s.metric("messages_in_hand") >= n })
		return nil
	}
	s.hub.before.Store(&f)
}

func TestIngest_StoresTheFirstOfTwoContentsWithOneID(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		actor := rt.NewActor()
		events := rt.Events(6, actor)
		second := events[2]
		second.Weight++
		sent := slices.Insert(slices.Clone(events), 4, second)
		out := s.sender(fifo)
		for _, e := range sent {
			out.sendEvents(e)
		}
		s.holdFirstSave(float64(len(sent)))
		stop := s.startIngestion()
		s.waitUntilStored(len(events))
		dead := s.deadLetters(fifo, 1)
		stop()
		require.Equal(t, string(decodedBody(second)), dead[0].body)
		require.Equal(t, "id-conflict", dead[0].reason)
		s.has(actor, events...)
	})
}

func TestIngest_StoresTheOtherEventsOfAConflictingMessage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		actor := rt.NewActor()
		events := rt.Events(3, actor)
		changed := events[0]
		changed.Weight++
		out := s.sender(plainRecipient)
		out.sendEvents(events[0])
		out.sendEvents(events[1], changed, events[2])
		stop := s.startIngestion()
		s.waitUntilStored(len(events))
		dead := s.deadLetters(plainRecipient, 1)
		stop()
		require.Contains(t, dead[0].description, changed.ID.String())
		s.has(actor, events...)
		require.EqualValues(t, 1, s.metric("events_conflicts_total"))
	})
}

// A pickyStore always refuses the events of one recipient. While away is true, saving the events of
// other recipients fails with Unavailable.
type pickyStore struct {
	*memory.Store
	refused domain.ActorID
	away    atomic.Bool
}

func (p *pickyStore) Save(ctx context.Context, to domain.ActorID, events []domain.Event) (repository.Saved, error) {
	switch {
	case to == p.refused:
		return repository.Saved{}, domain.Errorf(domain.Invalid, "it has too many kinds of data")
	case p.away.Load():
		return repository.Saved{}, domain.Errorf(domain.Unavailable, "away")
	}
	return p.Store.Save(ctx, to, events)
}

func TestIngest_RetriesAMessageWhileEventsMayBeStored(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		picky := &pickyStore{Store: s.store, refused: rt.NewActor()}
		picky.away.Store(true)
		s.hub.Hub = hub.New(picky, s.store, s.store, hub.Options{})
		stop := s.startIngestion()
		other := rt.NewActor()
		events := rt.Events(2, other)
		s.sender(plainRecipient).sendEvents(rt.Event(picky.refused), events[0], events[1])
		<-time.After(5 * time.Minute)
		require.Zero(t, s.metric("messages_dead_lettered_total"))
		picky.away.Store(false)
		dead := s.deadLetters(plainRecipient, 1)
		require.Equal(t, "invalid", dead[0].reason)
		require.Contains(t, dead[0].description, "too many kinds of data")
		require.NotContains(t, dead[0].description, "No event of the message")
		stop()
		s.has(other, events...)
	})
}

func TestAMessageWithoutEventsIsCompleted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		out := s.sender(plainRecipient)
		out.sendMessage(&azservicebus.Message{Body: []byte("[]"), ContentType: to.Ptr("application/json")})
		out.sendEvents(rt.Event(rt.NewActor()))
		stop := s.startIngestion()
		s.waitUntilStored(1)
		stop()
		require.Empty(t, s.deliveryCounts(""))
		require.Zero(t, s.metric("messages_dead_lettered_total"))
	})
}

// A message with a payload becomes a dead letter. The log does not contain the payload, because
// readers of the log may have no right to read the queue.
func TestThePayloadOfADeadLetterIsNotLogged(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		stop := s.startIngestion()
		out := s.sender(plainRecipient)
		secret, err := json.Marshal("consumption of Mrs. Jensen")
		require.NoError(t, err)
		m := out.message(rt.Event(rt.NewActor()))
		m.Body = fmt.Appendf(nil, `[{"id":"x","payload":%s}`, secret)
		m.MessageID = to.Ptr("message 17")
		out.sendMessage(m)
		s.deadLetters(plainRecipient, 1)
		synctest.Wait()
		stop()
		require.True(t, s.logs.has("message 17"))
		require.False(t, s.logs.has("Jensen"))
	})
}
