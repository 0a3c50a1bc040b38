package objects

import (
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// A versionedObject is an object with many versions.
type versionedObject struct {
	t       *testing.T
	account *accounttest.Account
	store   *Store
	name    domain.ObjectName
}

func newVersionedObject(t *testing.T, versions int, opts Options) *versionedObject {
	t.Helper()
	a := accounttest.New(t, embedded.Options{Pessimistic: true}, Containers())
	o := &versionedObject{t, a, New(a.Connect(), opts), must(domain.ParseObjectName("bucket", "key"))}
	var events []domain.ObjectEvent
	for i := range versions {
		events = append(events, o.event("C", i, i))
	}
	o.storeEvents(events...)
	return o
}

// event returns the creation of a version, or its deletion.
func (o *versionedObject) event(kind string, version, sequencer int) domain.ObjectEvent {
	return objecttest.Calls(fmt.Sprintf("[%s@%08X/v%d]", kind, sequencer, version))[0][0]
}

func (o *versionedObject) storeEvents(events ...domain.ObjectEvent) {
	o.t.Helper()
	var reports []repository.ObjectReport
	for _, e := range events {
		reports = append(reports, repository.ObjectReport{Name: o.name, ObjectEvent: e})
	}
	results, err := o.store.Ingest(o.t.Context(), reports)
	require.NoError(o.t, err)
	for _, r := range results {
		require.NoError(o.t, r.Err)
		require.Equal(o.t, domain.ObjectStored, r.Outcome)
	}
}

// requireCurrent requires that a version is current.
func (o *versionedObject) requireCurrent(version int) {
	o.t.Helper()
	object, err := o.store.Object(o.t.Context(), o.name)
	require.NoError(o.t, err)
	require.NotNil(o.t, object.Current, "version %d", version)
	require.Equal(o.t, fmt.Sprint("v", version), object.Current.Version.String())
}

// deleteNewest deletes the n newest versions, one in each call, and returns the mean request units of a
// call.
func (o *versionedObject) deleteNewest(versions, n int) float64 {
	o.t.Helper()
	before := o.account.Engine.RequestUnits()
	for i := range n {
		version := versions - 1 - i
		o.storeEvents(o.event("D", version, versions+i))
		o.requireCurrent(version - 1)
	}
	return (o.account.Engine.RequestUnits() - before) / float64(n)
}

// The deletion of the newest version makes an older version current. Its cost does not depend on the
// number of versions.
func TestDeletingTheNewestVersion_CostDoesNotDependOnTheirNumber(t *testing.T) {
	price := func(versions int) float64 {
		return newVersionedObject(t, versions, Options{Shards: 1}).deleteNewest(versions, 40)
	}
	few, many := price(100), price(1500)
	t.Logf("%.1f RU a deletion of 100 versions, %.1f of 1,500", few, many)
	require.LessOrEqual(t, many, few*1.05)
	require.LessOrEqual(t, few, 90.0)
}

// Copies that an older version of the hub stored lack the member live. They are still read.
func TestCopiesOfAnOlderVersion_AreRead(t *testing.T) {
	const versions = 30
	o := newVersionedObject(t, versions, Options{Shards: 1, Limits: domain.ObjectLimits{Rows: 4}})
	heads := 0
	for v := range versions {
		d := &rowDoc{}
		id := headID(o.name.Key(), o.event("C", v, v).Version)
		c := o.store.client.Begin("test")
		partition := shardKey("bucket", 0)
		etag, err := c.Read(t.Context(), o.store.objects, partition, id, d)
		if err != nil {
			continue // the row of the version is not spilled
		}
		require.IsType(t, "", d.Live)
		d.Live, heads = nil, heads+1
		_, err = c.Put(t.Context(), o.store.objects, partition, id, azcore.ETag(etag), d)
		require.NoError(t, err)
	}
	require.Greater(t, heads, versions/2)
	o.deleteNewest(versions, versions-1)
	o.storeEvents(o.event("D", 0, 2*versions))
	object, err := o.store.Object(t.Context(), o.name)
	require.NoError(t, err)
	require.Nil(t, object.Current)
}
