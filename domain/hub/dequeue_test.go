package hub_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

func TestDequeue_ReturnsTheBundleAndAllowsTheNext(t *testing.T) {
	inEveryScope(t, func(w *world, s scope, from rt.Change) {
		w.sendNew(1, from, rt.WithoutBundling)
		next := w.sendNew(2, from)
		open := w.peekBundle(s.groups...)
		w.dequeueBundle(open) // dequeueBundle fails the test on an error
		w.requireEvents(w.peekBundle(s.groups...), next...)
	})
}

func TestDequeue_FindsOnlyOpenBundles(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(1, rt.WithoutBundling)
	waiting := w.sendNew(1)
	closed := w.peekBundle()
	w.dequeueBundle(closed)
	open := w.peekBundle()

	other := *w
	other.actor = rt.NewActor()
	other.sendNew(1)
	foreign := other.peekBundle()

	var texts []string
	for _, id := range []domain.BundleID{rt.NewBundleID(), foreign.ID, closed.ID, {}} {
		bundle, err := w.hub.Dequeue(w.ctx, w.actor, id)
		require.Equal(t, domain.NotFound, domain.KindOf(err))
		require.Zero(t, bundle)
		texts = append(texts, strings.ReplaceAll(err.Error(), id.String(), "ID"))
	}
	require.NotContains(t, texts[0], foreign.Cabinet.Recipient.String())
	for _, text := range texts {
		require.Equal(t, texts[0], text, "the reason cannot be told")
	}
	require.Equal(t, open.Bundle, w.peekBundle().Bundle, "and nothing happened")
	w.requireEvents(w.peekBundle(), waiting...)
	require.Equal(t, foreign.Bundle, other.peekBundle().Bundle)
}

func TestDequeue_AcceptsOpenBundlesInAnyOrder(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		w := newWorld(t, hub.Options{})
		var open []*hub.PeekedBundle
		for _, g := range []struct {
			group  domain.Group
			origin domain.Origin
		}{{rt.TimeSeries, domain.TimeSeries}, {rt.Aggregations, domain.Aggregations}, {rt.MasterData, domain.Charges}} {
			w.sendNew(1, rt.WithOrigin(g.origin))
			open = append(open, w.peekBundle(g.group))
		}
		for _, i := range order {
			w.dequeueBundle(open[i])
		}
		w.requireNoData()
	}
}

func TestDequeue_SucceedsOnceAmongConcurrentCalls(t *testing.T) {
	for range 20 {
		w := newWorld(t, hub.Options{})
		w.sendNew(1, rt.WithoutBundling)
		next := w.sendNew(1)
		open := w.peekBundle()
		succeeded := make(chan domain.Bundle, 8)
		runConcurrently(8, func() {
			bundle, err := w.hub.Dequeue(w.ctx, w.actor, open.ID)
			if err == nil {
				succeeded <- bundle.Bundle
				return
			}
			assert.Equal(t, domain.NotFound, domain.KindOf(err))
		})
		require.Len(t, succeeded, 1)
		require.Equal(t, open.Bundle, <-succeeded)
		w.requireEvents(w.peekBundle(), next...)
	}
}
