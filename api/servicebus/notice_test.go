package servicebus_test

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"slices"
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

	"github.com/messagehub/messagehub/api/servicebus"
	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/internal/bustest"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

var (
	bundle    = bustest.Must(domain.ParseBundleID("0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"))
	recipient = bustest.Must(domain.ParseActorID("5790001330552"))
)

func aNotice(number byte) domain.Notice {
	b := bundle
	b[15] = number
	return domain.Notice{
		Recipient: recipient, Origin: domain.TimeSeries, Bundle: b,
		List: "ab/0001/" + hub.ProcessID(b, recipient) + "_1-7", Number: int64(number),
	}
}

func newNotices(t testing.TB, n *embedded.Namespace, change ...func(*servicebus.NoticeOptions)) *servicebus.Notices {
	t.Helper()
	o := servicebus.NoticeOptions{Open: bustest.Clients(n), Queues: bustest.QueuesOf(bustest.Origins...)}
	for _, c := range change {
		c(&o)
	}
	s := servicebus.NewNotices(o)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

// noticesOf receives count notices that were sent to one domain.
func noticesOf(t testing.TB, n *embedded.Namespace, count int) []*azservicebus.ReceivedMessage {
	t.Helper()
	client, err := bustest.Clients(n)()
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	r, err := client.NewReceiverForQueue(contract.DefaultQueues(domain.TimeSeries.String()).Dequeue, nil)
	require.NoError(t, err)
	var got []*azservicebus.ReceivedMessage
	for len(got) < count {
		messages, err := r.ReceiveMessages(t.Context(), 1, nil)
		require.NoError(t, err)
		for _, m := range messages {
			require.NoError(t, r.CompleteMessage(t.Context(), m, nil))
			got = append(got, m)
		}
	}
	require.Zero(t, n.Stats().Active)
	return got
}

// A notice is encoded byte for byte as the existing domains expect.
func TestNotice_HasTheBytesOfTheContract(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		now := time.Now().Truncate(time.Second)
		n := bustest.Open(t, embedded.Options{})
		s := newNotices(t, n, func(o *servicebus.NoticeOptions) { o.Clock, o.NewID = bustest.ClockAt(now), bustest.NewIDs() })
		require.NoError(t, s.Notify(t.Context(), aNotice(1)))
		m := noticesOf(t, n, 1)[0]
		const process = "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c01_5790001330552"
		const list = "ab/0001/" + process + "_1-7"
		require.Equal(t, hex.Dump([]byte("\x0a"+string(rune(len(list)))+list+"\x12\x0d5790001330552")), hex.Dump(m.Body))
		require.Equal(t, process, m.MessageID)
		require.Equal(t, process, *m.CorrelationID)
		require.Equal(t, map[string]any{
			"OperationTimestamp":     now.UTC().Format("2006-01-02T15:04:05Z"),
			"OperationCorrelationId": process,
			"MessageVersion":         int32(1),
			"MessageType":            "Dequeue",
			"EventIdentification":    "ab000000-0000-4000-8000-000000000001",
		}, m.ApplicationProperties)
		require.Nil(t, m.SessionID)
		require.Zero(t, *m.TimeToLive, "a notice does not expire by itself")
		require.Nil(t, m.ReplyTo)
		require.Nil(t, m.ContentType)
	})(t)
}

func TestNotice_HasTheSameIDWhenItIsRepeated(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		s := newNotices(t, n)
		require.NoError(t, s.Notify(t.Context(), aNotice(1)))
		require.NoError(t, s.Notify(t.Context(), aNotice(1)))
		require.NoError(t, newNotices(t, n).Notify(t.Context(), aNotice(1)), "from another node as well")
		for _, m := range noticesOf(t, n, 3) {
			require.Equal(t, hub.ProcessID(aNotice(1).Bundle, recipient), m.MessageID)
		}
	})(t)
}

func TestNotice_IsStoredOnceByABusThatDetectsDuplicates(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		entities := bustest.Entities()
		for i := range entities.Queues {
			entities.Queues[i].Properties.RequiresDuplicateDetection = true
		}
		n := bustest.Open(t, embedded.Options{Entities: entities})
		s := newNotices(t, n)
		for range 3 {
			require.NoError(t, s.Notify(t.Context(), aNotice(1)))
		}
		require.NoError(t, s.Notify(t.Context(), aNotice(2)))
		noticesOf(t, n, 2)
	})(t)
}

// Connections are lost between notices. The notices arrive in order; after a loss, a notice may
// arrive twice.
func TestNoticesKeepTheOrderOfTheirCalls(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		const many = 50
		n := bustest.Open(t, embedded.Options{})
		s := newNotices(t, n)
		var want, got []string
		for i := range byte(many) {
			require.NoError(t, s.Notify(t.Context(), aNotice(i)))
			want = append(want, hub.ProcessID(aNotice(i).Bundle, recipient))
			if i%10 == 5 {
				n.DropConnections()
			}
		}
		for _, m := range noticesOf(t, n, int(n.Stats().Active)) {
			got = append(got, m.MessageID)
		}
		require.Equal(t, want, slices.Compact(got))
	})(t)
}

func TestManyNoticesShareAConnection(t *testing.T) {
	bustest.WithoutLeaks(t)
	n := bustest.Open(t, embedded.Options{})
	s := newNotices(t, n)
	var all sync.WaitGroup
	for i := range byte(100) {
		all.Go(func() { assert.NoError(t, s.Notify(context.Background(), aNotice(i))) })
	}
	all.Wait()
	require.EqualValues(t, 1, n.Stats().Connections)
	noticesOf(t, n, 100)
}

func TestNotice_FailsIfTheBusRefusesIt(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		entities := bustest.Entities()
		for i := range entities.Queues {
			if entities.Queues[i].Name == "timeseries-dequeue" {
				entities.Queues[i].Name = "elsewhere"
			}
		}
		n := bustest.Open(t, embedded.Options{Entities: entities})
		s := newNotices(t, n)
		err := s.Notify(t.Context(), aNotice(1))
		require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "notify domain TimeSeries that 5790001330552 holds bundle 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c01: send to queue timeseries-dequeue: there is no such queue")

		other := aNotice(1)
		other.Origin = domain.Aggregations
		require.NoError(t, s.Notify(t.Context(), other))
		other.Origin = domain.Charges
		err = s.Notify(t.Context(), other)
		require.Equal(t, domain.Unavailable, domain.KindOf(err))
		require.EqualError(t, err, "notify domain Charges: it has no queues; name them in the configuration")
	})(t)
}

func TestNoticesContinueAfterAnOutageAndAfterAKeyIsCorrected(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		var mended, back atomic.Bool
		s := newNotices(t, n, func(o *servicebus.NoticeOptions) {
			o.Open = func() (*azservicebus.Client, error) {
				connection := n.ConnectionString("")
				if !mended.Load() {
					connection = strings.Replace(connection, embedded.WellKnownKey, "another", 1)
				}
				return bustest.NewClient(connection, func(ctx context.Context) (net.Conn, error) {
					if !back.Load() {
						return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
					}
					return n.Dial(ctx)
				})
			}
		})
		err := s.Notify(t.Context(), aNotice(1))
		require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "the bus cannot be reached")
		back.Store(true)
		err = s.Notify(t.Context(), aNotice(1))
		require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "check its key, or its role")
		mended.Store(true)
		require.NoError(t, s.Notify(t.Context(), aNotice(1)))
	})(t)
}

// A silencedConn passes on the requests of a client. While on is true, it blocks the replies.
type silencedConn struct {
	net.Conn
	on *atomic.Bool
}

func (s *silencedConn) Read(b []byte) (int, error) {
	for {
		k, err := s.Conn.Read(b)
		if err != nil || !s.on.Load() {
			return k, err
		}
	}
}

// The bus accepts a notice, but its reply is lost. Notify returns Uncertain.
func TestNotice_IsUncertainIfTheReplyIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, err := embedded.Open(embedded.Options{Entities: bustest.Entities()})
		require.NoError(t, err)
		var on atomic.Bool
		s := servicebus.NewNotices(servicebus.NoticeOptions{Queues: bustest.QueuesOf(domain.TimeSeries), Open: func() (*azservicebus.Client, error) {
			return bustest.NewClient(n.ConnectionString(""), func(ctx context.Context) (net.Conn, error) {
				c, err := n.Dial(ctx)
				return &silencedConn{c, &on}, err
			})
		}})
		require.NoError(t, s.Notify(t.Context(), aNotice(1)))
		on.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err = s.Notify(ctx, aNotice(2))
		require.Equal(t, domain.Uncertain, domain.KindOf(err), "%v", err)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		on.Store(false)
		require.NoError(t, s.Close(t.Context()))
		require.EqualValues(t, 2, n.Stats().Active)
		require.NoError(t, n.Close())
	})
}

func TestNotices_SendNothingAfterClose(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		s := newNotices(t, n)
		ended, end := context.WithCancel(t.Context())
		end()
		err := s.Notify(ended, aNotice(1))
		require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, s.Close(t.Context()))
		err = s.Notify(t.Context(), aNotice(1))
		require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
		require.Zero(t, n.Stats().Active)
	})(t)
}

func TestNoticesAreCountedByOutcome(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		registry := prometheus.NewRegistry()
		n := bustest.Open(t, embedded.Options{})
		s := newNotices(t, n, func(o *servicebus.NoticeOptions) { o.Registerer = registry })
		require.NoError(t, s.Notify(t.Context(), aNotice(1)))
		require.NoError(t, s.Notify(t.Context(), aNotice(2)))
		require.NoError(t, s.Close(t.Context()))
		require.Error(t, s.Notify(t.Context(), aNotice(3)))
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
	# HELP messagehub_servicebus_notices_total Notices to domains that an actor holds a bundle, by origin and outcome: accepted, unavailable (the bus), uncertain (it may have been accepted).
	# TYPE messagehub_servicebus_notices_total counter
	messagehub_servicebus_notices_total{origin="Aggregations",outcome="accepted"} 0
	messagehub_servicebus_notices_total{origin="Aggregations",outcome="unavailable"} 0
	messagehub_servicebus_notices_total{origin="Aggregations",outcome="uncertain"} 0
	messagehub_servicebus_notices_total{origin="TimeSeries",outcome="accepted"} 2
	messagehub_servicebus_notices_total{origin="TimeSeries",outcome="unavailable"} 1
	messagehub_servicebus_notices_total{origin="TimeSeries",outcome="uncertain"} 0
	`)))
	})(t)
}

// A client renews its tokens in the background even if it is idle. While the bus is unavailable, it
// waits between attempts, as its retry options specify.
func TestAnIdleConnectionWaitsQuietlyForAnUnavailableBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		ctx, leave := context.WithCancel(t.Context())
		var away atomic.Bool
		var dialled atomic.Int64
		const many = 100_000
		s := newNotices(t, n, func(o *servicebus.NoticeOptions) {
			o.Open = func() (*azservicebus.Client, error) {
				return bustest.NewClient(n.ConnectionString(""), func(ctx context.Context) (net.Conn, error) {
					if !away.Load() {
						return n.Dial(ctx)
					}
					if dialled.Add(1) == many {
						leave()
					}
					return nil, errors.New("connection refused")
				})
			}
		})
		require.NoError(t, s.Notify(t.Context(), aNotice(1)))
		away.Store(true)
		n.DropConnections()
		select {
		case <-ctx.Done():
		case <-time.After(3 * time.Hour): // longer than the validity of a token, which is two hours
		}
		tries := dialled.Load()
		away.Store(false)
		require.Positive(t, tries)
		require.Less(t, tries, int64(many), "no time passes while it spins")
		require.NoError(t, s.Notify(t.Context(), aNotice(2)))
		leave()
	})
}
