package cosmos

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// These tests damage a sound store in each way that a check detects.

func TestDamageOfEveryKind_IsFoundAndRepairedIfPossible(t *testing.T) {
	entriesOf := func(d *damagedStore) string { return catalogKey(d.actor, domain.TimeSeries) }
	cases := []struct {
		kind       string
		isRepaired bool
		damage     func(d *damagedStore)
	}{
		{entryLow, true, func(d *damagedStore) {
			d.patchDocument(d.node.db.catalog, entriesOf(d), d.readDrawers(d.main)[2].ID, "/nextSequence", 2)
		}},
		{entryHigh, true, func(d *damagedStore) {
			d.patchDocument(d.node.db.catalog, entriesOf(d), d.readDrawers(d.main)[2].ID, "/nextSequence", 9)
		}},
		{entryStale, true, func(d *damagedStore) {
			e := &catalogEntry{ID: "no-drawer", PartitionKey: entriesOf(d), ContentType: d.contentType().String(), Ordinal: 1, NextSequence: 1}
			_, err := d.node.beginCall("test").Put(d.Context(), d.node.db.catalog, e.PartitionKey, e.ID, "", e)
			require.NoError(d, err)
		}},
		{positionWrong, true, func(d *damagedStore) {
			d.patchDocument(d.node.db.cabinets, cabinetKey(d.main), d.readDrawers(d.main)[1].ID, "/position", 3)
		}},
		{drawerUnsealed, true, func(d *damagedStore) {
			d.patchDocument(d.node.db.cabinets, cabinetKey(d.main), d.readDrawers(d.main)[0].ID, "/sealed", false)
		}},
		{filterWrong, true, func(d *damagedStore) {
			d.storeWrongFilters()
		}},
		{intentLeft, true, (*damagedStore).leaveIntent},
		{pageMissing, false, func(d *damagedStore) {
			d.deleteDocument(d.node.db.cabinets, d.readDrawers(d.main)[2].ID, pageID(0))
		}},
		{pageDamaged, false, func(d *damagedStore) {
			d.patchDocument(d.node.db.cabinets, d.readDrawers(d.main)[2].ID, pageID(0), "/events", []byte("not what was there"))
		}},
		{pagesOverlap, false, func(d *damagedStore) {
			d.patchDocument(d.node.db.cabinets, d.readDrawers(d.main)[1].ID, pageID(1), "/slot", 0)
		}},
		{pageDamaged, false, func(d *damagedStore) {
			d.patchDocument(d.node.db.cabinets, d.readDrawers(d.main)[3].ID, pageID(0), "/firstSequence", 3)
		}},
		{sequenceWrong, false, func(d *damagedStore) { // the page has no checksum, like a page of an older version
			d.patchDocument(d.node.db.cabinets, d.readDrawers(d.main)[3].ID, pageID(0), "/sum", 0)
			d.patchDocument(d.node.db.cabinets, d.readDrawers(d.main)[3].ID, pageID(0), "/firstSequence", 3)
		}},
		{drawerMissing, false, func(d *damagedStore) {
			d.deleteDocument(d.node.db.cabinets, cabinetKey(d.main), d.readDrawers(d.main)[2].ID)
		}},
		{drawerTwice, false, func(d *damagedStore) {
			d.patchDocument(d.node.db.cabinets, cabinetKey(d.main), d.readDrawers(d.main)[2].ID, "/ordinal", 2)
		}},
		{drawerShort, false, func(d *damagedStore) {
			d.patchDocument(d.node.db.cabinets, cabinetKey(d.main), d.readDrawers(d.main)[3].ID, "/count", 0)
		}},
		{drawerBeyond, false, func(d *damagedStore) {
			beyond := *d.readDrawers(d.main)[0]
			beyond.ID, beyond.Ordinal = "beyond", 1000
			_, err := d.node.beginCall("test").Put(d.Context(), d.node.db.cabinets, beyond.PartitionKey, beyond.ID, "", &beyond)
			require.NoError(d, err)
		}},
		{drawerAhead, true, func(d *damagedStore) {
			key := cabinetKey(d.main)
			_, err := d.node.beginCall("test").Put(d.Context(), d.node.db.cabinets, key, "ahead", "", &drawer{ID: "ahead", PartitionKey: key, Ordinal: 9})
			require.NoError(d, err)
		}},
		{drawerTwice, true, func(d *damagedStore) { // one of the two drawers is empty
			for ordinal := 1; ordinal <= 4; ordinal++ {
				key, id := cabinetKey(d.main), fmt.Sprintf("%d-empty", ordinal)
				_, err := d.node.beginCall("test").Put(d.Context(), d.node.db.cabinets, key, id, "", &drawer{ID: id, PartitionKey: key, Ordinal: ordinal, Sealed: ordinal%2 == 0})
				require.NoError(d, err)
			}
		}},
		{bundleMissing, false, func(d *damagedStore) {
			d.deleteDocument(d.node.db.bundles, d.actor.String(), d.openBundleID())
		}},
		{bundleWrong, false, func(d *damagedStore) {
			d.patchDocument(d.node.db.bundles, d.actor.String(), d.openBundleID(), "/last", 5)
		}},
		{bundleStray, false, func(d *damagedStore) {
			d.patchDocument(d.node.db.bundles, d.actor.String(), d.readGate().ID, "/open", "")
		}},
		{bundleWrong, false, func(d *damagedStore) {
			d.createDocument(&bundleDoc{
				ID: repositorytest.NewBundleID().String(), Recipient: d.actor.String(), Kind: bundleKind, State: stateDequeued, Content: string(domain.Request),
				Ranges: []slotRange{{To: 1}},
			})
		}},
		{noticeWrong, false, func(d *damagedStore) { // the bundle is open
			d.createDocument(d.newNoticeDoc(d.openBundleID(), d.readGate().Generation))
		}},
		{noticeWrong, false, func(d *damagedStore) { // the notice is about a later bundle than the open one
			d.createDocument(d.newNoticeDoc(repositorytest.NewBundleID().String(), d.readGate().Generation+1))
		}},
		{noticeWrong, false, func(d *damagedStore) { // the number of the notice does not match its id
			n := d.newNoticeDoc(repositorytest.NewBundleID().String(), 2)
			n.Number = 1
			d.createDocument(n)
		}},
		{noticeWrong, false, func(d *damagedStore) { // the notice names an invalid domain
			n := d.newNoticeDoc(repositorytest.NewBundleID().String(), 1)
			n.Origin = "no origin"
			d.createDocument(n)
		}},
		{gateWrong, false, func(d *damagedStore) {
			g := d.readGate()
			at := g.At[nameOf(d.main)]
			at.Slot++
			g.At[nameOf(d.main)] = at
			d.patchDocument(d.node.db.bundles, d.actor.String(), g.ID, "/at", g.At)
		}},
		{countWrong, false, func(d *damagedStore) {
			h := d.readHead()
			last := h.Cabinets[nameOf(d.main)]
			last.Total++
			h.Cabinets[nameOf(d.main)] = last
			d.patchDocument(d.node.db.catalog, d.actor.String(), headID, "/cabinets", h.Cabinets)
		}},
		{headWrong, false, func(d *damagedStore) {
			d.patchDocument(d.node.db.catalog, d.actor.String(), headID, "/watermark", 99)
		}},
		{eventTwice, false, func(d *damagedStore) {
			from := d.readPage(d.readDrawers(d.main)[2].ID, 0)
			events := []numberedEvent{{Event: &from[0].Event, digest: from[0].digest, sequence: 10}}
			data, _ := encodePage(events)
			d.patchDocument(d.node.db.cabinets, d.readDrawers(d.main)[3].ID, pageID(0), "/events", data)
		}},
	}
	for _, tc := range cases {
		t.Run(tc.kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // in a bubble, repeated checks take no real time
				d := newDamagedStore(t)
				tc.damage(d)
				found := d.runCheck(CheckOptions{})
				at := slices.Index(kindsOfFindings(found), tc.kind)
				require.GreaterOrEqual(t, at, 0, "%v", found.Findings)
				require.Equal(t, !tc.isRepaired, found.Findings[at].Damage, "%v", found.Findings)

				repaired := d.runCheck(CheckOptions{Repair: true})
				require.Equal(t, tc.isRepaired, repaired.Repaired == repaired.Found, "%v", repaired.Findings)
				if tc.isRepaired {
					require.Empty(t, d.runCheck(CheckOptions{}).Findings)
					return
				}
				require.Contains(t, kindsOfFindings(d.runCheck(CheckOptions{})), tc.kind, "a repair never touches the truth")
			})
		})
	}
}

func kindsOfFindings(r repository.CheckReport) (found []string) {
	for _, f := range r.Findings {
		found = append(found, f.Kind)
	}
	return found
}

func TestCheck_FindsTheSameInLittleMemory(t *testing.T) {
	d := newDamagedStore(t)
	node := d.rig.node(Options{Exclusive: true}, false)
	events := repositorytest.Events(15_000, d.actor)
	_, err := node.Save(t.Context(), d.actor, events)
	require.NoError(t, err)
	require.NoError(t, d.repairMailbox(d.actor))
	twice := d.readPage(d.readDrawers(d.main)[3].ID, 1)
	again := d.readDrawers(d.main)[4]
	page := d.readPage(again.ID, 0)
	page[7].ID = twice[3].ID
	numbers := make([]numberedEvent, len(page))
	for i := range page {
		numbers[i] = numberedEvent{Event: &page[i].Event, digest: page[i].digest, sequence: page[i].Sequence}
	}
	data, n := encodePage(numbers)
	require.Len(t, page, n)
	d.patchDocument(d.node.db.cabinets, again.ID, pageID(0), "/events", data)

	for _, memory := range []int{64 << 10, 64 << 20} {
		report := d.runCheck(CheckOptions{MaxIDBytes: memory})
		require.Len(t, report.Findings, 1, "%v", report.Findings)
		require.Equal(t, eventTwice, report.Findings[0].Kind)
		require.EqualValues(t, 15_000+12, report.Events)
	}
}

func TestCheck_ResumesWhereAnotherOneStopped(t *testing.T) {
	r := newRig(t, embedded.Options{})
	node := r.node(Options{Exclusive: true, SweepEvery: -1}, true)
	const recipients = 250
	for range recipients {
		actor := repositorytest.NewActor()
		_, err := node.Save(t.Context(), actor, repositorytest.Events(1, actor))
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	report, err := node.Check(ctx, CheckOptions{Progress: func(r repository.CheckReport) {
		if r.Resume != "" {
			cancel() // cancels the check after the first result page
		}
	}})
	require.Error(t, err)
	require.NotEmpty(t, report.Resume)
	rest, err := node.Check(t.Context(), CheckOptions{Resume: report.Resume})
	require.NoError(t, err)
	require.EqualValues(t, recipients-100, rest.Recipients)
	whole, err := node.Check(t.Context(), CheckOptions{})
	require.NoError(t, err)
	require.EqualValues(t, recipients, whole.Recipients)
	require.EqualValues(t, recipients, whole.Events)
	require.Zero(t, whole.Found)
}

func TestCheck_ContinuesAfterADocumentThatCannotBeRead(t *testing.T) {
	for name, damage := range map[string]func(d *damagedStore){
		"head": func(d *damagedStore) {
			d.patchDocument(d.node.db.catalog, d.actor.String(), headID, "/watermark", "many")
		},
		"gate": func(d *damagedStore) {
			d.patchDocument(d.node.db.bundles, d.actor.String(), d.readGate().ID, "/generation", "old")
		},
		"bundle": func(d *damagedStore) {
			d.patchDocument(d.node.db.bundles, d.actor.String(), d.openBundleID(), "/count", "few")
		},
		"drawer": func(d *damagedStore) {
			d.patchDocument(d.node.db.cabinets, cabinetKey(d.main), d.readDrawers(d.main)[1].ID, "/count", "some")
		},
		"page": func(d *damagedStore) {
			d.patchDocument(d.node.db.cabinets, d.readDrawers(d.main)[1].ID, pageID(0), "/events", 5)
		},
		"entry": func(d *damagedStore) {
			d.patchDocument(d.node.db.catalog, catalogKey(d.actor, domain.TimeSeries), d.readDrawers(d.main)[2].ID, "/nextSequence", "last")
		},
		"cabinet": func(d *damagedStore) {
			d.patchDocument(d.node.db.catalog, d.actor.String(), headID, "/cabinets", map[string]cabinetState{"no such thing": {}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDamagedStore(t)
				const others = 3
				for range others {
					actor := repositorytest.NewActor()
					_, err := d.node.Save(t.Context(), actor, repositorytest.Events(1, actor))
					require.NoError(t, err)
				}
				damage(d)
				report, err := d.node.Check(t.Context(), CheckOptions{Repair: true})
				require.NoError(t, err)
				require.Contains(t, kindsOfFindings(report), unreadable)
				require.True(t, report.Findings[0].Damage)
				require.Equal(t, d.actor.String(), report.Findings[0].Recipient)
				require.EqualValues(t, others+1, report.Recipients)
			})
		})
	}
}

func TestCheck_ReportsAFaultOncePerPlace(t *testing.T) {
	d := newDamagedStore(t)
	node := d.rig.node(Options{Exclusive: true}, false)
	_, err := node.Save(t.Context(), d.actor, repositorytest.Events(20_000, d.actor))
	require.NoError(t, err)
	d.patchDocument(d.node.db.catalog, d.actor.String(), headID, "/watermark", 1)
	report := d.runCheck(CheckOptions{})
	require.Contains(t, kindsOfFindings(report), sequenceWrong)
	require.Less(t, len(report.Findings), 200, "pages, not events")
}

func TestCheck_FindsABundleThatDoesNotBeginAtItsGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDamagedStore(t) // five events are acknowledged, and the open bundle has the next two
		g := d.readGate()
		at := g.At[nameOf(d.main)]
		require.Equal(t, 2, at.Slot)
		at.Slot, at.Sequence, at.Total = at.Slot-1, at.Sequence-1, at.Total-1
		g.At[nameOf(d.main)] = at
		d.patchDocument(d.node.db.bundles, d.actor.String(), g.ID, "/at", g.At)
		report := d.runCheck(CheckOptions{})
		require.Contains(t, kindsOfFindings(report), bundleWrong, "a Dequeue would lose an event: %v", report.Findings)
	})
}

func TestCheck_GivesASaveAsMuchTimeAsAWriterDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDamagedStore(t)
		d.leaveIntent()
		d.patchDocument(d.node.db.catalog, d.actor.String(), headID, "/undone", maxDoubled)
		var saving sync.WaitGroup
		saving.Go(func() {
			client.Sleep(t.Context(), lease<<maxDoubled)
			d.saveEvents(1, domain.TimeSeries) // this Save ends the intent
		})
		other := d.rig.node(Options{}, false)
		report, err := other.Check(t.Context(), CheckOptions{Recipient: d.actor, Repair: true})
		require.NoError(t, err)
		require.NotContains(t, kindsOfFindings(report), intentLeft)
		saving.Wait()
	})
}

func TestCheck_FindsNothingInAHintThatIsNotWrittenYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTrust(t)
		slow, line := s.tappedNode(Options{DrawerCapacity: 3})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = slow.hints.run(ctx) })
		synctest.Wait()
		s.save(slow, 0, repositorytest.Events(2, s.actor))
		b, err := repositorytest.Peek(t.Context(), s.stores(slow), s.actor, allGroups, domain.BundleID{})
		require.NoError(t, err)
		line.setBefore(func(req *http.Request) error { client.Sleep(req.Context(), 20*time.Millisecond); return nil })
		_, err = slow.Acknowledge(t.Context(), s.actor, b.ID)
		require.NoError(t, err)
		hurried := s.node(Options{Random: func() uint64 { return 0 }}, false)
		report, err := hurried.Check(t.Context(), CheckOptions{Recipient: s.actor})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
		cancel()
		running.Wait()
	})
}

func TestDamage_IsNotConcludedFromStaleReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var old atomic.Bool
		s := &trust{T: t, actor: repositorytest.NewActor(), rig: newRig(t, embedded.Options{Lag: func() time.Duration {
			if old.Load() {
				return time.Second
			}
			return 0
		}})}
		node, line := s.tappedNode(Options{DrawerCapacity: 3})
		client.Sleep(t.Context(), time.Minute)
		s.save(node, 0, repositorytest.Events(5, s.actor))
		line.setBefore(func(req *http.Request) error { // only reads of the container cabinet are stale
			old.Store(strings.Contains(req.URL.Path, "/colls/"+cabinetContainer+"/"))
			return nil
		})
		report, err := node.Check(t.Context(), CheckOptions{Recipient: s.actor})
		require.NoError(t, err)
		for _, f := range report.Findings {
			require.False(t, f.Damage, f.String())
		}
		require.EqualValues(t, 5, report.Events)
	})
}

func TestCheck_RemembersIntentsWhenItResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDamagedStore(t)
		for range 250 {
			actor := repositorytest.NewActor()
			_, err := d.node.Save(t.Context(), actor, repositorytest.Events(1, actor))
			require.NoError(t, err)
		}
		d.leaveIntent()
		other := d.rig.node(Options{DrawerCapacity: 3, SweepEvery: -1}, false)
		resume, parts, recipients := "", 0, int64(0)
		var found []string
		for over := false; !over; parts++ {
			ctx, cancel := context.WithCancel(t.Context())
			report, err := other.Check(ctx, CheckOptions{Resume: resume, Progress: func(r repository.CheckReport) {
				if r.Resume != "" && r.Resume != resume {
					cancel() // cancels the check after each result page
				}
			}})
			cancel()
			over = err == nil
			resume = report.Resume
			recipients += report.Recipients
			found = append(found, kindsOfFindings(report)...)
		}
		require.Equal(t, 3, parts)
		require.EqualValues(t, 251, recipients)
		require.Equal(t, []string{intentLeft}, found)

		for _, madeUp := range []string{"anything", base64.RawURLEncoding.EncodeToString([]byte(`{"continuation":"anything"}`))} {
			_, err := other.Check(t.Context(), CheckOptions{Resume: madeUp})
			require.Equal(t, domain.Invalid, domain.KindOf(err), "%v", err)
			require.ErrorContains(t, err, "begin from the start")
		}
	})
}

func TestDamage_CountsOnlyIfEveryCheckFindsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var old, checks atomic.Int32
		s := &trust{T: t, actor: repositorytest.NewActor(), rig: newRig(t, embedded.Options{Stale: func() int { return int(old.Load()) }})}
		node, line := s.tappedNode(Options{DrawerCapacity: 3})
		s.save(node, 0, repositorytest.Events(1, s.actor))
		_, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
		require.NoError(t, err)
		(&damagedStore{T: t, rig: s.rig, node: node, actor: s.actor}).patchDocument(node.db.catalog, catalogKey(s.actor, domain.TimeSeries), s.readEntries(node, domain.TimeSeries)[0].ID, "/nextSequence", 9)
		line.setBefore(func(req *http.Request) error {
			old.Store(0)
			if isQueryWith(req, "c.state = @open") && checks.Add(1) != 3 { // only the third check sees the open bundle
				old.Store(64)
			}
			return nil
		})
		report, err := node.Check(t.Context(), CheckOptions{Recipient: s.actor})
		require.NoError(t, err)
		require.EqualValues(t, maxChecks, checks.Load())
		require.Equal(t, []string{entryHigh}, kindsOfFindings(report))
	})
}

func TestRepair_FindsDamageThatAnUnfinishedSaveHides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDamagedStore(t)
		d.leaveIntent()
		d.patchDocument(d.node.db.catalog, catalogKey(d.actor, domain.TimeSeries), d.readDrawers(d.main)[2].ID, "/nextSequence", 9)
		report := d.runCheck(CheckOptions{Repair: true})
		require.Contains(t, kindsOfFindings(report), intentLeft)
		require.Contains(t, kindsOfFindings(report), entryHigh)
		require.Equal(t, report.Found, report.Repaired, "%v", report.Findings)
		require.Empty(t, d.runCheck(CheckOptions{}).Findings)
	})
}
