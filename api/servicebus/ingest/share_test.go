package ingest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/ingest"
	"github.com/messagehub/messagehub/domain"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// Some sessions have many messages. A session with one message does not wait until they are empty.
func TestBusySession_YieldsToOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const busy, turn = 200, 10
		s := newSite(t)
		out := s.sender(fifo)
		loads := [][]domain.Event{rt.Events(busy, rt.NewActor()), rt.Events(busy, rt.NewActor()), rt.Events(busy, rt.NewActor())}
		quiet := rt.Event(rt.NewActor())
		for n := range busy {
			for i := range loads {
				out.sendEvents(loads[i][n])
			}
			if n == turn {
				out.sendEvents(quiet)
			}
		}
		stop := s.startIngestion(func(o *ingest.Options) { o.Sessions, o.Limits.TurnMessages = 1, turn })
		s.waitUntilStored(3*busy + 1)
		stop()
		stored := slices.Concat(s.hub.saves...)
		done := 0 // number of busy actors whose last event was stored before the event of the quiet actor
		for _, events := range loads {
			if slices.Index(stored, events[busy-1].ID) < slices.Index(stored, quiet.ID) {
				done++
			}
			s.has(events[0].Recipient, events...)
		}
		require.LessOrEqual(t, done, 1, "the bus may offer the same session several times in a row")
		require.Zero(t, s.metric("inversions_total"))
	})
}

// The number of sessions does not exceed the limit. No session yields its slot, because closing and
// accepting sessions costs more than serving them.
func TestSessions_DoNotYieldWithoutNeed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const sessions = 4
		s := newSite(t)
		stop := s.startIngestion(func(o *ingest.Options) { o.Sessions = sessions })
		out := s.sender(fifo)
		var actors [sessions]domain.ActorID
		for i := range actors {
			actors[i] = rt.NewActor()
		}
		for range 30 { // seconds
			for _, actor := range actors {
				out.sendEvents(rt.Event(actor))
			}
			<-time.After(time.Second)
			require.EqualValues(t, sessions, s.metric("sessions_held"))
		}
		<-time.After(10 * time.Second)
		require.Zero(t, s.metric("sessions_held"), "but sessions without messages are given back")
		stop()
	})
}

// While the store is slow, the number and the bytes of held messages stay within the limits.
func TestHeldMessagesAreBounded(t *testing.T) {
	for _, tc := range []struct {
		name     string
		limits   ingest.Limits
		sessions int
		most     int
	}{
		{"the messages of a lane", ingest.Limits{ReceiverMessages: 7}, 1, 7},
		{"the bytes of a session", ingest.Limits{ReceiverBytes: 2000}, 1, 5}, // the hub counts 400 bytes for each event
		{"the messages of all", ingest.Limits{Messages: 20}, 8, 20},
		{"the bytes of all", ingest.Limits{Bytes: 4000}, 8, 10 + 8}, // each loop may exceed the limit by one event
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newSite(t)
				s.hub.before.Store(failWith(errBroken))
				out := s.sender(fifo)
				var sent [][]domain.Event
				for range tc.sessions {
					events := rt.Events(20, rt.NewActor())
					for _, e := range events {
						out.sendEvents(e)
					}
					sent = append(sent, events)
				}
				stop := s.startIngestion(func(o *ingest.Options) { o.Limits, o.Sessions, o.Queue = tc.limits, tc.sessions, "" })
				<-time.After(time.Minute)
				held := int(s.metric("messages_in_hand"))
				require.LessOrEqual(t, held, tc.most)
				require.GreaterOrEqual(t, held, min(tc.most, 7)-tc.sessions, "there is room for some")
				s.hub.before.Store(nil)
				s.waitUntilStored(20 * tc.sessions)
				stop()
				for _, events := range sent {
					s.has(events[0].Recipient, events...)
				}
				require.Zero(t, s.metric("messages_in_hand"))
			})
		})
	}
}

// Messages that arrive during a save are stored together in the next save.
func TestMessages_ThatArriveDuringASaveAreSavedTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, queue string) {
		s := newSite(t)
		events := rt.Events(50, rt.NewActor())
		s.sendByNewClient(queue, events)
		s.holdFirstSave(50)
		stop := s.startIngestion()
		s.waitUntilStored(50)
		stop()
		require.LessOrEqual(t, len(s.hub.saves), 3)
		s.has(events[0].Recipient, events...)
	})
}
