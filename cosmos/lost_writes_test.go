package cosmos

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A failover loses the newest writes of the head, of the drawer and of its pages, but not the filter. Reads
// may be stale, so a node must not mistake a stale head for a loss.
func TestAfterLostWrites_EventsInTheirSlotsAreKnown(t *testing.T) {
	for name, saver := range map[string]func(s *trust, before *Repository) *Repository{
		"by a node that knew the lost events":     func(_ *trust, before *Repository) *Repository { return before },
		"by a node that knows the filter of them": func(s *trust, _ *Repository) *Repository { return s.node(Options{}, true) },
	} {
		t.Run(name, func(t *testing.T) {
			s := &trust{T: t, rig: newRig(t, embedded.Options{Consistency: "Session"}), actor: repositorytest.NewActor()}
			before := s.node(Options{}, true)
			saves := func(node *Repository, n int) []domain.Event {
				all := repositorytest.Events(n, s.actor)
				for i := range all {
					saved, err := node.Save(t.Context(), s.actor, all[i:i+1])
					require.NoError(t, err)
					require.Equal(t, 1, saved.Accepted)
				}
				node.AwaitHints(t.Context(), s.actor)
				return all
			}
			const kept, lost = 17, 25
			cabinet := saves(before, kept)[0].Cabinet()
			c := before.beginCall("test")
			h, err := c.readHead(t.Context(), s.actor)
			require.NoError(t, err)
			at := h.Cabinets[nameOf(cabinet)].Drawer
			var d drawer
			_, err = c.Read(t.Context(), before.db.cabinets, cabinetKey(cabinet), at, &d)
			require.NoError(t, err)

			saves(before, lost)
			newest, err := c.readHead(t.Context(), s.actor)
			require.NoError(t, err)
			_, err = c.Put(t.Context(), before.db.catalog, h.PartitionKey, headID, newest.etag, h)
			require.NoError(t, err)
			var current drawer
			etag, err := c.Read(t.Context(), before.db.cabinets, cabinetKey(cabinet), at, &current)
			require.NoError(t, err)
			_, err = c.Put(t.Context(), before.db.cabinets, cabinetKey(cabinet), at, etag, &d)
			require.NoError(t, err)
			for slot := range lost {
				require.NoError(t, c.DeleteIfExists(t.Context(), before.db.cabinets, at, pageID(kept+slot)))
			}

			node := saver(s, before)
			again := saves(node, lost+5)
			for _, node := range []*Repository{node, s.node(Options{}, false), s.node(Options{}, true)} {
				saved, err := node.Save(t.Context(), s.actor, again)
				require.NoError(t, err)
				require.Equal(t, repository.Saved{Duplicates: len(again)}, saved)
			}
		})
	}
}
