package push

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A bill measures the request units of each step of deliveries with payloads of 256 bytes. One of the
// steps is the removal of expired documents.
type bill struct {
	*life
	node  *Store
	steps map[string]float64

	published int64
}

func newBill(t *testing.T) *bill {
	b := &bill{}
	clock := func() time.Time {
		if b.life == nil {
			return time.Now()
		}
		return b.clock.now
	}
	b.life, b.steps = newLife(t, newRig(t, embedded.Options{Pessimistic: true, Clock: clock}), 0, false, Options{}), make(map[string]float64)
	b.node = b.startStore(0)
	b.owner.Limit = domain.MaxConcurrency
	b.appendMessages(1, "")
	b.steps = make(map[string]float64)
	end, err := b.node.End(t.Context(), b.stream)
	require.NoError(t, err)
	require.NoError(t, b.node.Create(t.Context(), b.id, domain.Standing{Stream: b.stream, Segment: end.Segment, At: end.Positions}))
	require.NoError(t, b.loadCursor(b.node))
	return b
}

// payFor runs f and adds its request units to a step.
func (b *bill) payFor(step string, f func()) {
	before := b.engine.RequestUnits()
	f()
	b.steps[step] += b.engine.RequestUnits() - before
}

// appendMessages publishes n messages in one call.
func (b *bill) appendMessages(n int, id string) {
	messages := repositorytest.Messages(n)
	for i := range messages {
		messages[i].Payload = fmt.Appendf(nil, "%0256d", i)
		if id != "" {
			messages[i].ID = fmt.Sprintf("%s-%d", id, i)
		}
	}
	b.payFor("append", func() {
		appended, err := b.node.Append(b.Context(), b.stream, messages)
		require.NoError(b, err)
		b.published = appended[n-1].Position.Number + 1
	})
}

// takeEntries adds all waiting entries to the cursor.
func (b *bill) takeEntries() {
	b.payFor("read", func() {
		for {
			found, err := b.node.Read(b.Context(), b.stream, b.cursor.Position(0), 100)
			require.NoError(b, err)
			for _, e := range found.Entries {
				if !b.cursor.CanTake(0, b.clock.now) {
					return
				}
				b.cursor.Take(e.Position, true)
			}
			if b.cursor.Position(0).Number >= b.published {
				return // the cursor knows the end of the stream from the append, so it sends no further read
			}
		}
	})
}

// settleCalls completes all calls with the given status and stores their results together.
func (b *bill) settleCalls(status int) (calls int) {
	for {
		call, ok := b.cursor.Next(b.clock.now)
		if !ok {
			break
		}
		b.cursor.Begin(call)
		b.cursor.Settle(domain.Outcome{Entry: call.EntryID, Attempts: call.Attempts, Published: b.clock.now, Answer: domain.Answer{Began: b.clock.now, Took: 3 * time.Millisecond, Status: status}})
		calls++
	}
	b.payFor("settle", func() { require.NoError(b, b.storeSettlement(b.node)) })
	return calls
}

// expireEntries deletes all expiring documents of the stream, because a deletion costs as much as an
// expiry in Cosmos DB.
func (b *bill) expireEntries() {
	type document struct {
		ID  string `json:"id"`
		TTL int    `json:"ttl"`
	}
	c := b.node.client.Begin("test")
	key := segmentKey(b.stream, 0)
	all, err := client.All[document](b.Context(), c.Query(b.node.streams, key, "SELECT c.id, c.ttl FROM c WHERE IS_DEFINED(c.ttl)"))
	require.NoError(b, err)
	b.payFor("expire", func() {
		for _, d := range all {
			require.Positive(b, d.TTL)
			require.NoError(b, c.DeleteIfExists(b.Context(), b.node.streams, key, d.ID))
		}
	})
}

// totalUnits logs the request units of each step and returns their sum, divided by n deliveries.
func (b *bill) totalUnits(n int) float64 {
	sum, text := 0.0, ""
	for _, step := range slices.Sorted(maps.Keys(b.steps)) {
		sum += b.steps[step] / float64(n)
		text += fmt.Sprintf(" %s %.2f", step, b.steps[step]/float64(n))
	}
	b.Logf("%.2f RU:%s", sum, text)
	return sum
}

func TestADelivery_CostsUpToItsLimit(t *testing.T) {
	for _, tc := range []struct {
		name    string
		id      string
		atOnce  int
		rounds  int
		limitRU float64
	}{
		{"alone", "", 1, 64, 27},
		{"alone, with an id of the sender", "id", 1, 64, 38},
		{"50 at a time", "", 50, 20, 1.2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBill(t)
			requests := b.engine.Requests()
			for i := range tc.rounds {
				id := tc.id
				if id != "" {
					id = fmt.Sprint(id, i)
				}
				b.appendMessages(tc.atOnce, id)
				b.takeEntries()
				require.Equal(t, tc.atOnce, b.settleCalls(200))
				b.clock.now = b.clock.now.Add(time.Second)
			}
			n := tc.atOnce * tc.rounds
			t.Logf("%.2f requests", float64(b.engine.Requests()-requests)/float64(n))
			b.expireEntries()
			require.LessOrEqual(t, b.totalUnits(n), tc.limitRU)
			require.EqualValues(t, n, b.cursor.Standing().Counters.Delivered)
		})
	}
}

func TestTheFirstAppend_CostsUpToItsLimit(t *testing.T) {
	b := newBill(t)
	b.stream, b.steps = repositorytest.NewStream(), make(map[string]float64)
	requests := b.engine.Requests()
	b.appendMessages(1, "")
	require.EqualValues(t, 2, b.engine.Requests()-requests, "a read of the head, and its creation")
	require.LessOrEqual(t, b.totalUnits(1), 8.0)
}

// A message to many consumers is one append. Each consumer adds a settlement, which includes the marks of
// its cursor. Each watched bundle has a stream with one entry.
func TestABroadcast_CostsUpToItsLimit(t *testing.T) {
	for _, tc := range []struct {
		name      string
		id        string
		consumers int
		atOnce    int
		rounds    int
		limitRU   float64 // limit for the request units per delivery
	}{
		{"alone", "", 1, 1, 64, 30},
		{"alone, with an id of the producer", "id", 1, 1, 64, 40},
		{"alone to five", "", 5, 1, 64, 18},
		{"50 at a time to five", "", 5, 50, 20, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBill(t)
			b.owner.KeepsMarks, b.version, b.cursor = true, "", nil
			require.NoError(t, b.loadCursor(b.node))
			for i := range tc.rounds {
				id := tc.id
				if id != "" {
					id = fmt.Sprint(id, i)
				}
				b.appendMessages(tc.atOnce, id)
				b.takeEntries()
				require.Equal(t, tc.atOnce, b.settleCalls(200))
				b.clock.now = b.clock.now.Add(17 * time.Second)
			}
			require.Len(t, b.cursor.Standing().Marks, domain.MaxMarks)
			b.expireEntries()
			for _, shared := range []string{"append", "expire"} {
				b.steps[shared] /= float64(tc.consumers)
			}
			require.LessOrEqual(t, b.totalUnits(tc.atOnce*tc.rounds), tc.limitRU)
		})
	}
}

func TestAFailedAttempt_CostsUpToItsLimit(t *testing.T) {
	b := newBill(t)
	price := func(status int) float64 {
		b.steps = make(map[string]float64)
		require.Equal(t, 1, b.settleCalls(status))
		return b.totalUnits(1)
	}
	for _, status := range []int{200, 200, 200, 200, 200, 200, 200, 200} { // these deliveries add recent attempts to the cursor
		b.appendMessages(1, "")
		b.takeEntries()
		price(status)
	}
	b.appendMessages(1, "")
	b.takeEntries()
	require.LessOrEqual(t, price(500), 27.0, "the first failure of a cursor")
	b.clock.now = b.clock.now.Add(time.Hour)
	require.LessOrEqual(t, price(500), 22.0, "a further one")
	b.clock.now = b.clock.now.Add(time.Hour)
	require.LessOrEqual(t, price(500), 25.0, "the last one: a dead letter")

	b.owner.Policy.Attempts = 12
	b.appendMessages(50, "")
	b.takeEntries()
	b.steps = make(map[string]float64)
	require.Equal(t, 50, b.settleCalls(500))
	require.LessOrEqual(t, b.totalUnits(50), 6.1, "50 at once")
}

func TestALoad_CostsUpToItsLimit(t *testing.T) {
	b := newBill(t)
	price := func(incarnation string) float64 {
		b.steps = make(map[string]float64)
		b.owner.Incarnation, b.version, b.cursor = incarnation, "", nil
		b.payFor("load", func() { require.NoError(t, b.loadCursor(b.node)) })
		return b.totalUnits(1)
	}
	require.LessOrEqual(t, price("other"), 12.0, "a read and the proof")
	require.LessOrEqual(t, price("other"), 2.1, "no proof is needed")
	b.appendMessages(3, "")
	b.takeEntries()
	b.settleCalls(500)
	require.LessOrEqual(t, price("another"), 17.0, "with three retries")
}

// The request units of a settlement and of a read do not depend on the number of waiting entries.
func TestABacklog_RaisesNoPrice(t *testing.T) {
	b := newBill(t)
	var prices []float64
	for _, backlog := range []int{100, 3000} {
		for range backlog / 50 {
			b.appendMessages(50, "")
		}
		b.steps = make(map[string]float64)
		b.takeEntries()
		require.Equal(t, domain.MaxConcurrency, b.settleCalls(200))
		prices = append(prices, b.steps["settle"])
	}
	require.InEpsilon(t, prices[0], prices[1], 0.15)
}
