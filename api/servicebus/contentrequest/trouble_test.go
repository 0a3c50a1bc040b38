package contentrequest_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/contentrequest"
	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/internal/bustest"
	"github.com/messagehub/messagehub/domain"
)

// oneConnection is an option that makes all sessions share one connection.
func oneConnection(o *contentrequest.Options) { o.Connections = 1 }

func TestAReplyIsReceivedAfterConnectionsWereLost(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		d := newDomain(t, n, domain.TimeSeries)
		r := newRequests(t, n)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
			a := startRequest(ctx, r, aRequest())
			q := waitForRequest(t, d)
			n.DropConnections()
			d.send(t, q.content(uri))
			reply, err := a.wait()
			cancel()
			require.NoError(t, err)
			require.Equal(t, uri, reply.URI)
			n.DropConnections() // the loss of the connections also breaks the sender of the next request
		}
	})(t)
}

// Connections are lost repeatedly while many requests are in flight. Every request succeeds.
func TestRequest_SucceedsInSpiteOfLostConnections(t *testing.T) {
	bustest.WithoutLeaks(t)
	n := bustest.Open(t, embedded.Options{})
	serve(t, n, func(q receivedRequest) []*azservicebus.Message { return one(q.content(uri)) })
	r := newRequests(t, n)
	var asking sync.WaitGroup
	var answered, failed atomic.Int64
	for range 8 {
		asking.Go(func() {
			for range 8 {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				reply, err := r.Request(ctx, aRequest())
				cancel()
				if err == nil {
					answered.Add(1)
					assert.Equal(t, uri, reply.URI)
				} else {
					failed.Add(1)
					assert.True(t, domain.KindOf(err) == domain.Unavailable || errors.Is(err, context.DeadlineExceeded), "%v", err)
				}
				if (answered.Load()+failed.Load())%16 == 0 {
					n.DropConnections()
				}
			}
		})
	}
	asking.Wait()
	require.Positive(t, answered.Load())
	reply, err := sendRequest(t, r, aRequest()) // once the connections are stable, requests succeed
	require.NoError(t, err)
	require.Equal(t, uri, reply.URI)
	t.Logf("%d answered, %d failed", answered.Load(), failed.Load())
}

// Microsoft's client panics if a property of the domain's reply has an unexpected type. The request
// then returns a Failure, which says that the reply is malformed.
func TestReply_OnWhichTheClientPanicsIsAFailureOfTheDomain(t *testing.T) {
	for _, property := range []string{"DeadLetterReason", "DeadLetterErrorDescription"} {
		t.Run(property, bustest.InBubble(func(t *testing.T) {
			n := bustest.Open(t, embedded.Options{})
			var well atomic.Bool
			serve(t, n, func(q receivedRequest) []*azservicebus.Message {
				m := q.content(uri)
				if !well.Load() {
					m.ApplicationProperties = map[string]any{property: int64(42)}
				}
				return one(m)
			})
			r := newRequests(t, n, oneConnection)
			reply, err := sendRequest(t, r, aRequest())
			require.NoError(t, err)
			require.Equal(t, "malformed-reply", reply.Failure.Reason)
			require.Contains(t, reply.Failure.Text, "DeadLetterReason or DeadLetterErrorDescription that is no string")
			well.Store(true)
			reply, err = sendRequest(t, r, aRequest())
			require.NoError(t, err)
			require.Equal(t, uri, reply.URI)
			require.EqualValues(t, 3, n.Stats().Connections, "the connection is as good as before")
		}))
	}
}

func TestRequest_UsesACorrectedKey(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		serve(t, n, func(q receivedRequest) []*azservicebus.Message { return one(q.content(uri)) })
		var log bytes.Buffer
		key := "no key of this bus"
		var mu sync.Mutex
		r := newRequests(t, n, func(o *contentrequest.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			o.Open = func() (*azservicebus.Client, error) {
				mu.Lock()
				defer mu.Unlock()
				return bustest.NewClient(strings.Replace(n.ConnectionString(""), embedded.WellKnownKey, key, 1), n.Dial)
			}
		})
		_, err := sendRequest(t, r, aRequest())
		require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "check its key, or its role")
		require.NotContains(t, err.Error(), key)
		mu.Lock()
		key = embedded.WellKnownKey
		mu.Unlock()
		reply, err := sendRequest(t, r, aRequest())
		require.NoError(t, err)
		require.Equal(t, uri, reply.URI)
		require.NoError(t, r.Close(t.Context()))
		require.NotContains(t, log.String(), "no key of this bus")
		require.NotContains(t, log.String(), embedded.WellKnownKey)
	})(t)
}

func TestRequest_SucceedsOnceTheBusIsAvailableAgain(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		serve(t, n, func(q receivedRequest) []*azservicebus.Message { return one(q.content(uri)) })
		var back atomic.Bool
		r := newRequests(t, n, func(o *contentrequest.Options) {
			o.Open = func() (*azservicebus.Client, error) {
				return bustest.NewClient(n.ConnectionString(""), func(ctx context.Context) (net.Conn, error) {
					if !back.Load() {
						return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
					}
					return n.Dial(ctx)
				})
			}
		})
		_, err := sendRequest(t, r, aRequest())
		require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "the bus cannot be reached")
		back.Store(true)
		reply, err := sendRequest(t, r, aRequest())
		require.NoError(t, err)
		require.Equal(t, uri, reply.URI)
	})(t)
}

func TestRequest_BlamesTheBusIfNoClientCanBeCreated(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		r := contentrequest.New(contentrequest.Options{
			Queues: bustest.QueuesOf(domain.TimeSeries),
			Open:   func() (*azservicebus.Client, error) { return nil, errors.New("no credential") },
		})
		defer r.Close(context.Background())
		_, err := sendRequest(t, r, aRequest())
		require.Equal(t, domain.Unavailable, domain.KindOf(err))
		require.ErrorContains(t, err, "no client for Service Bus could be made; check its settings: no credential")
	})(t)
}

// The bus does not respond. The request ends at its deadline, with an error that blames the bus.
func TestRequest_BlamesTheBusIfTheBusDoesNotReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var far []net.Conn
		var mu sync.Mutex
		r := contentrequest.New(contentrequest.Options{
			Queues: bustest.QueuesOf(domain.TimeSeries),
			Open: func() (*azservicebus.Client, error) {
				return bustest.NewClient("Endpoint=sb://away.localhost;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true", func(context.Context) (net.Conn, error) {
					near, other := net.Pipe()
					mu.Lock()
					far = append(far, other)
					mu.Unlock()
					return near, nil
				})
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		_, err := r.Request(ctx, aRequest())
		require.Equal(t, 10*time.Second, time.Since(began))
		require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "the bus has not accepted the request in time")
		require.NotErrorIs(t, err, context.DeadlineExceeded, "which would be the domain's fault")
		require.NoError(t, r.Close(t.Context()))
		for _, c := range far {
			require.NoError(t, c.Close())
		}
	})
}

// Some callers cancel their requests while links are opened. The requests of the remaining callers
// succeed.
func TestCancelledRequestsDoNotAffectOthers(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		d := newDomain(t, n, domain.TimeSeries)
		r := newRequests(t, n, oneConnection)
		ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
		defer cancel()
		q := aRequest()
		q.Recipient = bustest.Must(domain.ParseActorID("patient"))
		a := startRequest(ctx, r, q)
		waiting := waitForRequest(t, d)
		for range 20 {
			ctx, leave := context.WithTimeout(t.Context(), longTimeout)
			hasty := startRequest(ctx, r, aRequest())
			d.nextRequest(t)
			leave()
			_, err := hasty.wait()
			require.ErrorIs(t, err, context.Canceled)
		}
		d.send(t, waiting.content(uri))
		reply, err := a.wait()
		require.NoError(t, err)
		require.Equal(t, uri, reply.URI)
		require.EqualValues(t, 3, n.Stats().Connections)
	})(t)
}

func TestRequest_OpensItsSessionAgainAfterALostLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entities := bustest.Entities()
		for i := range entities.Queues {
			entities.Queues[i].Properties.LockDuration = "PT5S"
		}
		n, err := embedded.Open(embedded.Options{Entities: entities})
		require.NoError(t, err)
		var opened atomic.Int64
		r := contentrequest.New(contentrequest.Options{Queues: bustest.QueuesOf(domain.TimeSeries), Open: func() (*azservicebus.Client, error) {
			opened.Add(1)
			return bustest.Clients(n)()
		}})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		a := startRequest(ctx, r, aRequest())
		d := newDomain(t, n, domain.TimeSeries)
		q := waitForRequest(t, d)
		<-time.After(20 * time.Second)
		d.send(t, q.content(uri))
		reply, err := a.wait()
		require.NoError(t, err)
		require.Equal(t, uri, reply.URI)
		require.NoError(t, r.Close(t.Context()))
		require.Greater(t, opened.Load(), int64(2), "one for requests, and more than one for replies")
		require.NoError(t, d.client.Close(t.Context()))
		require.NoError(t, n.Close())
	})
}

func TestRequestsAreCountedByOutcome(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		registry := prometheus.NewRegistry()
		n := bustest.Open(t, embedded.Options{})
		d := newDomain(t, n, domain.TimeSeries)
		r := newRequests(t, n, func(o *contentrequest.Options) { o.Registerer = registry })
		answers := []func(receivedRequest) *azservicebus.Message{
			func(q receivedRequest) *azservicebus.Message { return q.content(uri) },
			func(q receivedRequest) *azservicebus.Message { return q.content(uri) },
			func(q receivedRequest) *azservicebus.Message { return q.raw([]byte("rubbish")) },
			func(q receivedRequest) *azservicebus.Message {
				return q.reply(&contract.DataBundleResponseContract{RequestId: q.RequestId, Reply: failure(1, "")})
			},
		}
		for _, answer := range answers {
			ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
			a := startRequest(ctx, r, aRequest())
			d.send(t, answer(d.nextRequest(t)))
			_, err := a.wait()
			cancel()
			require.NoError(t, err)
		}
		ctx := newManualContext()
		a := startRequest(ctx, r, aRequest())
		waitForRequest(t, d)
		ctx.end()
		_, err := a.wait()
		require.Error(t, err)
		left, leave := context.WithCancel(newManualContext())
		leave()
		_, err = r.Request(left, aRequest())
		require.Error(t, err)
		require.NoError(t, r.Close(t.Context()))
		_, err = sendRequest(t, r, aRequest())
		require.Error(t, err)
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
	# HELP messagehub_servicebus_requests_total Requests to domains for content, by origin and outcome: content; what the domain says it failed with; malformed-reply; no-answer; left (by the actor); busy or unavailable (the bus).
	# TYPE messagehub_servicebus_requests_total counter
	messagehub_servicebus_requests_total{origin="Aggregations",outcome="busy"} 0
	messagehub_servicebus_requests_total{origin="Aggregations",outcome="content"} 0
	messagehub_servicebus_requests_total{origin="Aggregations",outcome="dataset-not-available"} 0
	messagehub_servicebus_requests_total{origin="Aggregations",outcome="dataset-not-found"} 0
	messagehub_servicebus_requests_total{origin="Aggregations",outcome="internal-error"} 0
	messagehub_servicebus_requests_total{origin="Aggregations",outcome="left"} 0
	messagehub_servicebus_requests_total{origin="Aggregations",outcome="malformed-reply"} 0
	messagehub_servicebus_requests_total{origin="Aggregations",outcome="no-answer"} 0
	messagehub_servicebus_requests_total{origin="Aggregations",outcome="unavailable"} 0
	messagehub_servicebus_requests_total{origin="TimeSeries",outcome="busy"} 0
	messagehub_servicebus_requests_total{origin="TimeSeries",outcome="content"} 2
	messagehub_servicebus_requests_total{origin="TimeSeries",outcome="dataset-not-available"} 1
	messagehub_servicebus_requests_total{origin="TimeSeries",outcome="dataset-not-found"} 0
	messagehub_servicebus_requests_total{origin="TimeSeries",outcome="internal-error"} 0
	messagehub_servicebus_requests_total{origin="TimeSeries",outcome="left"} 1
	messagehub_servicebus_requests_total{origin="TimeSeries",outcome="malformed-reply"} 1
	messagehub_servicebus_requests_total{origin="TimeSeries",outcome="no-answer"} 1
	messagehub_servicebus_requests_total{origin="TimeSeries",outcome="unavailable"} 1
	# HELP messagehub_servicebus_replies_refused_total Messages in the session of a reply that were none, by origin and reason: malformed-reply, foreign-request, foreign-bundle.
	# TYPE messagehub_servicebus_replies_refused_total counter
	messagehub_servicebus_replies_refused_total{origin="Aggregations",reason="foreign-bundle"} 0
	messagehub_servicebus_replies_refused_total{origin="Aggregations",reason="foreign-request"} 0
	messagehub_servicebus_replies_refused_total{origin="Aggregations",reason="malformed-reply"} 0
	messagehub_servicebus_replies_refused_total{origin="TimeSeries",reason="foreign-bundle"} 0
	messagehub_servicebus_replies_refused_total{origin="TimeSeries",reason="foreign-request"} 1
	messagehub_servicebus_replies_refused_total{origin="TimeSeries",reason="malformed-reply"} 1
	`), "messagehub_servicebus_requests_total", "messagehub_servicebus_replies_refused_total"))
	})(t)
}
