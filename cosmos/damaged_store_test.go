package cosmos

import (
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A damagedStore is a store with one recipient, whose documents a test damages. The main cabinet has three
// full drawers and a fourth, and five acknowledged events; another cabinet has one drawer. A bundle of two
// events is open.
type damagedStore struct {
	*testing.T
	*rig
	node  *Repository
	actor domain.ActorID
	main  domain.CabinetKey
	other domain.CabinetKey
}

func newDamagedStore(t *testing.T) *damagedStore {
	d := &damagedStore{T: t, rig: newRig(t, embedded.Options{}), actor: repositorytest.NewActor()}
	d.node = d.rig.node(Options{DrawerCapacity: 3, Exclusive: true, SweepEvery: -1}, true)
	for range 5 {
		d.saveEvents(2, domain.TimeSeries)
	}
	d.saveEvents(2, domain.Charges)
	d.main = domain.CabinetKey{Recipient: d.actor, Origin: domain.TimeSeries, ContentType: d.contentType()}
	d.other = domain.CabinetKey{Recipient: d.actor, Origin: domain.Charges, ContentType: d.contentType()}
	b := d.openBundle(5)
	_, err := d.node.Acknowledge(t.Context(), d.actor, b.ID)
	require.NoError(t, err)
	d.openBundle(2)
	d.node.AwaitHints(t.Context(), d.actor)
	require.NoError(t, d.repairMailbox(d.actor))
	require.Empty(t, d.runCheck(CheckOptions{}).Findings)
	return d
}

// storeWrongFilters damages the filter of the first drawer, and adds a wrong filter in the format of an
// older version.
func (d *damagedStore) storeWrongFilters() {
	first := d.readDrawers(d.main)[0].ID
	wrong := &filterDoc{ID: filterID, PartitionKey: first, Count: 3, Filter: newFilter(3)}
	_, err := d.node.beginCall("test").Put(d.Context(), d.node.db.cabinets, first, filterID, "", wrong)
	require.NoError(d, err)
	empty := newFingerprintSet(drawerSegment(1), nil).encode()
	d.patchDocument(d.node.db.cabinets, cabinetKey(d.main), drawerSegment(1).documentID(), "/fingerprints", empty)
}

func (d *damagedStore) contentType() domain.ContentType {
	return repositorytest.Event(d.actor).ContentType
}

func (d *damagedStore) saveEvents(n int, origin domain.Origin) {
	_, err := d.node.Save(d.Context(), d.actor, repositorytest.Events(n, d.actor, repositorytest.WithOrigin(origin)))
	require.NoError(d, err)
}

// openBundle opens a bundle of n events of the main cabinet.
func (d *damagedStore) openBundle(n int) domain.Bundle {
	group, err := domain.DefaultGroups().GroupOf(domain.TimeSeries)
	require.NoError(d, err)
	next, err := d.node.NextUnacknowledged(d.Context(), d.actor, []domain.Group{group})
	require.NoError(d, err)
	var filler domain.Filler
	for e, err := range next.Run.Events(d.Context()) {
		require.NoError(d, err)
		require.True(d, filler.Take(&e.Event, e.Sequence))
		if n--; n == 0 {
			break
		}
	}
	b := domain.Bundle{ID: repositorytest.NewBundleID(), Group: group, Cabinet: next.Run.Cabinet(), Content: domain.Manifest, Format: domain.JSON, Version: "1.0"}
	filler.Fill(&b)
	b, err = d.node.Add(d.Context(), b, next.Run)
	require.NoError(d, err)
	return b
}

func (d *damagedStore) runCheck(opts CheckOptions) repository.CheckReport {
	opts.Recipient = d.actor
	report, err := d.node.Check(d.Context(), opts)
	require.NoError(d, err)
	return report
}

func (d *damagedStore) readDrawers(k domain.CabinetKey) []*drawer {
	found, err := client.All[drawer](d.Context(), d.node.beginCall("test").Query(d.node.db.cabinets, cabinetKey(k), "SELECT * FROM c WHERE c.ordinal > 0 ORDER BY c.ordinal"))
	require.NoError(d, err)
	return found
}

// patchDocument sets a field of a document to a value that the hub would not store.
func (d *damagedStore) patchDocument(container *azcosmos.ContainerClient, key, id, path string, value any) {
	var ops azcosmos.PatchOperations
	ops.AppendSet(path, value)
	require.NoError(d, d.node.beginCall("test").Patch(d.Context(), container, key, id, ops, &struct{}{}))
}

func (d *damagedStore) deleteDocument(container *azcosmos.ContainerClient, key, id string) {
	require.NoError(d, d.node.beginCall("test").DeleteIfExists(d.Context(), container, key, id))
}

// createDocument creates, in the partition of the gates, a document that the hub would not create.
func (d *damagedStore) createDocument(doc any) {
	_, err := d.node.beginCall("test").Put(d.Context(), d.node.db.bundles, d.actor.String(), "", "", doc)
	require.NoError(d, err)
}

func (d *damagedStore) newNoticeDoc(bundle string, number int64) *noticeDoc {
	group := groupOf(d.T, domain.TimeSeries).String()
	return &noticeDoc{
		ID: noticeID(domain.ForDomain, group, number), Recipient: d.actor.String(), Kind: noticeKind, Group: group, Number: number,
		Origin: domain.TimeSeries.String(), Bundle: bundle, Since: 1,
	}
}

func (d *damagedStore) readHead() *head {
	h, err := d.node.beginCall("test").readHead(d.Context(), d.actor)
	require.NoError(d, err)
	return h
}

// leaveIntent kills a node in the middle of a Save, so that its intent remains.
func (d *damagedStore) leaveIntent() {
	dying := d.rig.node(Options{DrawerCapacity: 3, Retries: -1}, false)
	reserved := false
	d.line.Break(func(_ int, req *http.Request) faulty.Fault {
		if reserved {
			return faulty.RequestLost
		}
		reserved = req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/"+headID)
		return faulty.None
	})
	_, err := dying.Save(d.Context(), d.actor, repositorytest.Events(2, d.actor))
	require.Error(d, err)
	d.line.Break(nil)
	require.NotNil(d, d.readHead().Intent)
}

func (d *damagedStore) readGate() *gate {
	gates := make(map[domain.Group]*gate)
	require.NoError(d, d.node.beginCall("test").readGates(d.Context(), d.actor, allGroups, gates))
	for _, g := range gates {
		if g.Open != "" {
			return g
		}
	}
	require.Fail(d, "no gate has an open bundle")
	return nil
}

func (d *damagedStore) openBundleID() string { return d.readGate().Open }

func (d *damagedStore) readPage(drawer string, slot int) []storedEvent {
	var p drawerPage
	_, err := d.node.beginCall("test").Read(d.Context(), d.node.db.cabinets, drawer, pageID(slot), &p)
	require.NoError(d, err)
	var events []storedEvent
	require.NoError(d, p.decodeEvents(d.main, func(_ int, e *storedEvent) bool { events = append(events, *e); return true }))
	return events
}
