package watch_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/domain/watch"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// ingestScript ingests a script's events for one object, and returns the object's resource.
func ingestScript(t *testing.T, objects *memory.Objects, key, script string) domain.Resource {
	t.Helper()
	name, err := domain.ParseObjectName("bucket", key)
	require.NoError(t, err)
	for _, events := range objecttest.Calls(script) {
		_, err := objects.Ingest(t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: events[0]}})
		require.NoError(t, err)
	}
	return domain.ObjectResourceOf(name)
}

func TestWithObjects_EachStoreHasItsOwnResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		objects := memory.NewObjects()
		changes := watch.WithObjects(w.resources, objects)
		var observed []domain.Resource
		changes.Observe(func(c domain.Change) { observed = append(observed, c.Resource) })
		object, document := ingestScript(t, objects, "a", "[C@01]"), w.documentNamed("a")
		for _, r := range []domain.Resource{object, document} {
			version, err := changes.MarkWatched(t.Context(), r, r == document)
			require.NoError(t, err)
			require.Zero(t, version)
		}
		ingestScript(t, objects, "a", "[C@02]")
		version, err := w.resources.PutResource(t.Context(), &repository.Resource{Resource: document})
		require.NoError(t, err)
		_, err = w.resources.PutResource(t.Context(), &repository.Resource{Resource: document, Version: version})
		require.NoError(t, err)
		require.Equal(t, []domain.Resource{object, document}, observed)
		for _, r := range observed {
			found, err := changes.Changes(t.Context(), r)
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.NoError(t, changes.RemoveChange(t.Context(), found[0]))
			found, err = changes.Changes(t.Context(), r)
			require.NoError(t, err)
			require.Empty(t, found)
		}
		isTurn, err := changes.TakeTurn(t.Context(), time.Now(), time.Minute)
		require.NoError(t, err)
		require.True(t, isTurn)
	})
}

// A failingChanges is a store whose method Unpublished fails.
type failingChanges struct{ repository.StoredChanges }

func (failingChanges) Unpublished(context.Context, time.Time, int) ([]domain.Resource, error) {
	return nil, domain.Errorf(domain.Unavailable, "no store")
}

func TestWithObjects_BothStoresShareTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		objects := memory.NewObjects()
		for i := range 6 {
			key := fmt.Sprint("k", i)
			_, err := objects.MarkWatched(t.Context(), ingestScript(t, objects, key, "[C@01]"), false)
			require.NoError(t, err)
			ingestScript(t, objects, key, "[C@02]")
			document := w.documentNamed(key)
			_, err = w.resources.MarkWatched(t.Context(), document, true)
			require.NoError(t, err)
			version, err := w.resources.PutResource(t.Context(), &repository.Resource{Resource: document})
			require.NoError(t, err)
			require.NoError(t, w.resources.DeleteResource(t.Context(), document, version))
		}
		soon := time.Now().Add(time.Second)
		counts := func(changes repository.Changes, limit int) (ofObjects, others int, err error) {
			found, err := changes.Unpublished(t.Context(), soon, limit)
			for _, r := range found {
				if r.Kind() == domain.ObjectResource {
					ofObjects++
				} else {
					others++
				}
			}
			return ofObjects, others, err
		}
		for _, tc := range []struct{ limit, objects, others int }{{12, 6, 6}, {100, 6, 6}, {8, 4, 4}, {10, 5, 5}, {1, 0, 1}} {
			ofObjects, others, err := counts(watch.WithObjects(w.resources, objects), tc.limit)
			require.NoError(t, err)
			require.Equal(t, []int{tc.objects, tc.others}, []int{ofObjects, others}, "limit %d", tc.limit)
		}
		ofObjects, others, err := counts(watch.WithObjects(w.resources, failingChanges{objects}), 100)
		require.Equal(t, domain.Unavailable, domain.KindOf(err))
		require.Equal(t, []int{0, 6}, []int{ofObjects, others})
	})
}

// A node dies after it has stored the change of an object. Another node's relay publishes the
// change.
func TestAnObjectChangeOfADeadNode_IsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		objects := memory.NewObjects()
		object := ingestScript(t, objects, "a", "[C@01]")
		_, err := objects.MarkWatched(t.Context(), object, false)
		require.NoError(t, err)
		ingestScript(t, objects, "a", "[C@02] [D@03]")
		relay := watch.NewRelay(watch.WithObjects(w.resources, objects), w.streams, func(domain.StreamName, []domain.Message, []repository.Appended) {}, watch.RelayOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		require.NoError(t, relay.Run(ctx))
		left, err := objects.Changes(t.Context(), object)
		require.NoError(t, err)
		require.Empty(t, left)
		end, err := w.streams.End(t.Context(), object.Stream())
		require.NoError(t, err)
		require.EqualValues(t, 2, end.Positions[0].Number)
	})
}
