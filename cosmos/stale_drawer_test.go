package cosmos

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A Save reads a part of the drawer that is being filled, because the stored filter indicates that the
// drawer may contain one of its events. Before the Save writes, another node adds events to the drawer.
// The Save must find the new events, too.
func TestADrawerReadWithAnOldHead_IsCompletedWithANewerOne(t *testing.T) {
	for _, tails := range []int{0, 4} {
		for _, more := range []int{1, 4, 25} { // added to the same drawer, to its tail, or also to later drawers
			t.Run(fmt.Sprintf("tails of %d, %d more", tails, more), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newTrust(t)
					opts := Options{DrawerCapacity: 60, TailEvents: tails}
					if more > 10 {
						opts.DrawerCapacity = 20
					}
					busy := s.node(opts, true)
					var stored []domain.Event
					save := func(n int) {
						for range n {
							events := repositorytest.Events(1, s.actor)
							stored = append(stored, events...)
							s.save(busy, 0, events)
						}
					}
					save(17)
					busy.AwaitHints(t.Context(), s.actor)

					cold, line := s.tappedNode(opts)
					fresh := repositorytest.Events(1, s.actor)
					batch := append([]domain.Event{stored[0], stored[16]}, fresh...)
					// The other node adds one of the events of this Save.
					batch = append(batch, repositorytest.Events(1, s.actor)...)
					next := batch[3]
					line.setBefore(atNth(1, isHeadReplacement, func() error {
						s.save(busy, 0, []domain.Event{next})
						save(more - 1)
						busy.AwaitHints(t.Context(), s.actor)
						return nil
					}))
					saved, err := cold.Save(t.Context(), s.actor, batch)
					require.NoError(t, err)
					require.Equal(t, repository.Saved{Accepted: 1, Duplicates: 3}, saved)
					s.ledger.Saved(1, fresh...)
					s.drainAll()
				})
			})
		}
	}
}
