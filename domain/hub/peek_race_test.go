package hub_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// interceptAdd makes Peek call happens after it has chosen the events of a new bundle and before it opens the bundle.
// It returns the number of these calls.
func (w *world) interceptAdd(happens func(attempt int)) *int {
	attempts := new(int)
	w.replaceCalls(replacedStore{add: func(ctx context.Context, b domain.Bundle, run repository.Run) (domain.Bundle, error) {
		*attempts++
		happens(*attempts)
		return w.store.Add(ctx, b, run)
	}}, hub.Options{})
	return attempts
}

// newOtherNode returns a second node that uses the same store.
func (w *world) newOtherNode() *world {
	r := *w
	r.hub = hub.New(w.store, w.store, w.store, hub.Options{})
	return &r
}

func TestPeekRace_LoserGetsTheWinnersBundle(t *testing.T) {
	inEveryScope(t, func(w *world, s scope, from rt.Change) {
		events := w.sendNew(2, from)
		var won *hub.PeekedBundle
		attempts := w.interceptAdd(func(int) {
			won = w.newOtherNode().peekBundle(s.groups...)
			w.sendNew(1, from)
		})
		lost := w.peekBundle(s.groups...)
		require.Equal(w, won.Bundle, lost.Bundle)
		require.Equal(w, w.body(won), w.body(lost))
		require.Equal(w, 1, *attempts)
		w.requireEvents(lost, events...)
	})
}

func TestPeekRace_OneIDOpensOneBundle(t *testing.T) {
	inEveryScope(t, func(w *world, s scope, from rt.Change) {
		w.sendNew(2, from)
		req := w.newRequest(s.groups...)
		req.BundleID = rt.NewBundleID()
		w.interceptAdd(func(int) {
			_, err := w.newOtherNode().hub.Peek(w.ctx, req)
			require.NoError(w, err)
		})
		lost, err := w.hub.Peek(w.ctx, req)
		require.NoError(w, err)
		require.Equal(w, req.BundleID, lost.ID)
		require.Equal(w, w.newOtherNode().peekBundle(s.groups...).Bundle, lost.Bundle)
	})
}

func TestPeekRace_LoserWithAnIDLearnsTheWinnersID(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(1)
	var won *hub.PeekedBundle
	w.interceptAdd(func(int) { won = w.newOtherNode().peekBundle() })
	req := w.newRequest()
	req.BundleID = rt.NewBundleID()
	_, err := w.hub.Peek(w.ctx, req)
	require.Equal(t, domain.Conflict, domain.KindOf(err))
	require.ErrorContains(t, err, won.ID.String())
}

func TestPeekRace_IDUsedInAnotherGroupIsInUse(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(1)
	w.sendNew(1, rt.WithOrigin(domain.Charges))
	req := w.newRequest(rt.TimeSeries)
	req.BundleID = rt.NewBundleID()
	attempts := w.interceptAdd(func(attempt int) {
		if attempt == 1 {
			elsewhere := req
			elsewhere.Groups = []domain.Group{rt.MasterData}
			_, err := w.newOtherNode().hub.Peek(w.ctx, elsewhere)
			require.NoError(t, err)
		}
	})
	_, err := w.hub.Peek(w.ctx, req)
	require.ErrorIs(t, err, repository.ErrBundleIDInUse)
	require.Equal(t, 2, *attempts, "it looked once more, whether the bundle was the one it wanted")
}

func TestPeekRace_ReturnsNoDataIfAllEventsAreTaken(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(2)
	w.interceptAdd(func(int) { w.newOtherNode().dequeueBundle(w.newOtherNode().peekBundle()) })
	w.requireNoData()
}

func TestPeekRace_OpensTheNextEvents(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(1, rt.WithoutBundling)
	next := w.sendNew(1)
	attempts := w.interceptAdd(func(attempt int) {
		if attempt == 1 {
			w.newOtherNode().dequeueBundle(w.newOtherNode().peekBundle())
		}
	})
	w.requireEvents(w.peekBundle(), next...)
	require.Equal(t, 2, *attempts)
}

func TestPeekRace_FailsWithBusyAfterManyLosses(t *testing.T) {
	w := newWorld(t, hub.Options{})
	events := w.sendNew(40, rt.WithoutBundling)
	losses := 15
	attempts := w.interceptAdd(func(attempt int) {
		if attempt <= losses {
			w.newOtherNode().dequeueBundle(w.newOtherNode().peekBundle())
		}
	})
	w.requireEvents(w.peekBundle(), events[15])
	w.dequeueBundle(w.peekBundle())

	*attempts, losses = 0, 16
	_, err := w.hub.Peek(w.ctx, w.newRequest())
	require.Equal(t, domain.Busy, domain.KindOf(err))
	require.EqualError(t, err, fmt.Sprintf("actor %s: peek: lost 16 races in a row against other requests of the same actor", w.actor))
	require.Equal(t, 16, *attempts)
	w.requireEvents(w.peekBundle(), events[32])
}

// runConcurrently runs do n times concurrently, and waits for all calls.
func runConcurrently(n int, do func()) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			<-start
			do()
		})
	}
	close(start)
	wg.Wait()
}

func TestPeekRace_AllGetOneBundle(t *testing.T) {
	for name, id := range map[string]domain.BundleID{"without an id": {}, "under one id": rt.NewBundleID()} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				w := newWorld(t, hub.Options{})
				w.sendNew(3)
				req := w.newRequest()
				req.BundleID = id
				var mu sync.Mutex
				bundles := map[domain.BundleID]int{}
				runConcurrently(8, func() {
					peeked, err := w.hub.Peek(w.ctx, req)
					if err == nil {
						err = writeBody(w.ctx, peeked, io.Discard)
					}
					mu.Lock()
					defer mu.Unlock()
					if assert.NoError(t, err) {
						bundles[peeked.ID]++
					}
				})
				require.Equal(t, map[domain.BundleID]int{w.peekBundle().ID: 8}, bundles)
			}
		})
	}
}

func TestPeekRace_OneIDInAllGroupsOpensOnce(t *testing.T) {
	for range 20 {
		w := newWorld(t, hub.Options{})
		for _, o := range rt.AllOrigins {
			w.sendNew(1, rt.WithOrigin(o))
		}
		id := rt.NewBundleID()
		groups := make(chan domain.Group, len(rt.AllGroups))
		for _, g := range rt.AllGroups {
			groups <- g
		}
		var mu sync.Mutex
		won := 0
		runConcurrently(len(rt.AllGroups), func() {
			_, err := w.hub.Peek(w.ctx, hub.PeekRequest{Actor: w.actor, Groups: []domain.Group{<-groups}, BundleID: id})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
				return
			}
			assert.ErrorIs(t, err, repository.ErrBundleIDInUse)
		})
		require.Equal(t, 1, won)
	}
}
