package cosmos

import (
	"context"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// The tests in this file make hints wrong. Nevertheless, all events must be delivered in the right order.

// saveInTwoCabinets saves one event each to a cabinet, to a second cabinet, and again to the first
// cabinet. It returns the ids of the events in the order of their numbers.
func (s *trust) saveInTwoCabinets(node *Repository) []domain.EventID {
	var ids []domain.EventID
	for _, origin := range []domain.Origin{domain.Charges, domain.MarketRoles, domain.Charges} {
		e := repositorytest.Event(s.actor, repositorytest.WithOrigin(origin), repositorytest.WithoutBundling)
		s.save(node, 0, []domain.Event{e})
		ids = append(ids, e.ID)
	}
	return ids
}

// dequeueNext peeks and dequeues one bundle. It returns the id of the first event.
func (s *trust) dequeueNext(node *Repository) domain.EventID {
	s.Helper()
	b, err := repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
	require.NoError(s, err)
	_, err = node.Acknowledge(context.Background(), s.actor, b.ID)
	require.NoError(s, err)
	return b.Events[0].ID
}

// readEntries returns the catalog entries of an origin.
func (s *trust) readEntries(node *Repository, origin domain.Origin) []catalogEntry {
	s.Helper()
	found, err := client.All[catalogEntry](context.Background(), node.beginCall("test").Query(node.db.catalog, catalogKey(s.actor, origin), "SELECT * FROM c"))
	require.NoError(s, err)
	var entries []catalogEntry
	for _, e := range found {
		entries = append(entries, *e)
	}
	return entries
}

func (s *trust) deleteDocument(container *azcosmos.ContainerClient, key, id string) {
	s.Helper()
	_, err := container.DeleteItem(context.Background(), azcosmos.NewPartitionKeyString(key), id, nil)
	require.NoError(s, err)
}

func TestAnEntryThatIsTooLow_DoesNotWinTheChoice(t *testing.T) {
	s := newTrust(t)
	node := s.node(small, false) // this node writes no hints, so no Dequeue changes the entries
	ids := s.saveInTwoCabinets(node)

	assert.Equal(t, ids[0], s.dequeueNext(node))
	assert.Equal(t, domain.Sequence(1), s.readEntries(node, domain.Charges)[0].NextSequence, "it points at what is acknowledged")
	assert.Equal(t, ids[1], s.dequeueNext(node), "H4: number 2 comes before number 3")
	assert.Equal(t, domain.Sequence(3), s.readEntries(node, domain.Charges)[0].NextSequence, "H10: repaired when it is found")
	assert.Equal(t, ids[2], s.dequeueNext(node))
}

func TestAMissingEntry_IsRestored(t *testing.T) {
	s := newTrust(t)
	node := s.node(small, false)
	ids := s.saveInTwoCabinets(node)
	s.deleteDocument(node.db.catalog, catalogKey(s.actor, domain.Charges), s.readEntries(node, domain.Charges)[0].ID)

	assert.Equal(t, ids[0], s.dequeueNext(node), "H10: a lost pointer is no reason to overtake")
	assert.Len(t, s.readEntries(node, domain.Charges), 1, "H10: repaired when it is found")
	assert.Equal(t, ids[1], s.dequeueNext(node))
	assert.Equal(t, ids[2], s.dequeueNext(node))
}

func TestAnEntryOfAFinishedDrawer_IsRemoved(t *testing.T) {
	s := newTrust(t)
	node := s.node(Options{DrawerCapacity: 1, Exclusive: true}, false)
	ids := s.saveInTwoCabinets(node)
	assert.Equal(t, ids[0], s.dequeueNext(node))
	assert.Equal(t, ids[1], s.dequeueNext(node))

	left := s.readEntries(node, domain.Charges)
	require.Len(t, left, 1)
	assert.Equal(t, 2, left[0].Ordinal, "that of the first drawer is gone")
	assert.Equal(t, ids[2], s.dequeueNext(node))
}

func TestAGapInTheSlots_IsNeverSkipped(t *testing.T) {
	s := newTrust(t)
	node := s.node(small, false)
	events := repositorytest.Events(3, s.actor)
	for _, e := range events {
		s.save(node, 0, []domain.Event{e})
	}
	drawer := s.readEntries(node, events[0].Origin)[0].ID
	s.deleteDocument(node.db.cabinets, drawer, pageID(1))

	b, err := repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
	require.NoError(t, err)
	assert.Equal(t, 1, b.Count, "what comes before the hole")
	_, err = node.Acknowledge(context.Background(), s.actor, b.ID)
	require.NoError(t, err)

	impatient, _ := s.tappedNode(Options{DrawerCapacity: 10, Retries: client.MaxMissing})
	_, err = impatient.NextUnacknowledged(context.Background(), s.actor, allGroups)
	require.Equal(t, domain.Damaged, domain.KindOf(err), "not no data, and not the event behind the hole: %v", err)
}

func TestAnUnreadableOpenBundleIsReportedAsDamage(t *testing.T) {
	s := newTrust(t)
	node, _ := s.tappedNode(Options{DrawerCapacity: 10, Retries: client.MaxMissing})
	events := repositorytest.Events(3, s.actor)
	for _, e := range events {
		s.save(node, 0, []domain.Event{e})
	}
	_, err := repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
	require.NoError(t, err)
	s.deleteDocument(node.db.cabinets, s.readEntries(node, events[0].Origin)[0].ID, pageID(1))

	_, err = repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
	require.Equal(t, domain.Damaged, domain.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "lacks slot 1")
}

func TestAnEntryOfARolledBackSave_DoesNotWinTheChoice(t *testing.T) {
	s := newTrust(t)
	dying, line := s.tappedNode(Options{DrawerCapacity: 10, Retries: -1})
	line.setBefore(atNth(1, isHeadReplacement, func() error { return faulty.ErrLost })) // the first Save creates the head and then commits by replacing it
	_, err := dying.Save(context.Background(), s.actor, []domain.Event{repositorytest.Event(s.actor, repositorytest.WithOrigin(domain.Charges))})
	require.Error(t, err, "it has pointed at number 1, which will never be")

	node := s.node(small, false)
	older := repositorytest.Event(s.actor, repositorytest.WithOrigin(domain.MarketRoles), repositorytest.WithoutBundling)
	newer := repositorytest.Event(s.actor, repositorytest.WithOrigin(domain.Charges), repositorytest.WithoutBundling)
	s.save(node, 0, []domain.Event{older})
	s.save(node, 0, []domain.Event{newer})
	require.Len(t, s.readEntries(node, domain.Charges), 2)

	assert.Equal(t, older.ID, s.dequeueNext(node), "H4: number 2 comes before number 3")
	left := s.readEntries(node, domain.Charges)
	require.Len(t, left, 1, "H10: the dead pointer is gone")
	assert.Equal(t, domain.Sequence(3), left[0].NextSequence)
	assert.Equal(t, newer.ID, s.dequeueNext(node))
}
