package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/repository"
)

// The publication of a change costs two writes: one appends the change and its
// id to the topic, the other removes the stored change.
func TestPublicationOfAChange_HasABoundedCost(t *testing.T) {
	for changes, limit := range map[int]float64{1: 26, 50: 13} {
		a := accounttest.New(t, embedded.Options{Pessimistic: true}, slices.Concat(objectstore.Containers(), pushstore.Containers()))
		db := a.Connect()
		objects := objectstore.New(db, objectstore.Options{Topic: true})
		documents := pushstore.New(db, a.Content, pushstore.Options{})
		events := publish.New(documents, func(domain.StreamName, []domain.Message, []repository.Appended) {})
		relay := publish.NewObjectRelay(objects.Topic(), events, publish.ObjectRelayOptions{})
		var price float64
		for round := range 4 { // the first round also creates the stream
			var reports []repository.ObjectReport
			for i := range changes {
				name, err := domain.ParseObjectName("bucket", fmt.Sprint("a/folder/with/objects/", round, "-", i))
				require.NoError(t, err)
				reports = append(reports, repository.ObjectReport{Name: name, ObjectEvent: objecttest.Calls("[C@01]")[0][0]})
			}
			_, err := objects.Ingest(t.Context(), reports)
			require.NoError(t, err)
			left, err := objects.Topic().Unpublished(t.Context(), time.Now().Add(time.Minute), 100)
			require.NoError(t, err)
			require.Len(t, left, changes)
			before := a.Engine.RequestUnits()
			require.NoError(t, relay.Publish(t.Context(), left))
			price = (a.Engine.RequestUnits() - before) / float64(changes)
		}
		t.Logf("%.1f RU each of %d changes", price, changes)
		require.LessOrEqual(t, price, limit)
	}
}
