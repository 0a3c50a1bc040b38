package cosmos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestATail_IsReadBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, maxTail).Draw(t, "events")
		c := cabinetState{Drawer: "d", Paged: rapid.IntRange(0, 100).Draw(t, "paged")}
		c.Fill = c.Paged + n
		var in []storedEvent
		object, offset := "", int64(0)
		for _, e := range repositorytest.Events(n, repositorytest.NewActor()) {
			e.Weight = domain.Weight(rapid.Int64Range(1, 1<<62).Draw(t, "weight"))
			s := storedEvent{digest: e.Digest()}
			s.Event = e
			c.Sequence += domain.Sequence(rapid.IntRange(1, 300).Draw(t, "gap"))
			s.Sequence = c.Sequence
			s.Saved = time.UnixMilli(rapid.Int64Range(1, 1<<41).Draw(t, "saved")).UTC()
			if rapid.Bool().Draw(t, "payload") {
				if object == "" || rapid.Bool().Draw(t, "another object") {
					var number [16]byte
					copy(number[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "object"))
					object, offset = objectName(payloadFolder("d"), number), rapid.Int64Range(0, 1<<40).Draw(t, "offset")
				}
				s.PayloadAt = repository.Section{Object: object, Offset: offset, Length: rapid.Int64Range(1, 1<<40).Draw(t, "length"), Sum: 7}
				offset += s.PayloadAt.Length
			}
			in = append(in, s)
		}
		c.Tail = c.encodeTail(in)
		out, err := c.decodeTail(in[0].Cabinet())
		require.NoError(t, err)
		require.Equal(t, &tail{drawer: "d", paged: c.Paged, events: in}, out)
		require.Equal(t, in, decodeAll(t, out.flushedPage("flush"), in[0].Cabinet()), "and so is the page that it is flushed to")
	})
}

func TestATail_IsRefusedIfAnythingAroundItHasChanged(t *testing.T) {
	h := tailHead(t, 3)
	require.NoError(t, h.Validate())
	for name, change := range map[string]func(*cabinetState){
		"another drawer":          func(c *cabinetState) { c.Drawer = "other" },
		"another slot":            func(c *cabinetState) { c.Paged++; c.Fill++ },
		"fewer events":            func(c *cabinetState) { c.Fill-- },
		"more events":             func(c *cabinetState) { c.Fill++ },
		"another number":          func(c *cabinetState) { c.Sequence++ },
		"a number not visible":    func(c *cabinetState) { c.Sequence += 10 },
		"a bit that flipped":      func(c *cabinetState) { c.Tail[7] ^= 1 },
		"a version not known":     func(c *cabinetState) { c.Tail[0]++ },
		"less than nothing paged": func(c *cabinetState) { c.Paged = -1 },
		"no drawer":               func(c *cabinetState) { c.Drawer = "" },
		"hardly anything":         func(c *cabinetState) { c.Tail = packed{2} },
	} {
		h := tailHead(t, 3)
		c := h.Cabinets["TimeSeries|x"]
		change(&c)
		h.Cabinets["TimeSeries|x"] = c
		require.Error(t, h.Validate(), name)
	}
	filling := tailHead(t, 3)
	filling.Intent = &intent{Parts: []drawerPart{{Cabinet: "TimeSeries|x"}}}
	require.Error(t, filling.Validate(), "an intent over a tail")
}

// tailHead returns a head with two events in a page, followed by n events in the tail.
func tailHead(t *testing.T, n int) *head {
	actor := repositorytest.NewActor()
	events := repositorytest.Events(n, actor, repositorytest.WithOrigin(domain.TimeSeries), repositorytest.WithContentType("x"))
	h := &head{ID: headID, PartitionKey: actor.String(), Reserved: 9, Watermark: 9, Cabinets: map[cabinetName]cabinetState{
		"TimeSeries|x": {Drawer: "d", Fill: 2, Ordinal: 1, Sequence: 7, Total: 2},
	}}
	w := &recipientWriter{r: &Repository{}, recipient: actor}
	p := planSave(h, numberedEvents(events, 0, func() domain.Sequence { return 0 }), 10_000, "me", func() string { return "00000000-0000-4000-8000-000000000000" })
	next, err := h.appendTails(actor, p, w.storedEvents(p))
	require.NoError(t, err)
	return next
}

func TestAHead_HasFormat2AsLongAsItHasATail(t *testing.T) {
	h := tailHead(t, 3)
	h.setWriteID("id")
	require.Contains(t, string(client.Encode(h)), `"operation":{"id":"id","format":2}`)
	require.Contains(t, string(client.Encode(h)), `"v":2`)
	c := h.Cabinets["TimeSeries|x"]
	part, err := c.decodeTail(domain.CabinetKey{})
	require.NoError(t, err)
	flushed := h.withFlushed("TimeSeries|x", part, 4)
	require.Equal(t, 1, flushed.Cabinets["TimeSeries|x"].tailLen(), "a flush of a shorter tail")
	require.NoError(t, flushed.Validate())
	require.Equal(t, 3, h.Cabinets["TimeSeries|x"].tailLen(), "the receiver stays")
	flushed = h.withFlushed("TimeSeries|x", part, 5)
	flushed.setWriteID("next")
	require.Contains(t, string(client.Encode(flushed)), `"operation":"next"`)
	require.NotContains(t, string(client.Encode(flushed)), `"v":`)
	require.Equal(t, cabinetState{Drawer: "d", Fill: 5, Ordinal: 1, Sequence: 12, Total: 5, Marks: flushed.Cabinets["TimeSeries|x"].Marks}, flushed.Cabinets["TimeSeries|x"])
}

// A tailStore is a store whose nodes write tails.
type tailStore struct {
	*testing.T
	*rig
	actor domain.ActorID
}

func newTailStore(t *testing.T) *tailStore {
	return &tailStore{T: t, rig: newRig(t, embedded.Options{}), actor: repositorytest.NewActor()}
}

func (s *tailStore) saveEvents(node *Repository, events []domain.Event) {
	s.Helper()
	saved, err := node.Save(context.Background(), s.actor, events)
	require.NoError(s, err)
	require.Equal(s, repository.Saved{Accepted: len(events)}, saved)
}

func (s *tailStore) readHead(node *Repository) *head {
	s.Helper()
	h, err := node.beginCall("test").readHead(context.Background(), s.actor)
	require.NoError(s, err)
	return h
}

func (s *tailStore) drainAll(node *Repository, want ...domain.Event) {
	s.Helper()
	bundles, err := repositorytest.Drain(context.Background(), s.stores(node), s.actor, allGroups)
	require.NoError(s, err)
	var got []domain.EventID
	for _, b := range bundles {
		for i := range b.Events {
			got = append(got, b.Events[i].ID)
		}
	}
	require.Len(s, got, len(want))
	for i := range want {
		require.Equal(s, want[i].ID, got[i])
	}
	require.NoError(s, s.auditMailbox(s.actor))
}

func TestASmallSave_IsOneRequestUntilItsTailIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTailStore(t)
		node := s.node(Options{TailEvents: 4}, false)
		events := repositorytest.Events(9, s.actor)
		requests := []int{4, 1, 1, 1, 3, 1, 1, 1, 3} // the first Save reads head, gate and drawers; a flush adds two requests
		for i := range events {
			s.line.Break(nil)
			s.saveEvents(node, events[i:i+1])
			require.Equal(t, requests[i], s.line.Calls(), "event %d", i)
			require.NoError(t, s.auditMailbox(s.actor))
		}
		require.Equal(t, 1, s.readHead(node).Cabinets[nameOf(events[0].Cabinet())].tailLen())
		s.drainAll(node, events...)
	})
}

func TestAPeekOfATail_ReadsNoPage(t *testing.T) {
	s := newTailStore(t)
	node := s.node(Options{TailEvents: 4}, true)
	events := repositorytest.Events(3, s.actor)
	s.saveEvents(node, events[:2])
	s.line.Break(nil)
	b, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
	require.NoError(t, err)
	require.Len(t, b.Events, 2)
	require.Equal(t, 3, s.line.Calls(), "gates, head, batch")
	s.saveEvents(node, events[2:])
	again, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
	require.NoError(t, err)
	require.Equal(t, b.ID, again.ID)
	require.Equal(t, b.Events, again.Events)
	s.line.Break(nil)
	_, err = node.Acknowledge(t.Context(), s.actor, b.ID)
	require.NoError(t, err)
	node.AwaitHints(t.Context(), s.actor)
	require.Equal(t, 3, s.line.Calls(), "gates, bundle, batch; and no hints")
	s.drainAll(node, events[2:]...)
}

func TestABundleOfATail_IsReadAgainWhenItIsInPages(t *testing.T) {
	s := newTailStore(t)
	node := s.node(Options{TailEvents: 3, DrawerCapacity: 4}, true)
	events := repositorytest.Events(8, s.actor)
	s.saveEvents(node, events[:2])
	b, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
	require.NoError(t, err)
	for i := 2; i < len(events); i++ {
		s.saveEvents(node, events[i:i+1])
		again, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
		require.NoError(t, err)
		require.Equal(t, b.Events, again.Events)
		require.NoError(t, s.auditMailbox(s.actor))
	}
	s.drainAll(node, events...)
}

func TestALargeSave_FlushesTheTailsOfItsCabinets(t *testing.T) {
	s := newTailStore(t)
	node := s.node(Options{TailEvents: 4}, true)
	small := repositorytest.Events(2, s.actor)
	other := repositorytest.Events(1, s.actor, repositorytest.WithContentType("other"))
	large := repositorytest.Events(7, s.actor)
	s.saveEvents(node, small)
	s.saveEvents(node, other)
	s.saveEvents(node, large)
	h := s.readHead(node)
	require.Zero(t, h.Cabinets[nameOf(small[0].Cabinet())].tailLen())
	require.Equal(t, 1, h.Cabinets[nameOf(other[0].Cabinet())].tailLen(), "the others keep theirs")
	require.NoError(t, s.auditMailbox(s.actor))
	without := s.node(Options{}, true)
	last := repositorytest.Events(1, s.actor, repositorytest.WithContentType("other"))
	s.saveEvents(without, last)
	require.False(t, s.readHead(node).hasTail(), "a node that writes none flushes those in its way")
	require.NoError(t, s.auditMailbox(s.actor))
}

func TestFlushersOfTailsOfDifferentLengths_AgreeOnTheFirstPage(t *testing.T) {
	s := newTailStore(t)
	node := s.node(Options{TailEvents: 4}, true)
	events := repositorytest.Events(5, s.actor)
	s.saveEvents(node, events[:2])
	slow := s.node(Options{TailEvents: 4}, false)
	older := s.readHead(slow)
	s.saveEvents(node, events[2:4])
	_, err := slow.beginCall("test").flushTail(t.Context(), s.actor, older, nameOf(events[0].Cabinet()))
	require.NoError(t, err)
	s.saveEvents(node, events[4:])
	last := s.readHead(node).Cabinets[nameOf(events[0].Cabinet())]
	require.Equal(t, []int{2, 5}, []int{last.Paged, last.Fill}, "the page has the events of the slower flush")
	require.NoError(t, s.auditMailbox(s.actor))
	s.drainAll(node, events...)
}

func TestAPayloadOfASmallSave_OutlivesALostReplyAndAnotherSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTailStore(t)
		node, line := s.tappedNode(Options{TailEvents: 4})
		other := s.node(Options{TailEvents: 4}, false)
		first := repositorytest.Events(1, s.actor, repositorytest.WithPayload(`"first"`))
		second := repositorytest.Events(1, s.actor, repositorytest.WithPayload(`"second"`))
		s.saveEvents(node, repositorytest.Events(1, s.actor))
		replaced := 0
		s.line.Break(func(_ int, req *http.Request) faulty.Fault {
			if isHeadReplacement(req) {
				if replaced++; replaced == 1 {
					return faulty.ReplyLostAfter
				}
			}
			return faulty.None
		})
		line.setBefore(atNth(2, isHeadReplacement, func() error { // this function runs before the write is sent again
			s.saveEvents(other, second)
			return nil
		}))
		saved, err := node.Save(t.Context(), s.actor, first)
		require.NoError(t, err)
		require.Equal(t, repository.Saved{Duplicates: 1}, saved, "another node has written since, so that who saved it is unknown")
		require.Greater(t, replaced, 2)
		bundles, err := repositorytest.Drain(t.Context(), s.stores(node), s.actor, allGroups)
		require.NoError(t, err)
		var payloads []string
		for _, b := range bundles {
			for i := range b.Events {
				if at := b.Events[i].PayloadAt; !at.IsZero() {
					payload, err := repositorytest.ReadPayload(t.Context(), s.stores(node), at)
					require.NoError(t, err)
					payloads = append(payloads, string(payload))
				}
			}
		}
		require.Equal(t, []string{`"first"`, `"second"`}, payloads)
		require.NoError(t, s.auditMailbox(s.actor))
	})
}

func TestARefusedSmallSave_LeavesNoPayloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTailStore(t)
		content := &namedContent{Content: s.content, names: make(map[string]bool)}
		s.content = content
		node, line := s.tappedNode(Options{TailEvents: 4})
		other := s.node(Options{TailEvents: 4}, false)
		s.saveEvents(node, repositorytest.Events(1, s.actor))
		event := repositorytest.Events(1, s.actor, repositorytest.WithPayload(`"once"`))
		line.setBefore(atNth(1, isHeadReplacement, func() error {
			s.saveEvents(other, event)
			return nil
		}))
		saved, err := node.Save(t.Context(), s.actor, event)
		require.NoError(t, err)
		require.Equal(t, 1, saved.Duplicates)
		require.Len(t, content.names, 1, "only that of the other node is left: %v", content.names)
	})
}

// A namedContent records the names of the objects that were stored and not deleted.
type namedContent struct {
	repository.Content
	mu      sync.Mutex
	names   map[string]bool
	refuses int // number of the first Put that fails; all later ones fail, too; 0: no Put fails
	puts    int
}

func (c *namedContent) Put(ctx context.Context, name string, r io.Reader) error {
	c.mu.Lock()
	c.puts++
	isRefused := c.refuses > 0 && c.puts >= c.refuses
	c.mu.Unlock()
	if isRefused {
		return domain.Errorf(domain.Unavailable, "no room for payloads")
	}
	err := c.Content.Put(ctx, name, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names[name] = c.names[name] || err == nil
	return err
}

func (c *namedContent) Delete(ctx context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.names, name)
	return c.Content.Delete(ctx, name)
}

func TestASweep_RemovesADrawerThatWasInATailOnly(t *testing.T) {
	for name, flushed := range map[string]bool{"without a page": false, "with the page of a flush that died": true} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t, 10)
			k.node = k.rig.node(Options{DrawerCapacity: 10, TailEvents: 4, SweepEvery: -1, Clock: k.clock}, true)
			k.saveEvents(2)
			h, err := k.node.beginCall("test").readHead(t.Context(), k.actor)
			require.NoError(t, err)
			var drawer string
			for name, last := range h.Cabinets {
				drawer = last.Drawer
				if flushed {
					cabinet, err := cabinetOf(k.actor, name)
					require.NoError(t, err)
					tail, err := last.decodeTail(cabinet)
					require.NoError(t, err)
					_, err = k.node.beginCall("test").createFlushedPage(t.Context(), cabinet, tail, "dead")
					require.NoError(t, err)
				}
			}
			k.takeBundle()
			for range 12 {
				k.passTime(4 * day)
				_, err := k.node.Sweep(t.Context())
				require.NoError(t, err)
			}
			pages, err := k.node.beginCall("test").idsOf(nil, drawer)
			require.NoError(t, err)
			require.Empty(t, pages)
			_, err = k.node.beginCall("test").Read(t.Context(), k.node.db.cabinets, drawer, pageID(0), &drawerPage{})
			require.Error(t, err)
			h, err = k.node.beginCall("test").readHead(t.Context(), k.actor)
			require.NoError(t, err)
			require.False(t, h.hasTail())
			for _, kept := range h.Retention {
				require.Empty(t, kept.Closed)
				require.Equal(t, 2, kept.Cleared)
			}
			k.saveEvents(1)
			k.takeBundle()
			require.NoError(t, k.auditMailbox(k.actor))
		})
	}
}

// A failover loses acknowledged events. The position of the gate is in the drawer of the lost events. In
// the head, the cabinet has an earlier drawer with all its events in the tail, so the drawer is never
// closed because of its age. A sweep must remove it.
func TestASweep_RemovesADrawerBehindAGateInFront(t *testing.T) {
	k := newKeeperWith(t, Options{DrawerCapacity: 10, TailEvents: 4})
	k.saveEvents(2, repositorytest.WithPayload(`{"a":1}`))
	b := k.takeBundle()
	name := nameOf(b.Cabinet)
	gates := make(map[domain.Group]*gate)
	c := k.node.beginCall("test")
	require.NoError(t, c.readGates(t.Context(), k.actor, []domain.Group{b.Group}, gates))
	g := gates[b.Group].confirm("failover")
	at := g.At[name]
	at.Ordinal, at.Slot, at.Sequence, at.Total = at.Ordinal+1, 3, at.Sequence+3, at.Total+3
	g.At[name] = at
	_, err := c.Put(t.Context(), k.node.db.bundles, g.Recipient, g.ID, gates[b.Group].ETag, g)
	require.NoError(t, err)

	closed := false
	for range 4 {
		k.runSweep()
		h, err := c.readHead(t.Context(), k.actor)
		require.NoError(t, err)
		closed = closed || h.Cabinets[name].Drawer == "" && h.Retention[name].Floor > h.Cabinets[name].Ordinal
		k.passTime(4 * day)
	}
	require.True(t, closed)
	for _, e := range b.Events {
		_, err := k.content.Open(t.Context(), e.PayloadAt)
		require.Equal(t, domain.NotFound, domain.KindOf(err), "the drawer has no document, and its folder is removed nevertheless")
	}
	k.node = k.rig.node(Options{DrawerCapacity: 10, TailEvents: 4, SweepEvery: -1, Clock: k.clock}, true) // a new node that has not served the recipient yet
	more := k.saveEvents(1)
	require.Equal(t, more[0].ID, k.takeBundle().Events[0].ID)
}

func TestAReplay_ReturnsTheEventsOfATail(t *testing.T) {
	s := newTailStore(t)
	node := s.node(Options{TailEvents: 4}, true)
	events := repositorytest.Events(3, s.actor)
	s.saveEvents(node, events[:2])
	b, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
	require.NoError(t, err)
	_, err = node.Acknowledge(t.Context(), s.actor, b.ID)
	require.NoError(t, err)
	_, err = node.Replay(t.Context(), s.actor, b.Group, becauseOfATest)
	require.NoError(t, err)
	s.saveEvents(node, events[2:])
	in, err := node.Inspect(t.Context(), s.actor)
	require.NoError(t, err)
	require.Len(t, in.Cabinets[0].Drawers, 1)
	require.Equal(t, 3, in.Cabinets[0].Drawers[0].Events)
	s.drainAll(node, events...)
}

func TestARepair_FlushesEveryTailIfTheNodeWritesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTailStore(t)
		node := s.node(Options{TailEvents: 4}, true)
		events := repositorytest.Events(6, s.actor)
		s.saveEvents(node, events[:3])
		for i := range events[3:] {
			repositorytest.WithContentType(fmt.Sprintf("type-%d", i))(&events[3+i])
		}
		s.saveEvents(node, events[3:])
		report, err := node.Check(t.Context(), CheckOptions{Repair: true})
		require.NoError(t, err)
		require.Empty(t, report.Findings, "this node writes tails")
		require.True(t, s.readHead(node).hasTail())

		node = s.node(Options{}, true)
		for _, repair := range []bool{false, true} {
			report, err = node.Check(t.Context(), CheckOptions{Repair: repair})
			require.NoError(t, err)
			require.Equal(t, []string{tailLeft}, kindsOfFindings(report))
			require.Equal(t, !repair, s.readHead(node).hasTail())
		}
		require.Equal(t, headWriteID{ID: s.readHead(node).WriteID.ID}, s.readHead(node).WriteID, "the head has format 1")
		report, err = node.Check(t.Context(), CheckOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
		require.NoError(t, s.auditMailbox(s.actor))
		s.drainAll(node, events...)
	})
}

func TestASmallSave_ManyCabinetsShareTheHead(t *testing.T) {
	s := newTailStore(t)
	node := s.node(Options{TailEvents: DefaultTailEvents}, true)
	var all []domain.Event
	for i := range 150 {
		e := repositorytest.Event(s.actor, repositorytest.WithContentType(string(rune('a'+i%7))))
		all = append(all, e)
		s.saveEvents(node, all[i:])
		require.LessOrEqual(t, s.readHead(node).tailBytes(), maxAllTails)
	}
	require.NoError(t, s.auditMailbox(s.actor))
	bundles, err := repositorytest.Drain(t.Context(), s.stores(node), s.actor, allGroups)
	require.NoError(t, err)
	n := 0
	for _, b := range bundles {
		n += len(b.Events)
	}
	require.Equal(t, len(all), n)
}

func TestASmallSave_CostsUpToItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTailStore(t)
		node := s.node(Options{TailEvents: DefaultTailEvents, Exclusive: true}, false)
		s.saveEvents(node, repositorytest.Events(1, s.actor))
		const n = 480
		units, requests := s.engine.RequestUnits(), s.engine.Requests()
		for range n {
			s.saveEvents(node, repositorytest.Events(1, s.actor))
			<-time.After(time.Second)
		}
		units, requests = s.engine.RequestUnits()-units, s.engine.Requests()-requests
		t.Logf("%.2f RU, %.3f requests", units/n, float64(requests)/n)
		require.LessOrEqual(t, units/n, 12.5)
		require.LessOrEqual(t, float64(requests)/n, 1.1)
	})
}

func TestAnEventSavedFetchedAndConfirmedAlone_CostsUpToItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTailStore(t)
		node := s.node(Options{TailEvents: DefaultTailEvents, Exclusive: true}, false)
		lives := func() {
			s.saveEvents(node, repositorytest.Events(1, s.actor))
			b, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
			require.NoError(t, err)
			_, err = node.Acknowledge(t.Context(), s.actor, b.ID)
			require.NoError(t, err)
			node.AwaitHints(t.Context(), s.actor) // wait for the hints of the Dequeue, so that the counts include them
			<-time.After(time.Second)
		}
		lives()
		const n = 48
		units, requests := s.engine.RequestUnits(), s.engine.Requests()
		for range n {
			lives()
		}
		units, requests = s.engine.RequestUnits()-units, s.engine.Requests()-requests
		t.Logf("%.2f RU, %.3f requests", units/n, float64(requests)/n)
		require.LessOrEqual(t, units/n, 60.0)
		require.LessOrEqual(t, float64(requests)/n, 8.0)
	})
}

func TestSingleEventsThatAreFetchedOneByOne_LeaveNothingToRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTailStore(t)
		node := s.node(Options{TailEvents: 2, DrawerCapacity: 5}, true)
		for range 13 { // the events reach the third drawer
			s.saveEvents(node, repositorytest.Events(1, s.actor))
			b, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
			require.NoError(t, err)
			_, err = node.Acknowledge(t.Context(), s.actor, b.ID)
			require.NoError(t, err)
			node.AwaitHints(t.Context(), s.actor)
			<-time.After(time.Second)
		}
		for _, last := range s.readHead(node).Cabinets {
			require.Equal(t, 3, last.Ordinal)
		}
		report, err := node.Check(t.Context(), CheckOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
	})
}

// A Dequeue of events in a tail changes no catalog entry, so the entry still points at an acknowledged
// event of the tail. A check must accept this entry. The next Peek and the sweep must find the drawer
// without the entry.
func TestCheck_FindsNothingAfterBundlesOfATail(t *testing.T) {
	k := newKeeperWith(t, Options{DrawerCapacity: 10, TailEvents: 4})
	k.saveEvents(6) // a large Save, which writes a catalog entry
	k.saveEvents(2, repositorytest.WithoutBundling)
	require.Equal(t, 6, k.takeBundle().Count) // the entry then points at the next event, which is in the tail
	k.takeBundle()
	k.takeBundle()
	for range 6 {
		k.saveEvents(1, repositorytest.WithoutBundling) // fill this drawer and begin the next one
		k.takeBundle()
		report, err := k.node.Check(t.Context(), CheckOptions{Recipient: k.actor})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
	}
	k.saveEvents(2, repositorytest.WithoutBundling)
	require.NoError(t, k.repairMailbox(k.actor))
}
