package market

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/load"
	"github.com/messagehub/messagehub/domain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runMarket runs a market on an account without physics.
func runMarket(t *testing.T, m Market) *Day {
	t.Helper()
	a, err := account.Open(t.Context(), account.Options{})
	require.NoError(t, err)
	m.Throughput = Throughput{400, 400, 400}
	d, err := m.Hold(t.Context(), a, "market", filepath.Join(t.TempDir(), "hub"))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	return d
}

func TestMarket_EveryGroupReceivesItsEvents(t *testing.T) {
	reported := 0.0
	d := runMarket(t, Market{Lasts: 300 * time.Millisecond, Seed: 1, ReportProgress: func(done float64) { reported = done }, Groups: []Group{
		{Size: 5, Events: 100, Batch: 5, Period: 100 * time.Millisecond},
		{Kind: "big ", Size: 1, Events: 100, Batch: 10, Period: 100 * time.Millisecond},
	}})
	for _, g := range d.Groups {
		require.Positive(t, g.Events)
		require.Greater(t, g.Saved, g.Events, "each had been sent something before")
		require.Zero(t, g.Lost())
		require.Zero(t, g.Duplicates())
	}
	require.Empty(t, d.Failures())
	require.Subset(t, d.Kinds(), []string{"save", "peek", "dequeue", "big save", "big peek", "big dequeue"})
	require.Positive(t, d.Used.Units())
	require.Greater(t, d.Life.Requests(), d.Used.Requests())
	for _, of := range []account.Count{d.Used.Catalog, d.Used.Cabinet, d.Used.Bundles} {
		require.Positive(t, of.Requests, "each container has a line of its own")
	}
	require.Zero(t, d.Used.Refused())
	require.GreaterOrEqual(t, d.Took, 300*time.Millisecond)
	require.LessOrEqual(t, reported, 1.0)
}

func TestThrottle_RefusesARecipientUntilTheEnd(t *testing.T) {
	noise := &Throttle{Recipient: "noisy-0000", Wait: time.Millisecond}
	const lasts = 2 * time.Second
	d := runMarket(t, Market{
		Lasts: lasts, Seed: 1, Around: noise.Around, Beside: []load.Stream{noise.TurnOnAt(0), noise.TurnOffBefore(lasts)},
		Groups: []Group{{Kind: "noisy ", Size: 1, Events: 100, Batch: 5, Period: 50 * time.Millisecond, AtOnce: 3}},
	})
	require.Positive(t, noise.Refused())
	require.Zero(t, d.Groups[0].Lost())
	require.Zero(t, d.Groups[0].Duplicates())
}

func TestThrottle_AffectsOnlyPartitionsOfItsRecipient(t *testing.T) {
	line := &throttledLine{Throttle: &Throttle{Recipient: "noisy-0000"}}
	for key, want := range map[string]bool{
		`["noisy-0000"]`:                    true,
		`["noisy-0000|TimeSeries"]`:         true,
		`["noisy-0000|TimeSeries|RSM-012"]`: true,
		`["noisy-00001"]`:                   false,
		`["actor-0000"]`:                    false,
		``:                                  false,
	} {
		require.Equal(t, want, line.isNamed(key), key)
	}
}

func TestCountEvents_AcceptsReadsOfAnySize(t *testing.T) {
	body := "[" + strings.Repeat(`{"sequence":1,"id":"x"},`, 5000) + `{"sequence":2}]`
	n, err := countEvents(strings.NewReader(body))
	require.NoError(t, err)
	require.Equal(t, 5001, n)
	n, err = countEvents(iotest.OneByteReader(strings.NewReader(body)))
	require.NoError(t, err)
	require.Equal(t, 5001, n)
	_, err = countEvents(iotest.TimeoutReader(strings.NewReader(body)))
	require.ErrorIs(t, err, iotest.ErrTimeout)
}

func TestEvents_AreTheSameForTheSameSeed(t *testing.T) {
	of := func(seed uint64) []byte { return appendEvents(nil, "actor-0001", 20, rand.New(rand.NewPCG(seed, 0))) }
	require.Equal(t, of(1), of(1))
	require.NotEqual(t, of(1), of(2))
	var events []struct {
		ID, Recipient string
		Weight        int
	}
	require.NoError(t, json.Unmarshal(of(1), &events))
	require.Len(t, events, 20)
	for _, e := range events {
		_, err := domain.ParseEventID(e.ID)
		require.NoError(t, err)
		require.Equal(t, "actor-0001", e.Recipient)
	}
}

func TestOldestEvent_IsTheFirstUnfetchedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(nil, 1, Group{Size: 2, Events: 1, Batch: 1, Period: time.Second})
		save := func(m *crowdMember, events int) {
			m.recordSend(events)
			m.recordSaved(events)
			pause := time.NewTimer(time.Second)
			<-pause.C
		}
		save(c.members[0], 20)
		save(c.members[1], 20)
		save(c.members[0], 20)
		all, oldest := c.currentStock()
		require.Equal(t, Stock{60, 60, 0}, all)
		require.Equal(t, 3*time.Second, oldest)
		c.members[0].noteStored(20)
		_, oldest = c.currentStock()
		require.Equal(t, 2*time.Second, oldest)
		c.members[1].noteStored(20)
		c.members[0].noteStored(20)
		all, oldest = c.currentStock()
		require.Zero(t, oldest)
		require.Zero(t, all.Lost()+all.Duplicates())
		c.members[0].noteStored(1)
		all, _ = c.currentStock()
		require.Equal(t, 1, all.Duplicates())
	})
}
