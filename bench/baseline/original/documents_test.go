package original

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestLargestBundle_FitsIntoADocument(t *testing.T) {
	actor := repositorytest.NewActor()
	var ranges []drawerRange
	number := domain.Sequence(0)
	for range drawersPerPeek {
		s := drawerRange{drawerItem: drawerItem{ID: repositorytest.NewEventID().String(), OrderBy: number + 1}}
		for _, e := range repositorytest.Events(drawerCapacity, actor) {
			number++
			s.events = append(s.events, repository.StoredEvent{Event: e, Sequence: number})
		}
		ranges = append(ranges, s)
	}
	first := ranges[0].events[0]
	r := (&Repository{groups: domain.DefaultGroups()}).runFrom(first.Cabinet(), ranges)
	b := domain.Bundle{ID: repositorytest.NewBundleID(), Group: r.Group(), Cabinet: r.Cabinet(), Count: int(domain.MaxBundleWeight)}
	item, err := newBundle(&b, r)
	require.NoError(t, err)
	require.Len(t, item.AffectedDrawers, drawersPerPeek)
	require.Equal(t, 1_200, item.AffectedDrawers[5].UpdatedDrawer.Position)
	text, err := json.Marshal(item)
	require.NoError(t, err)
	require.Less(t, len(text), 2<<20)
	require.Greater(t, len(text), 1<<20, "all ids are in it")
}
