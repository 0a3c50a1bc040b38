package cosmos

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// With missing catalog entries, or entries whose numbers are too high, events are still delivered in the
// order of the recipient.
func TestTheOrderOfTheRecipient_DependsOnNoEntry(t *testing.T) {
	inOrder := Options{DrawerCapacity: 2, Exclusive: true, Ordering: domain.ByRecipient}
	for name, spoil := range map[string]func(s *trust, node *Repository, e catalogEntry){
		"gone": func(s *trust, node *Repository, e catalogEntry) {
			s.deleteDocument(node.db.catalog, e.PartitionKey, e.ID)
		},
		"too high": func(s *trust, node *Repository, e catalogEntry) {
			e.NextSequence += 1000
			_, err := node.beginCall("test").Put(context.Background(), node.db.catalog, e.PartitionKey, e.ID, e.ETag, &e)
			require.NoError(s, err)
		},
		"too low": func(s *trust, node *Repository, e catalogEntry) {
			e.NextSequence = 0
			_, err := node.beginCall("test").Put(context.Background(), node.db.catalog, e.PartitionKey, e.ID, e.ETag, &e)
			require.NoError(s, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTrust(t)
			node := s.node(Options{DrawerCapacity: 2, Exclusive: true}, false) // with the ordering by cabinet, a Save writes catalog entries
			var want []domain.EventID
			for i := range 24 {
				e := repositorytest.Event(s.actor, repositorytest.WithOrigin(domain.Charges), repositorytest.WithContentType(fmt.Sprint(i*i%5)))
				s.save(node, 0, []domain.Event{e})
				want = append(want, e.ID)
			}
			require.NotEmpty(t, s.readEntries(node, domain.Charges))
			var got []domain.EventID
			for len(got) < len(want) {
				for _, e := range s.readEntries(node, domain.Charges) {
					spoil(s, node, e)
				}
				fresh := s.node(inOrder, false) // a new node has no first events in its cache
				b, err := repositorytest.Peek(context.Background(), s.stores(fresh), s.actor, allGroups, domain.BundleID{})
				require.NoError(t, err)
				for _, e := range b.Events {
					got = append(got, e.ID)
				}
				_, err = fresh.Acknowledge(context.Background(), s.actor, b.ID)
				require.NoError(t, err)
			}
			assert.Equal(t, want, got)
		})
	}
}

// After a node has read the first events of the cabinets, a bundle costs as many requests with the
// ordering by recipient as with the ordering by cabinet.
func TestANode_ReadsTheFirstEventAfterAPositionOnce(t *testing.T) {
	s := newTrust(t)
	node := s.node(Options{Exclusive: true, Ordering: domain.ByRecipient}, false)
	ctx := context.Background()
	for i := range 60 {
		s.save(node, 0, repositorytest.Events(2, s.actor, repositorytest.WithContentType(fmt.Sprint(i%20))))
	}
	for i := range 60 {
		s.line.Break(nil)
		b, err := repositorytest.Peek(ctx, s.stores(node), s.actor, allGroups, domain.BundleID{})
		require.NoError(t, err)
		require.Equal(t, 2, b.Count)
		calls := s.line.Calls()
		if i == 0 {
			assert.Equal(t, 2+20+1, calls, "gates, head, a page of each cabinet, batch")
		} else {
			assert.Equal(t, 4, calls, "gates, head, page, batch")
		}
		_, err = node.Acknowledge(ctx, s.actor, b.ID)
		require.NoError(t, err)
	}
}
