package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/memory"
)

// A handClock is a clock that a test sets.
type handClock struct{ now time.Time }

func (c *handClock) pass(d time.Duration) { c.now = c.now.Add(d) }

// serveAt starts a server whose clock the test sets.
func serveAt(t *testing.T) (*hubFixture, *handClock) {
	c := &handClock{time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)}
	f := serve(t, func(o *api.Options, _ *hub.Options) { o.Clock = func() time.Time { return c.now } })
	f.store.Store = memory.New(memory.Options{Clock: func() time.Time { return c.now }})
	return f, c
}

// backlog requires that the backlog headers of the response have the given values.
func (a domainAnswer) backlog(events, age string) domainAnswer {
	a.t.Helper()
	require.Equal(a.t, events, a.header.Get("MessageHub-Backlog"), "events")
	require.Equal(a.t, age, a.header.Get("MessageHub-Backlog-Age"), "age")
	return a
}

func TestBacklog_IsInEachResponse(t *testing.T) {
	f, clock := serveAt(t)
	f.do("GET", "/v1/peek", "").wants(204).backlog("0", "0")
	f.post(202, newEvent(1, "supportsBundling", false))
	clock.pass(90 * time.Minute)
	f.post(202, newEvent(2, "supportsBundling", false), newEvent(3, "origin", "Charges"))
	clock.pass(1500 * time.Millisecond)

	first := f.do("GET", "/v1/peek/timeseries", "").wants(200).backlog("1", "2")
	f.do("GET", "/v1/peek/timeseries", "").wants(200).backlog("1", "2")
	f.do("GET", "/v1/peek", "").wants(200).backlog("2", "2")
	f.do("GET", "/v1/peek/aggregations", "").wants(204).backlog("0", "0")
	charges := f.do("GET", "/v1/peek/masterdata", "").wants(200).backlog("0", "0")
	clock.pass(time.Minute)
	f.do("DELETE", "/v1/dequeue/"+first.header.Get("MessageId"), "").wants(200).backlog("1", "62")
	f.do("DELETE", "/v1/dequeue/"+charges.header.Get("MessageId"), "").wants(200).backlog("0", "0")
	second := f.do("GET", "/v1/peek", "").wants(200).backlog("0", "0")
	f.do("DELETE", "/v1/dequeue/"+second.header.Get("MessageId"), "").wants(200).backlog("0", "0")
}

func TestBacklog_OmitsAnUnknownAge(t *testing.T) {
	f := serve(t)
	f.store.Store = memory.New(memory.Options{Clock: func() time.Time { return time.Time{} }})
	f.post(202, newEvent(1, "supportsBundling", false), newEvent(2))
	f.do("GET", "/v1/peek", "").wants(200).backlog("1", "")
	require.Contains(t, f.do("GET", "/v1/queues", "").wants(200).body, `{"group":"timeseries","waiting":2,"open":`)
}

func TestBacklog_AgeIsNeverNegative(t *testing.T) {
	f, clock := serveAt(t)
	f.post(202, newEvent(1, "supportsBundling", false), newEvent(2))
	clock.pass(-time.Hour)
	f.do("GET", "/v1/peek", "").wants(200).backlog("1", "0")
}

func TestTheQueuesOfAnActorAreListedByGroup(t *testing.T) {
	f, clock := serveAt(t)
	type queues struct {
		Queues []struct {
			Group      string
			Waiting    int
			AgeSeconds int
			Open       *struct {
				BundleID string
				Events   int
				Opened   time.Time
			}
		}
	}
	look := func() (q queues) {
		require.NoError(t, json.Unmarshal([]byte(f.do("GET", "/v1/queues", "").wants(200).body), &q))
		require.Len(t, q.Queues, 3)
		return q
	}
	require.Zero(t, look().Queues[2].Waiting)
	f.post(202, newEvent(1, "supportsBundling", false), newEvent(2), newEvent(3, "origin", "Charges"), newEvent(4, "recipient", "other"))
	clock.pass(time.Hour)
	opened := clock.now
	f.do("GET", "/v1/peek/timeseries?bundleId="+id(71), "").wants(200)
	clock.pass(time.Hour)
	got := look().Queues
	require.Equal(t, "aggregations", got[0].Group)
	require.Zero(t, got[0].Waiting)
	require.Equal(t, "masterdata", got[1].Group)
	require.Equal(t, 1, got[1].Waiting)
	require.Equal(t, 7200, got[1].AgeSeconds)
	require.Nil(t, got[1].Open)
	require.Equal(t, "timeseries", got[2].Group)
	require.Equal(t, 2, got[2].Waiting)
	require.Equal(t, id(71), got[2].Open.BundleID)
	require.Equal(t, 1, got[2].Open.Events)
	require.True(t, opened.Equal(got[2].Open.Opened))
}

func TestQueuesNeedAnActorAndNoQuery(t *testing.T) {
	f := serve(t)
	f.do("GET", "/v1/queues", "", "X-Actor-Id", "").problem(401, "missing-actor")
	f.do("GET", "/v1/queues?group=timeseries", "").problem(400, "invalid")
}

// The hub orders events by recipient. An actor gets the events of a group in the order in which
// they were sent, whatever their content types and origins.
func TestOrderingByRecipientDeliversInTheOrderOfSending(t *testing.T) {
	for ordering, bundles := range map[domain.Ordering]int{domain.ByCabinet: 3, domain.ByRecipient: 9} {
		t.Run(string(ordering), func(t *testing.T) {
			f := serve(t)
			f.store.Store = memory.New(memory.Options{Ordering: ordering})
			for n := range 9 {
				f.post(202, newEvent(n+1, "origin", "Charges", "contentType", string(rune('a'+n%3))))
			}
			var last int64
			n := 0
			for ; ; n++ {
				a := f.do("GET", "/v1/peek", "")
				if a.status == 204 {
					break
				}
				var events []struct{ Sequence int64 }
				require.NoError(t, json.Unmarshal([]byte(a.wants(200).body), &events))
				for _, e := range events {
					if ordering == domain.ByRecipient {
						require.Equal(t, last+1, e.Sequence)
					}
					last = e.Sequence
				}
				f.do("DELETE", "/v1/dequeue/"+a.header.Get("MessageId"), "").wants(200)
			}
			require.Equal(t, bundles, n)
		})
	}
}
