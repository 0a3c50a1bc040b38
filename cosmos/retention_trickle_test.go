package cosmos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// countEvents counts all stored events, acknowledged or not.
func (k *keeper) countEvents() int {
	container, err := k.node.db.Container(cabinetContainer)
	require.NoError(k, err)
	pages := k.node.beginCall("test").QueryAllPartitions(container, "", "SELECT * FROM c WHERE c.until > 0")
	events := 0
	for !pages.IsDone() {
		items, err := pages.Next(k.Context(), 1000)
		require.NoError(k, err)
		for _, item := range items {
			var p drawerPage
			require.NoError(k, pages.Decode(item, &p))
			if !strings.HasPrefix(p.ID, "page-") { // a filter
				continue
			}
			events += p.Until - p.Slot
		}
	}
	return events
}

// An event is saved every six hours for ninety days, or every hour for forty days, and is delivered
// immediately. At most the events of two retention periods are stored. With the race detector, fewer days
// are simulated, because the amount of data repeats after two periods.
func TestRetention_KeepsSingleEventsUpToTwiceItsTime(t *testing.T) {
	const retention = 7 * day
	for every, length := range map[time.Duration]time.Duration{6 * time.Hour: 90 * day, time.Hour: 40 * day} {
		if raced {
			length = 3 * retention
		}
		t.Run(fmt.Sprint("one event every ", every), func(t *testing.T) {
			t.Parallel()
			k := newKeeper(t, 10_000)
			most, began := 0, k.engine.RequestUnits()
			swept := 0.0
			for passed := time.Duration(0); passed < length; passed += every {
				k.passTime(every)
				k.saveEvents(1)
				k.takeBundle()
				if passed%(6*time.Hour) != 0 {
					continue
				}
				before := k.engine.RequestUnits()
				k.runSweep()
				swept += k.engine.RequestUnits() - before
				if passed%day == 0 {
					k.expireDocuments()
					most = max(most, k.countEvents())
				}
			}
			wanted := int(retention / every)
			documents, bytes := k.countStored()
			t.Logf("%d events came, at most %d were stored, %d are within the retention; %d documents, %d bytes at the end; sweeps cost %.1f RU a day, all %.1f",
				length/every, most, wanted, documents, bytes, swept/length.Hours()*24, (k.engine.RequestUnits()-began)/length.Hours()*24)
			require.GreaterOrEqual(t, most, wanted, "H2: what is sent again is known for seven days")
			require.LessOrEqual(t, most, 2*wanted)
			require.NoError(t, k.repairMailbox(k.actor))
		})
	}
}

// Two of the four events of each drawer are acknowledged late, after a sweep has closed the drawer
// because of its age. The drawer must not be removed before.
func TestClosedDrawer_StaysWhileAnEventInItWaits(t *testing.T) {
	k := newKeeper(t, 10_000)
	const rounds = 6
	var saved, delivered []domain.EventID
	for round := range rounds {
		for _, e := range k.saveEvents(4, repositorytest.WithoutBundling) {
			saved = append(saved, e.ID)
		}
		for len(delivered) < len(saved)-2 {
			delivered = append(delivered, k.takeBundle().Events[0].ID)
		}
		for range 30 {
			k.passTime(day)
			k.runSweep()
		}
		h, err := k.node.beginCall("test").readHead(t.Context(), k.actor)
		require.NoError(t, err)
		for _, last := range h.Cabinets {
			require.Equal(t, round+1, last.Ordinal)
			require.Empty(t, last.Drawer, "it is closed although events in it wait")
		}
		require.Equal(t, 4, k.countEvents())
		require.NoError(t, k.auditMailbox(k.actor))
		report, err := k.node.Check(t.Context(), CheckOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
	}
	delivered = append(delivered, k.takeBundle().Events[0].ID, k.takeBundle().Events[0].ID)
	require.Equal(t, saved, delivered)
	require.NoError(t, k.repairMailbox(k.actor))
}

// A sweep every hour closes drawers at most as often as milestones are added.
func TestDrawer_IsNotClosedMoreOftenThanMilestonesAreMade(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, 10_000)
	weeks := 4 // number of weeks; the retention is one week
	if raced {
		weeks = 2
	}
	for range weeks * 7 * 24 {
		k.saveEvents(1)
		k.takeBundle()
		k.passTime(time.Hour)
		k.runSweep()
	}
	h, err := k.node.beginCall("test").readHead(t.Context(), k.actor)
	require.NoError(t, err)
	for _, last := range h.Cabinets {
		require.LessOrEqual(t, last.Ordinal, weeks*milestonesPerGrace+2)
	}
}
