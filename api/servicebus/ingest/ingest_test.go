package ingest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

func TestEventsAreStoredInTheOrderInWhichTheyWereSent(t *testing.T) {
	for _, queue := range []string{fifo, plainRecipient} {
		t.Run(queue, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				const each = 20
				s := newSite(t)
				stop := s.startIngestion()
				out := s.sender(queue)
				actors := []domain.ActorID{rt.NewActor(), rt.NewActor(), rt.NewActor()}
				sent := map[domain.ActorID][]domain.Event{}
				for n := range each {
					for _, actor := range actors {
						events := rt.Events(n%3+1, actor) // each message contains one to three events
						out.sendEvents(events...)
						sent[actor] = append(sent[actor], events...)
					}
				}
				s.waitUntilStored(3 * len(sent[actors[0]]))
				stop()
				for _, actor := range actors {
					s.has(actor, sent[actor]...)
					if queue == fifo {
						require.Empty(t, s.deliveryCounts(actor.String()), "what is stored is completed")
					}
				}
				require.Empty(t, s.deliveryCounts(""))
				require.EqualValues(t, 3*each, s.metric("messages_received_total", queue))
				require.Zero(t, s.metric("inversions_total"))
				require.Zero(t, s.metric("sessions_held"))
				require.Zero(t, s.metric("messages_in_hand"))
			})
		})
	}
}
