package cosmos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// findInMailbox searches the mailbox of the actor for an id.
func (s *trust) findInMailbox(node *Repository, id domain.EventID) repository.EventSearch {
	s.Helper()
	search, err := node.FindEvent(context.Background(), repository.EventQuery{ID: id, Recipient: s.actor})
	require.NoError(s, err)
	return search
}

// TestFindEvent_FindsEachEventInEachShapeOfAMailbox saves events to tails and pages, with filters of
// drawers and of the recipient, in one cabinet and in several cabinets. The searching nodes have no data
// of the recipient in memory.
func TestFindEvent_FindsEachEventInEachShapeOfAMailbox(t *testing.T) {
	for seed := range uint64(8) {
		inBubble(t, fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 11))
			s := newTrust(t)
			opts := Options{DrawerCapacity: []int{2, 7, 40}[rng.IntN(3)], TailEvents: []int{0, 3, 24}[rng.IntN(3)], SweepEvery: -1}
			node := s.node(opts, rng.IntN(2) == 0)
			cabinets := 1 + rng.IntN(5)
			var all []domain.Event
			for range 20 {
				var batch []domain.Event
				for range 1 + rng.IntN(2*opts.DrawerCapacity) {
					batch = append(batch, repositorytest.Event(s.actor, repositorytest.WithContentType(fmt.Sprint("type-", rng.IntN(cabinets)))))
				}
				s.save(node, 0, batch)
				all = append(all, batch...)
				if rng.IntN(4) == 0 {
					_, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
					require.NoError(t, err)
				}
			}
			fresh := s.node(opts, false)
			for i := range all {
				if i%9 != int(seed) {
					continue
				}
				search := s.findInMailbox(fresh, all[i].ID)
				require.Empty(t, search.Unread)
				require.Len(t, search.Found, 1)
				e := search.Found[0]
				require.EqualValues(t, i+1, e.Sequence)
				require.Equal(t, all[i].Cabinet(), e.Cabinet())
				require.NotNil(t, e.Slot)
			}
			require.Empty(t, s.findInMailbox(fresh, repositorytest.NewEventID()).Found)
		})
	}
}

func TestFindEvent_FindsEventsOfASaveInFlight(t *testing.T) {
	s := newTrust(t)
	node, line := s.tappedNode(Options{DrawerCapacity: 10, Retries: -1})
	s.save(node, 0, repositorytest.Events(2, s.actor))
	var dead atomic.Bool // true from the commit on; then all requests fail
	commit := atNth(2, isHeadReplacement, func() error { dead.Store(true); return nil })
	line.setBefore(func(req *http.Request) error {
		if err := commit(req); err != nil || dead.Load() {
			return faulty.ErrLost
		}
		return nil
	})
	lost := repositorytest.Events(3, s.actor)
	_, err := node.Save(context.Background(), s.actor, lost)
	require.Equal(t, domain.Uncertain, domain.KindOf(err))

	search := s.findInMailbox(s.node(small, false), lost[1].ID)
	require.Len(t, search.Found, 1)
	require.True(t, search.Found[0].IsReserved)
	require.EqualValues(t, 4, search.Found[0].Sequence)

	other := s.node(small, false) // other is an exclusive node, and rolls back the Save
	s.save(other, 1, repositorytest.Events(1, s.actor))
	require.Empty(t, s.findInMailbox(other, lost[1].ID).Found)
}

// TestFindEvent_ListsDamageAndFindsTheRest damages each document of a mailbox in turn.
func TestFindEvent_ListsDamageAndFindsTheRest(t *testing.T) {
	s := newTrust(t)
	node := s.node(Options{DrawerCapacity: 10, SweepEvery: -1}, false)
	shared := repositorytest.NewEventID()
	withID := func(e *domain.Event) { e.ID = shared }
	var actors []domain.ActorID
	for range 4 {
		actor := repositorytest.NewActor()
		for range 3 {
			_, err := node.Save(t.Context(), actor, repositorytest.Events(3, actor))
			require.NoError(t, err)
		}
		_, err := node.Save(t.Context(), actor, repositorytest.Events(1, actor, withID))
		require.NoError(t, err)
		actors = append(actors, actor)
	}
	c := node.beginCall("test")
	spoil := func(actor domain.ActorID, what string) {
		t.Helper()
		h, err := c.readHead(t.Context(), actor)
		require.NoError(t, err)
		switch what {
		case "head":
			for name, last := range h.Cabinets {
				last.Drawer, last.Tail = strings.Repeat("<script>", 8), packed("damaged")
				h.Cabinets[name] = last
			}
			_, err = c.Put(t.Context(), node.db.catalog, h.PartitionKey, headID, h.etag, h)
			require.NoError(t, err)
		case "page":
			for _, last := range h.Cabinets {
				require.NoError(t, c.DeleteIfExists(t.Context(), node.db.cabinets, last.Drawer, pageID(3)))
			}
		case "format":
			h.StoredFormat = 1000
			_, err = c.Put(t.Context(), node.db.catalog, h.PartitionKey, headID, h.etag, h)
			require.NoError(t, err)
		}
	}
	spoil(actors[0], "head")
	spoil(actors[1], "page")
	spoil(actors[2], "format")

	fresh := s.node(Options{DrawerCapacity: 10, Retries: 9}, false)
	search, err := fresh.FindEvent(t.Context(), repository.EventQuery{ID: shared})
	require.NoError(t, err)
	require.Empty(t, search.Next)
	require.Equal(t, 4, search.Mailboxes)
	found, unread := make(map[string]bool), make(map[string]string)
	for _, e := range search.Found {
		found[e.Recipient.String()] = true
	}
	for _, u := range search.Unread {
		unread[u.Recipient] = u.Reason
	}
	assert.True(t, found[actors[1].String()], "its page is there, one before it is not")
	assert.True(t, found[actors[3].String()])
	assert.Len(t, found, 2)
	assert.Contains(t, unread[actors[0].String()], "head")
	assert.Contains(t, unread[actors[1].String()], "lost")
	assert.Contains(t, unread[actors[2].String()], "format 1000")
	assert.Len(t, unread, 3)
	for _, actor := range actors[:3] {
		search, err := fresh.FindEvent(t.Context(), repository.EventQuery{ID: shared, Recipient: actor})
		require.NoError(t, err)
		assert.NotEmpty(t, search.Unread)
	}
}

func TestFindEvent_RefusesAPositionThatIsNotItsOwn(t *testing.T) {
	s := newTrust(t)
	node := s.node(small, false)
	s.save(node, 0, repositorytest.Events(1, s.actor))
	for _, after := range []string{"x", "eyJ", searchPosition{Continuation: "<script>"}.String(), searchPosition{Continuation: strings.Repeat("x", 10_000)}.String()} {
		_, err := node.FindEvent(t.Context(), repository.EventQuery{ID: repositorytest.NewEventID(), After: after})
		require.Equal(t, domain.Invalid, domain.KindOf(err), "%q: %v", after, err)
	}
}

// TestFindEvent_FindsAnEventWhileItsMailboxIsInUse saves, peeks and dequeues during the search.
func TestFindEvent_FindsAnEventWhileItsMailboxIsInUse(t *testing.T) {
	s := newTrust(t)
	opts := Options{DrawerCapacity: 5, TailEvents: 3, SweepEvery: -1}
	node, reader := s.node(opts, true), s.node(opts, false)
	wanted := repositorytest.Events(4, s.actor)
	s.save(node, 0, wanted)
	done := make(chan error, 1)
	go func() {
		for range 40 {
			if _, err := node.Save(context.Background(), s.actor, repositorytest.Events(3, s.actor)); err != nil {
				done <- err
				return
			}
			b, err := repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
			if err == nil {
				_, err = node.Acknowledge(context.Background(), s.actor, b.ID)
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for searches := 0; ; searches++ {
		search, err := reader.FindEvent(t.Context(), repository.EventQuery{ID: wanted[searches%4].ID})
		require.NoError(t, err)
		require.Empty(t, search.Unread)
		require.Len(t, search.Found, 1)
		select {
		case err := <-done:
			require.NoError(t, err)
			require.Positive(t, searches)
			return
		default:
		}
	}
}

// TestFindEvent_CostsWhatTheHandbookSays measures the cost of finding an id. The figures are in
// deploy/handbook/incidents.md.
func TestFindEvent_CostsWhatTheHandbookSays(t *testing.T) {
	synctest.Test(t, findCosts)
}

func findCosts(t *testing.T) {
	r := newRig(t, embedded.Options{Pessimistic: true})
	node := r.node(Options{TailEvents: DefaultTailEvents, SweepEvery: -1, SweepUnits: -1, StoreTraces: true}, true)
	ctx := t.Context()
	page, err := os.ReadFile("../deploy/handbook/incidents.md")
	require.NoError(t, err)
	price := func(what string, limit float64, find func(node *Repository)) {
		t.Helper()
		assert.True(t, strings.Contains(string(page), fmt.Sprintf("| %s | %.0f |", what, limit)), "the page has no row %q with %.0f", what, limit)
		before := r.engine.RequestUnits()
		find(r.node(Options{TailEvents: DefaultTailEvents, SweepEvery: -1, SweepUnits: -1}, false))
		units := r.engine.RequestUnits() - before
		t.Logf("%s: %.1f RU", what, units)
		assert.LessOrEqual(t, units, limit, what)
	}
	const mailboxes = 1000
	var last domain.Event
	for range mailboxes {
		actor := repositorytest.NewActor()
		_, err := node.Save(ctx, actor, repositorytest.Events(2, actor))
		require.NoError(t, err)
	}
	price("an event in 1,000 mailboxes with a few events each", 1200, func(node *Repository) {
		search, err := node.FindEvent(ctx, repository.EventQuery{ID: repositorytest.NewEventID()})
		require.NoError(t, err)
		require.Empty(t, search.Found)
		require.Equal(t, mailboxes, search.Mailboxes)
	})
	for i := range mailboxes {
		actor := repositorytest.NewActor()
		events := repositorytest.Events(1+i%60, actor)
		for len(events) > 0 {
			n := min(len(events), 1+i%30)
			_, err := node.Save(ctx, actor, events[:n])
			require.NoError(t, err)
			last = events[n-1]
			events = events[n:]
		}
	}
	full := repositorytest.NewActor()
	var inFull domain.Event
	for i := range 10 {
		events := repositorytest.Events(1000, full)
		span := domain.TraceContext{TraceID: domain.TraceID{1}, SpanID: domain.SpanID{byte(i + 1)}, Sampled: true}
		_, err := node.Save(domain.WithTraceContext(ctx, span), full, events)
		require.NoError(t, err)
		if i == 5 {
			inFull = events[500]
		}
	}
	b, err := repositorytest.Peek(ctx, r.stores(node), last.Recipient, allGroups, domain.BundleID{})
	require.NoError(t, err)
	node.AwaitHints(ctx, full)

	price("a trace in a mailbox with 10,000 events", 50, func(node *Repository) {
		search, err := node.FindEvent(ctx, repository.EventQuery{Trace: domain.TraceID{1}, Recipient: full})
		require.NoError(t, err)
		require.Len(t, search.Saves, 10)
	})
	price("a bundle, with `--actor`", 6, func(node *Repository) {
		search, err := node.FindBundle(ctx, b.ID, last.Recipient, 20)
		require.NoError(t, err)
		require.Len(t, search.Found, 1)
	})
	price("a bundle, without `--actor`", 10, func(node *Repository) {
		search, err := node.FindBundle(ctx, b.ID, domain.ActorID{}, 20)
		require.NoError(t, err)
		require.Len(t, search.Found, 1)
	})
	price("an event in a small mailbox, with `--actor`", 25, func(node *Repository) {
		search, err := node.FindEvent(ctx, repository.EventQuery{ID: last.ID, Recipient: last.Recipient})
		require.NoError(t, err)
		require.Len(t, search.Found, 1)
	})
	price("an event in the middle of a mailbox with 10,000 events, with `--actor`", 60, func(node *Repository) {
		search, err := node.FindEvent(ctx, repository.EventQuery{ID: inFull.ID, Recipient: full})
		require.NoError(t, err)
		require.Len(t, search.Found, 1)
	})
	price("an event in 2,001 mailboxes, half of which have up to 60 events", 6500, func(node *Repository) {
		search, err := node.FindEvent(ctx, repository.EventQuery{ID: inFull.ID})
		require.NoError(t, err)
		require.Empty(t, search.Unread)
		require.Len(t, search.Found, 1)
		require.Equal(t, 2*mailboxes+1, search.Mailboxes)
	})
}
