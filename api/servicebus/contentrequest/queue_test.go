package contentrequest_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/internal/bustest"
	"github.com/messagehub/messagehub/domain"
)

func TestRequest_UsesAMissingQueueOnceItIsCreated(t *testing.T) {
	for _, missing := range []string{"timeseries", "timeseries-reply"} {
		t.Run(missing, func(t *testing.T) {
			bustest.WithoutLeaks(t)
			entities := bustest.Entities()
			entities.Queues = slices.DeleteFunc(entities.Queues, func(q embedded.QueueSetup) bool { return q.Name == missing })
			n := bustest.Open(t, embedded.Options{Entities: entities})
			r := newRequests(t, n)
			for range 2 {
				_, err := sendRequest(t, r, aRequest())
				require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
				require.ErrorContains(t, err, "queue "+missing+": there is no such queue")
			}
			answered := func(origin domain.Origin) {
				serveAs(t, n, origin, func(q receivedRequest) []*azservicebus.Message { return one(q.content(uri)) })
				q := aRequest()
				q.Origin = origin
				reply, err := sendRequest(t, r, q)
				require.NoError(t, err)
				require.Equal(t, uri, reply.URI)
			}
			answered(domain.Aggregations) // domains whose queues exist still reply
			bustest.NewOperator(t, n).CreateWithSessions(missing)
			answered(domain.TimeSeries)
		})
	}
}

// The bus ends the link to a deleted queue. When the queue exists again, a request must reach the
// domain. The simulation found hubs that used the ended link until they were restarted.
func TestRequest_UsesADeletedQueueOnceItIsCreatedAgain(t *testing.T) {
	for _, queue := range []string{"timeseries", "timeseries-reply"} {
		t.Run(queue, bustest.InBubble(func(t *testing.T) {
			n := bustest.Open(t, embedded.Options{})
			r, o := newRequests(t, n), bustest.NewOperator(t, n)
			answered := func() {
				t.Helper()
				d := newDomain(t, n, domain.TimeSeries)
				ctx, stop := context.WithCancel(t.Context())
				var serving sync.WaitGroup
				serving.Go(func() {
					for q, ok := d.receiveRequest(ctx); ok; q, ok = d.receiveRequest(ctx) {
						d.send(t, q.content(uri))
					}
				})
				reply, err := sendRequest(t, r, aRequest())
				stop()
				serving.Wait()
				require.NoError(t, err)
				require.Equal(t, uri, reply.URI)
			}
			answered()
			o.Delete(queue)
			for range 3 {
				_, err := sendRequest(t, r, aRequest())
				require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
				require.ErrorContains(t, err, "queue "+queue+": there is no such queue")
			}
			o.CreateWithSessions(queue)
			answered()
			o.Delete(queue)
			o.CreateWithSessions(queue)
			answered()
		}))
	}
}

func TestRequest_FailsIfTheReplyQueueHasNoSessions(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		entities := bustest.Entities()
		for i := range entities.Queues {
			entities.Queues[i].Properties.RequiresSession = false
		}
		_, err := sendRequest(t, newRequests(t, bustest.Open(t, embedded.Options{Entities: entities})), aRequest())
		require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "check whether it should require sessions")
	})(t)
}
