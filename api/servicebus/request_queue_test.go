package servicebus_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/domain"
)

// An operator has a namespace in hand.
type operator struct {
	t    *testing.T
	door *admin.Client
}

func newOperator(t *testing.T, n *embedded.Namespace) *operator {
	t.Helper()
	door, err := admin.NewClientFromConnectionString(n.ConnectionString(""), &admin.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: inside{n.Handler()}}})
	require.NoError(t, err)
	return &operator{t, door}
}

// inside brings requests to a handler without a network.
type inside struct{ handler http.Handler }

func (i inside) Do(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	i.handler.ServeHTTP(answer, r)
	return answer.Result(), nil
}

func (o *operator) create(queue string) {
	o.t.Helper()
	_, err := o.door.CreateQueue(o.t.Context(), queue, &admin.CreateQueueOptions{Properties: &admin.QueueProperties{RequiresSession: to.Ptr(true)}})
	require.NoError(o.t, err)
}

func (o *operator) remove(queue string) {
	o.t.Helper()
	_, err := o.door.DeleteQueue(o.t.Context(), queue, nil)
	require.NoError(o.t, err)
}

func TestAQueueThatIsMissingIsNamedAndUsedOnceItIsThere(t *testing.T) {
	for _, missing := range []string{"timeseries", "timeseries-reply"} {
		t.Run(missing, func(t *testing.T) {
			withoutLeaks(t)
			entities := domainEntities()
			entities.Queues = slices.DeleteFunc(entities.Queues, func(q embedded.QueueSetup) bool { return q.Name == missing })
			n := openBus(t, embedded.Options{Entities: entities})
			r := newRequests(t, n)
			for range 2 {
				_, err := ask(t, r, aRequest())
				require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
				require.ErrorContains(t, err, "queue "+missing+": there is no such queue")
			}
			answered := func(origin domain.Origin) {
				serveAs(t, n, origin, func(q asked) []*azservicebus.Message { return one(q.content(uri)) })
				q := aRequest()
				q.Origin = origin
				reply, err := ask(t, r, q)
				require.NoError(t, err)
				require.Equal(t, uri, reply.URI)
			}
			answered(domain.Aggregations) // others are served meanwhile
			newOperator(t, n).create(missing)
			answered(domain.TimeSeries)
		})
	}
}

// The bus ends the link to a queue that is deleted. The simulation found that hubs
// went on with it, and so asked a domain nothing any more until they were restarted.
func TestAQueueThatWasDeletedIsUsedOnceItIsThereAgain(t *testing.T) {
	for _, queue := range []string{"timeseries", "timeseries-reply"} {
		t.Run(queue, timeless(func(t *testing.T) {
			n := openBus(t, embedded.Options{})
			r, o := newRequests(t, n), newOperator(t, n)
			answered := func() {
				t.Helper()
				d := newDomain(t, n, domain.TimeSeries)
				ctx, stop := context.WithCancel(t.Context())
				var serving sync.WaitGroup
				serving.Go(func() {
					for q, ok := d.take(ctx); ok; q, ok = d.take(ctx) {
						d.send(t, q.content(uri))
					}
				})
				reply, err := ask(t, r, aRequest())
				stop()
				serving.Wait()
				require.NoError(t, err)
				require.Equal(t, uri, reply.URI)
			}
			answered()
			o.remove(queue)
			for range 3 {
				_, err := ask(t, r, aRequest())
				require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
				require.ErrorContains(t, err, "queue "+queue+": there is no such queue")
			}
			o.create(queue)
			answered()
			o.remove(queue)
			o.create(queue)
			answered()
		}))
	}
}

func TestAQueueWithoutSessionsIsNoQueueForReplies(t *testing.T) {
	timeless(func(t *testing.T) {
		entities := domainEntities()
		for i := range entities.Queues {
			entities.Queues[i].Properties.RequiresSession = false
		}
		_, err := ask(t, newRequests(t, openBus(t, embedded.Options{Entities: entities})), aRequest())
		require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "check whether it should require sessions")
	})(t)
}
