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
		w.sent(1, from, rt.Alone)
		next := w.sent(2, from)
		open := w.peeks(s.groups...)
		w.dequeues(open) // and compares the result
		w.holds(w.peeks(s.groups...), next...)
	})
}

func TestDequeue_FindsOnlyOpenBundles(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sent(1, rt.Alone)
	waiting := w.sent(1)
	closed := w.peeks()
	w.dequeues(closed)
	open := w.peeks()

	other := *w
	other.actor = rt.NewActor()
	other.sent(1)
	foreign := other.peeks()

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
	require.Equal(t, open.Bundle, w.peeks().Bundle, "and nothing happened")
	w.holds(w.peeks(), waiting...)
	require.Equal(t, foreign.Bundle, other.peeks().Bundle)
}

func TestDequeue_AcceptsOpenBundlesInAnyOrder(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		w := newWorld(t, hub.Options{})
		var open []*hub.Peeked
		for _, g := range []struct {
			group  domain.Group
			origin domain.Origin
		}{{rt.TimeSeries, domain.TimeSeries}, {rt.Aggregations, domain.Aggregations}, {rt.MasterData, domain.Charges}} {
			w.sent(1, rt.From(g.origin))
			open = append(open, w.peeks(g.group))
		}
		for _, i := range order {
			w.dequeues(open[i])
		}
		w.nothingIn()
	}
}

func TestDequeue_SucceedsOnceAmongConcurrentCalls(t *testing.T) {
	for range 20 {
		w := newWorld(t, hub.Options{})
		w.sent(1, rt.Alone)
		next := w.sent(1)
		open := w.peeks()
		succeeded := make(chan domain.Bundle, 8)
		together(8, func() {
			bundle, err := w.hub.Dequeue(w.ctx, w.actor, open.ID)
			if err == nil {
				succeeded <- bundle.Bundle
				return
			}
			assert.Equal(t, domain.NotFound, domain.KindOf(err))
		})
		require.Len(t, succeeded, 1)
		require.Equal(t, open.Bundle, <-succeeded)
		w.holds(w.peeks(), next...)
	}
}
