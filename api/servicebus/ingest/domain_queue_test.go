package ingest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/ingest"
	"github.com/messagehub/messagehub/domain"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

func TestDomainQueue_AcceptsOnlyEventsOfItsOrigin(t *testing.T) {
	const own = "charges-announcements"
	inBubble(t, func(t *testing.T) {
		s := newSite(t, func(o *embedded.Options) {
			q := embedded.QueueSetup{Name: own}
			q.Properties.RequiresSession = true
			o.Entities.Queues = append(o.Entities.Queues, q)
		})
		actor := rt.NewActor()
		mine := []domain.Event{rt.Event(actor, rt.WithOrigin(domain.Charges)), rt.Event(actor, rt.WithOrigin(domain.Charges)), rt.Event(actor, rt.WithOrigin(domain.Charges))}
		foreign := rt.Event(actor, rt.WithOrigin(domain.TimeSeries))
		out, shared := s.sender(own), s.sender(fifo)
		out.sessions = true
		out.sendEvents(mine[0])
		out.sendEvents(mine[1], foreign)
		out.sendEvents(foreign)
		out.sendEvents(mine[2])
		stop := s.startIngestion(func(o *ingest.Options) {
			o.DomainQueues = []ingest.DomainQueue{{Queue: own, Origin: domain.Charges}}
		})
		eventually(t, "two dead letters", func() bool { return s.metric("messages_dead_lettered_total", "wrong-origin", own) == 2 })
		for range 2 {
			dead := s.deadLetters(own, 1)
			require.Equal(t, "wrong-origin", dead[0].reason)
			require.Contains(t, dead[0].description, "This queue is for events of Charges, and event "+foreign.ID.String()+" is of TimeSeries.")
		}
		s.waitUntilStored(2)
		require.True(t, s.logs.has("wrong-origin"))

		shared.sendEvents(foreign) // the shared queue accepts an event of any origin
		s.waitUntilStored(3)
		stop()
		s.has(actor, mine[0], mine[2], foreign)
	})
}
