package objects

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func (n *nodes) Observe(f func(domain.Change)) {
	for _, s := range n.all {
		s.Observe(f)
	}
}

func (n *nodes) MarkWatched(ctx context.Context, r domain.Resource, mayBeAbsent bool) (int64, error) {
	return n.node().MarkWatched(ctx, r, mayBeAbsent)
}

func (n *nodes) Changes(ctx context.Context, r domain.Resource) ([]domain.Change, error) {
	return n.node().Changes(ctx, r)
}

func (n *nodes) RemoveChange(ctx context.Context, c domain.Change) error {
	return n.node().RemoveChange(ctx, c)
}

func (n *nodes) Unpublished(ctx context.Context, before time.Time, limit int) ([]domain.Resource, error) {
	return n.node().Unpublished(ctx, before, limit)
}

func TestWatchesConformance(t *testing.T) {
	for name, opts := range map[string]Options{
		"Plain":           {Retries: 100},
		"ManySpilledRows": {Retries: 100, Shards: 1, Limits: domain.ObjectLimits{Rows: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accounttest.New(t, embedded.Options{}, Containers())
			repositorytest.RunObjectWatches(t, func(*testing.T) repositorytest.WatchedObjects {
				return &nodes{all: []*Store{New(a.Connect(), opts), New(a.Connect(), opts)}}
			})
		})
	}
}

// runWatchScript stores events of an object, watches the object after the first event, and removes the
// first change, as if it was published. Two changes remain. If the calls are repeated, the watch may fail
// because the object is already deleted.
func runWatchScript(ctx context.Context, s *Store, isRepeated bool) error {
	name := must(domain.ParseObjectName("bucket", "key"))
	r := domain.ObjectResourceOf(name)
	for i, events := range objecttest.Calls("[C@01] [C@02] [C@02] [D@03] [C@04] [C@05]") {
		results, err := s.Ingest(ctx, []repository.ObjectReport{{Name: name, ObjectEvent: events[0]}})
		if err == nil {
			err = results[0].Err
		}
		if err == nil && i == 0 {
			if _, err = s.MarkWatched(ctx, r, false); isRepeated && domain.KindOf(err) == domain.NotFound {
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
	err := s.RemoveChange(ctx, domain.Change{Resource: r, Version: 1})
	if err != nil { // repeat the removal, as a relay does
		err = s.RemoveChange(ctx, domain.Change{Resource: r, Version: 1})
	}
	return err
}

// requireChanges requires the changes that a complete runWatchScript leaves unpublished.
func requireChanges(t *testing.T, s *Store, n int) {
	t.Helper()
	r := domain.ObjectResourceOf(must(domain.ParseObjectName("bucket", "key")))
	found, err := s.Changes(t.Context(), r)
	require.NoError(t, err)
	var left []string
	for _, c := range found {
		left = append(left, fmt.Sprint(c.Version, " ", c.Event))
	}
	require.Equal(t, []string{"2 deleted", "3 updated"}, left, "request %d", n)
	unpublished, err := s.Unpublished(t.Context(), time.Now().Add(time.Minute), 10)
	require.NoError(t, err)
	require.Equal(t, []domain.Resource{r}, unpublished, "request %d", n)
}

// Each request fails once with each fault, and its call repeats the request. Each change for watches is
// stored once.
func TestEveryRequestBrokenOnce_StoresEachChangeOnce(t *testing.T) {
	for _, fault := range faulty.CommonFaults() {
		if fault == faulty.Forbidden {
			continue // a call does not retry a request that is refused with 403
		}
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // in simulated time, so that backoffs take no real time
				for n := 1; ; n++ {
					a := accounttest.New(t, embedded.Options{}, Containers())
					node := New(a.Connect(), Options{Shards: 1})
					a.Transport.BreakOne(n, fault)
					require.NoError(t, runWatchScript(t.Context(), node, false), "request %d", n)
					isBroken := a.Transport.Calls() >= n
					a.Transport.Break(nil)
					requireChanges(t, node, n)
					if !isBroken {
						require.Greater(t, n, 12)
						return
					}
				}
			})
		})
	}
}

// A node crashes before or after one of its requests, and another node repeats all calls. No change for
// watches is missing, and none is stored twice.
func TestANodeThatEndsAtAnyRequest_LosesNoChange(t *testing.T) {
	for _, fault := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for n := 1; ; n++ {
					a := accounttest.New(t, embedded.Options{}, Containers())
					a.Transport.CrashAt(n, fault)
					err := runWatchScript(t.Context(), New(a.Connect(), Options{Shards: 1}), false)
					hasEnded := a.Transport.Fired() > 0
					a.Transport.Break(nil)
					require.Equal(t, hasEnded, err != nil, "request %d: %v", n, err)
					other := New(a.Connect(), Options{Shards: 1})
					require.NoError(t, runWatchScript(t.Context(), other, true), "request %d", n)
					requireChanges(t, other, n)
					if !hasEnded {
						require.Greater(t, n, 12)
						return
					}
				}
			})
		})
	}
}

// A change of a watched object needs no additional request.
func TestAChangeOfAWatchedObject_CostsUpToItsLimit(t *testing.T) {
	a := accounttest.New(t, embedded.Options{Pessimistic: true}, Containers())
	s := New(a.Connect(), Options{Shards: 1})
	name := must(domain.ParseObjectName("bucket", "key"))
	pays := func(events ...domain.ObjectEvent) (units float64, requests int) {
		before, calls := a.Engine.RequestUnits(), a.Transport.Calls()
		for _, e := range events {
			results, err := s.Ingest(t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: e}})
			require.NoError(t, err)
			require.NoError(t, results[0].Err)
		}
		return a.Engine.RequestUnits() - before, a.Transport.Calls() - calls
	}
	all := objecttest.Calls("[C@01] [C@02] [C@03] [C@04]")
	pays(all[0][0], all[1][0])
	alone, requests := pays(all[2][0])
	_, err := s.MarkWatched(t.Context(), domain.ObjectResourceOf(name), false)
	require.NoError(t, err)
	watched, calls := pays(all[3][0])
	require.Equal(t, requests, calls, "the change is in the batch of the object")
	require.LessOrEqual(t, watched-alone, 10.0)
	t.Logf("%.1f RU, and %.1f RU if it is watched", alone, watched)
}
