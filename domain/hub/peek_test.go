package hub_test

import (
	"math"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// A scope is a set of groups that a Peek can request.
type scope struct {
	name    string
	groups  []domain.Group
	origins []domain.Origin // origins whose events belong to the groups
}

var scopes = []scope{
	{"all", nil, rt.AllOrigins},
	{"timeseries", []domain.Group{rt.TimeSeries}, []domain.Origin{domain.TimeSeries}},
	{"aggregations", []domain.Group{rt.Aggregations}, []domain.Origin{domain.Aggregations}},
	{"masterdata", []domain.Group{rt.MasterData}, []domain.Origin{domain.MarketRoles, domain.MeteringPoints, domain.Charges}},
}

func (s scope) covers(o domain.Origin) bool { return slices.Contains(s.origins, o) }

// inEveryScope runs a test for every scope and every origin in it.
func inEveryScope(t *testing.T, test func(w *world, s scope, from rt.Change)) {
	for _, s := range scopes {
		for _, o := range s.origins {
			t.Run(s.name+"/"+o.String(), func(t *testing.T) { test(newWorld(t, hub.Options{}), s, rt.WithOrigin(o)) })
		}
	}
}

func TestPeek_ReturnsNoDataIfNoEventsWait(t *testing.T) {
	for _, s := range scopes {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t, hub.Options{})
			w.sendEvents(rt.Event(rt.NewActor())) // this event is for a second actor
			for _, o := range rt.AllOrigins {
				if !s.covers(o) {
					w.sendNew(1, rt.WithOrigin(o))
				}
			}
			w.requireNoData(s.groups...)
		})
	}
}

func TestPeek_OpensABundleOfWaitingEvents(t *testing.T) {
	inEveryScope(t, func(w *world, s scope, from rt.Change) {
		events := w.sendNew(3, from, rt.WithWeight(5))
		later := w.sendNew(1, from, rt.WithContentType("other"))
		before := time.Now()
		got := w.peekBundle(s.groups...)
		w.requireEvents(got, events...)

		require.WithinRange(w, got.Opened, before, time.Now())
		require.Equal(w, domain.Bundle{
			ID:            got.ID,
			Group:         must(w.hub.Groups().GroupOf(events[0].Origin)),
			Cabinet:       events[0].Cabinet(),
			Count:         3,
			Weight:        15,
			First:         1,
			Last:          3,
			DocumentTypes: []domain.DocumentType{events[0].DocumentType},
			Content:       domain.Manifest,
			Format:        domain.JSON,
			Version:       "1.0",
			Opened:        got.Opened,
			Body:          got.Body,
		}, got.Bundle)
		require.Equal(w, int64(4), got.Waiting, "with what waits behind it")
		w.dequeueBundle(got)
		w.requireEvents(w.peekBundle(s.groups...), later...)
	})
}

func TestPeek_StartsAtTheOldestEventOfItsGroups(t *testing.T) {
	for _, s := range scopes {
		for _, oldest := range s.origins {
			t.Run(s.name+"/"+oldest.String(), func(t *testing.T) {
				w := newWorld(t, hub.Options{})
				for _, o := range rt.AllOrigins { // these events are older but belong to other groups
					if !s.covers(o) {
						w.sendNew(1, rt.WithOrigin(o))
					}
				}
				first := w.sendNew(1, rt.WithOrigin(oldest))
				for _, o := range s.origins {
					if o != oldest {
						w.sendNew(1, rt.WithOrigin(o))
					}
				}
				w.requireEvents(w.peekBundle(s.groups...), first...)
			})
		}
	}
}

func TestPeek_RepeatsTheBundleUntilItIsDequeued(t *testing.T) {
	inEveryScope(t, func(w *world, s scope, from rt.Change) {
		events := w.sendNew(3, from, rt.WithPayload(`{"a":1}`))
		first := w.peekBundle(s.groups...)
		body := w.body(first)
		require.Equal(w, body, w.body(first), "written twice")

		more := w.sendNew(2, from)
		for name, req := range map[string]hub.PeekRequest{
			"as before":            {},
			"by its id":            {BundleID: first.ID},
			"by its format":        {Format: domain.JSON},
			"by id and format":     {BundleID: first.ID, Format: domain.JSON},
			"the version is moot":  {Version: "2.0"},
			"by its group":         {Groups: []domain.Group{first.Group}},
			"by a group and twice": {Groups: []domain.Group{first.Group, first.Group}},
		} {
			req.Actor = w.actor
			if req.Groups == nil {
				req.Groups = s.groups
			}
			again, err := w.hub.Peek(w.ctx, req)
			require.NoError(w, err, name)
			require.Equal(w, first.Bundle, again.Bundle, name)
			require.Equal(w, body, w.body(again), "byte for byte, "+name)
		}
		w.requireEvents(first, events...)
		w.dequeueBundle(first)
		next := w.peekBundle(s.groups...)
		require.NotEqual(w, first.ID, next.ID)
		w.requireEvents(next, more...)
	})
}

func TestPeek_RefusesAnotherIDOrFormatThanTheOpenOne(t *testing.T) {
	inEveryScope(t, func(w *world, s scope, from rt.Change) {
		w.sendNew(1, from)
		req := w.newRequest(s.groups...)
		req.Format = domain.XML
		open, err := w.hub.Peek(w.ctx, req)
		require.NoError(w, err)
		otherID := "bundle id: bundle " + open.ID.String() + " is open; peek it without another id, or dequeue it first"
		otherFormat := "format: bundle " + open.ID.String() + " is open as xml; peek it in that format, or dequeue it first"
		for _, tc := range []struct {
			id     domain.BundleID
			format domain.Format
			want   string
		}{
			{rt.NewBundleID(), "", otherID},
			{rt.NewBundleID(), domain.XML, otherID},
			{rt.NewBundleID(), domain.JSON, otherID},
			{open.ID, domain.JSON, otherFormat},
			{domain.BundleID{}, domain.JSON, otherFormat},
		} {
			req.BundleID, req.Format = tc.id, tc.format
			_, err := w.hub.Peek(w.ctx, req)
			require.EqualError(w, err, tc.want)
			require.Equal(w, domain.Conflict, domain.KindOf(err))
			require.NotErrorIs(w, err, repository.ErrBundleIDInUse)
		}
		require.Equal(w, open.Bundle, w.peekBundle(s.groups...).Bundle, "it is still open")
	})
}

func TestPeek_UsesTheSuggestedID(t *testing.T) {
	inEveryScope(t, func(w *world, s scope, from rt.Change) {
		w.sendNew(1, from)
		req := w.newRequest(s.groups...)
		req.BundleID, req.Format, req.Version = rt.NewBundleID(), domain.XML, "2.1"
		peeked, err := w.hub.Peek(w.ctx, req)
		require.NoError(w, err)
		require.Equal(w, req.BundleID, peeked.ID)
		require.Equal(w, domain.XML, peeked.Format)
		require.Equal(w, "2.1", peeked.Version)
	})
}

func TestPeek_RefusesAUsedID(t *testing.T) {
	inEveryScope(t, func(w *world, s scope, from rt.Change) {
		w.sendNew(1, from)
		used := w.peekBundle(s.groups...)
		w.dequeueBundle(used)
		waiting := w.sendNew(1, from)
		req := w.newRequest(s.groups...)
		req.BundleID = used.ID
		_, err := w.hub.Peek(w.ctx, req)
		require.ErrorIs(w, err, repository.ErrBundleIDInUse)
		require.Equal(w, domain.Conflict, domain.KindOf(err))

		w.actor = rt.NewActor() // ids may be reused by a different actor
		w.sendNew(1, from)
		req.Actor = w.actor
		peeked, err := w.hub.Peek(w.ctx, req)
		require.NoError(w, err)
		require.Equal(w, used.ID, peeked.ID)

		w.actor = waiting[0].Recipient
		w.requireEvents(w.peekBundle(s.groups...), waiting...)
	})
}

func TestPeek_PutsAnEventWithoutBundlingInASeparateBundle(t *testing.T) {
	inEveryScope(t, func(w *world, s scope, from rt.Change) {
		alone := w.sendNew(1, from, rt.WithoutBundling)
		together := w.sendNew(2, from)
		last := w.sendNew(1, from, rt.WithoutBundling)
		for _, want := range [][]domain.Event{alone, together, last} {
			got := w.peekBundle(s.groups...)
			w.requireEvents(got, want...)
			w.dequeueBundle(got)
		}
		w.requireNoData(s.groups...)
	})
}

func TestPeek_OpensABundleForATooHeavyEvent(t *testing.T) {
	inEveryScope(t, func(w *world, s scope, from rt.Change) {
		monstrous := w.sendNew(1, from, rt.WithWeight(math.MaxInt64))
		heavy := w.sendNew(1, from, rt.WithWeight(domain.MaxBundleWeight+1))
		full := append(w.sendNew(1, from, rt.WithWeight(domain.MaxBundleWeight-2)), w.sendNew(2, from)...)
		rest := w.sendNew(1, from)
		for _, want := range [][]domain.Event{monstrous, heavy, full, rest} {
			got := w.peekBundle(s.groups...)
			w.requireEvents(got, want...)
			w.dequeueBundle(got)
		}
		w.requireNoData(s.groups...)
	})
}

func TestPeek_HasOneOpenBundleInEachGroup(t *testing.T) {
	w := newWorld(t, hub.Options{})
	for _, o := range []domain.Origin{domain.MeteringPoints, domain.Aggregations, domain.Charges, domain.TimeSeries} {
		w.sendNew(1, rt.WithOrigin(o))
	}
	masterdata := w.peekBundle()
	require.Equal(t, domain.MeteringPoints, masterdata.Cabinet.Origin)
	require.Equal(t, masterdata.Bundle, w.peekBundle(rt.MasterData).Bundle, "a plain Peek opens what the narrow one repeats")
	timeseries := w.peekBundle(rt.TimeSeries)
	aggregations := w.peekBundle(rt.Aggregations)
	require.Equal(t, masterdata.Bundle, w.peekBundle().Bundle, "a plain Peek repeats the oldest, of whatever group")
	w.dequeueBundle(masterdata)
	require.Equal(t, timeseries.Bundle, w.peekBundle().Bundle, "and prefers the next open one to a new one")
	w.dequeueBundle(aggregations)
	w.dequeueBundle(timeseries)
	require.Equal(t, domain.Charges, w.peekBundle().Cabinet.Origin)
}

func TestPeek_GeneratesRandomVersion4IDs(t *testing.T) {
	w := newWorld(t, hub.Options{})
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	w.sendNew(200, rt.WithoutBundling)
	seen := map[domain.BundleID]bool{}
	for range 200 {
		peeked := w.peekBundle()
		require.Regexp(t, form, peeked.ID.String())
		require.False(t, seen[peeked.ID])
		seen[peeked.ID] = true
		w.dequeueBundle(peeked)
	}
}

func TestPeek_UsesTheIDsOfItsOptions(t *testing.T) {
	id := rt.NewBundleID()
	w := newWorld(t, hub.Options{NewID: func() domain.BundleID { return id }})
	w.sendNew(1)
	require.Equal(t, id, w.peekBundle().ID)
}
