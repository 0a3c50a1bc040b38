package push

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

func (l *pagedLife) listEntries(s *Store) []repository.ShardEntry {
	l.Helper()
	entries, _, err := s.Cursors(context.Background(), pagedShard)
	require.NoError(l, err)
	return entries
}

// unlistCursor loads the cursor of the first watch and removes its shard entry.
func (l *pagedLife) unlistCursor(s *Store) {
	l.Helper()
	c, version, err := l.open(s, l.watches[0])
	require.NoError(l, err)
	var followed int64
	for _, e := range l.listEntries(s) {
		followed = e.Changes
	}
	c.Unlist(followed)
	_, err = s.Settle(l.Context(), l.watches[0], version, c.Settlement())
	require.NoError(l, err)
	require.Empty(l, l.listEntries(s))
}

// An older version of the hub, which has no watch pages, has listed each watch in its shard.
func TestAWatchThatAnOlderVersionHasListed_IsInAPageBeforeItsEntryIsRemoved(t *testing.T) {
	l := newPagedLife(t, newRig(t, embedded.Options{}))
	s, id := l.node(Options{}), l.watches[0]
	c := s.client.Begin("test")
	entry := &entryDoc{ID: id.String(), PartitionKey: shardKey(pagedShard), Kind: entryDocument.Name, Stream: l.stream.String()}
	_, err := c.Put(t.Context(), s.cursors, entry.PartitionKey, entry.ID, "", entry)
	require.NoError(t, err)
	doc := makeCursorDoc(id, &domain.Standing{Stream: l.stream}, s.client.NewID())
	_, err = c.Put(t.Context(), s.cursors, doc.PartitionKey, cursorID, "", doc)
	require.NoError(t, err)
	l.unlistCursor(s)
	page, err := s.WatchPage(t.Context(), pagedShard, l.stream, 0)
	require.NoError(t, err)
	require.Equal(t, []domain.CursorID{id}, page.Cursors)
	l.checkRules(s, "")
}

// A watch is deleted before its cursor is created. A load of the missing cursor then removes its shard
// entry.
func TestTheEntryOfAWatchWithoutACursor_IsRemovedByALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newWatchedLife(t, newRig(t, embedded.Options{}), Options{})
		s, shard := l.startStore(0), repository.ShardOf(l.watch.ID.Cursor(l.watch.Owner))
		require.NoError(t, s.CreateWatch(t.Context(), l.watch))
		require.NoError(t, s.DeleteWatch(t.Context(), l.watch.Owner, l.watch.ID))
		for _, want := range []int{1, 0} {
			entries, _, err := s.Cursors(t.Context(), shard)
			require.NoError(t, err)
			require.Len(t, entries, want)
			_, _, err = s.Load(t.Context(), l.watch.ID.Cursor(l.watch.Owner), domain.Owner{Incarnation: "a", Limit: 1}, time.Now)
			require.Equal(t, domain.NotFound, domain.KindOf(err))
		}
	})
}

// A node deletes a watch and crashes before the cursor has a shard entry. The caller receives no reply
// and repeats the request, which adds the entry.
func TestARepeatedDeletion_GivesTheCursorAnEntryUntilItIsRetired(t *testing.T) {
	for _, v := range watchVariants {
		t.Run(v.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newWatchedLife(t, newRig(t, v.engine), v.opts)
				s, id := l.startStore(0), l.watch.ID.Cursor(l.watch.Owner)
				require.NoError(t, s.CreateWatch(t.Context(), l.watch))
				require.NoError(t, s.Create(t.Context(), id, domain.Standing{Stream: l.resource.Stream()}))
				isDeleted := false
				l.line.Break(func(_ int, req *http.Request) faulty.Fault {
					switch {
					case isDeleted:
						return faulty.RequestLost
					case req.Method == http.MethodDelete:
						isDeleted = true
						return faulty.ReplyLostAfter
					}
					return faulty.None
				})
				require.Error(t, s.DeleteWatch(t.Context(), l.watch.Owner, l.watch.ID))
				l.line.Break(nil)
				isListed := func() bool {
					entries, _, err := s.Cursors(t.Context(), repository.ShardOf(id))
					require.NoError(t, err)
					return len(entries) == 1
				}
				require.False(t, isListed())
				require.Equal(t, domain.NotFound, domain.KindOf(s.DeleteWatch(t.Context(), l.watch.Owner, l.watch.ID)))
				require.True(t, isListed())

				c, version, err := s.Load(t.Context(), id, domain.Owner{Incarnation: "a", Limit: 1}, time.Now)
				require.NoError(t, err)
				require.False(t, c.Cancel(1))
				version, err = s.Settle(t.Context(), id, version, c.Settlement())
				require.NoError(t, err)
				require.NoError(t, s.Retire(t.Context(), id, version))
				require.Equal(t, domain.NotFound, domain.KindOf(s.DeleteWatch(t.Context(), l.watch.Owner, l.watch.ID)))
				require.False(t, isListed())
			})
		})
	}
}

// If the shard entry of the cursor cannot be stored, the deletion of the watch fails.
func TestADeletionThatGivesTheCursorNoEntry_Fails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newWatchedLife(t, newRig(t, embedded.Options{}), Options{})
		s, id := l.startStore(0), l.watch.ID.Cursor(l.watch.Owner)
		require.NoError(t, s.CreateWatch(t.Context(), l.watch))
		require.NoError(t, s.Create(t.Context(), id, domain.Standing{Stream: l.resource.Stream()}))
		isDeleted, isBroken := false, false
		l.line.Break(func(_ int, req *http.Request) faulty.Fault {
			if isDeleted && !isBroken {
				isBroken = true
				return faulty.Forbidden
			}
			isDeleted = isDeleted || req.Method == http.MethodDelete
			return faulty.None
		})
		require.Error(t, s.DeleteWatch(t.Context(), l.watch.Owner, l.watch.ID))
		require.True(t, isBroken)
		require.Equal(t, domain.NotFound, domain.KindOf(s.DeleteWatch(t.Context(), l.watch.Owner, l.watch.ID)))
		entries, _, err := s.Cursors(t.Context(), repository.ShardOf(id))
		require.NoError(t, err)
		require.Len(t, entries, 1)
	})
}

// The owner of a cursor detects a change of the watch because the number of changes differs between two
// shard entries. So each new entry must have a different number.
func TestEachEntryOfAWatch_HasItsOwnNumberOfChanges(t *testing.T) {
	l := newPagedLife(t, newRig(t, embedded.Options{}))
	s := l.node(Options{})
	require.NoError(t, l.runStep(s, 0))
	resource, err := domain.Kept("document")
	require.NoError(t, err)
	seen := make(map[int64]bool)
	for range 3 {
		require.NoError(t, s.noteWatchChange(t.Context(), s.client.Begin("test"), l.watches[0], resource.Key()))
		entries := l.listEntries(s)
		require.Len(t, entries, 1)
		require.False(t, seen[entries[0].Changes])
		seen[entries[0].Changes] = true
		l.unlistCursor(s)
	}
}
