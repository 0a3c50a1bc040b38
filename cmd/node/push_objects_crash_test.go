package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/repository"
)

// storeAndPublish starts a new node, which stores an object's events, and
// publishes the change after each of them. retries is the number of retries
// that all of its store requests share: 0 selects the default, a negative
// number none.
func storeAndPublish(ctx context.Context, a *accounttest.Account, retries int) error {
	db := a.Connect()
	objects := objectstore.New(db, objectstore.Options{Shards: 1, Topic: true, Retries: retries})
	documents := pushstore.New(db, a.Content, pushstore.Options{Retries: retries})
	events := publish.New(documents, func(domain.StreamName, []domain.Message, []repository.Appended) {})
	relay := publish.NewObjectRelay(objects.Topic(), events, publish.ObjectRelayOptions{})
	name, err := domain.ParseObjectName("bucket", "key")
	if err != nil {
		return err
	}
	for _, call := range objecttest.Calls("[C@01] [C@02] [D@03]") {
		results, err := objects.Ingest(ctx, []repository.ObjectReport{{Name: name, ObjectEvent: call[0]}})
		if err == nil {
			err = results[0].Err
		}
		var left []domain.ObjectChange
		if err == nil {
			left, err = objects.Topic().Unpublished(ctx, time.Now().Add(time.Minute), 10)
		}
		if err == nil && len(left) > 0 {
			err = relay.Publish(ctx, left)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A node crashes at each of its store requests in turn while it stores events
// and publishes changes. Then another node starts from the beginning. Each
// change must be published exactly once.
func TestChangesOfObjects_SurviveACrashAtEachRequest(t *testing.T) {
	for _, last := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		t.Run(last.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for n := 1; ; n++ {
					a := accounttest.New(t, embedded.Options{}, slices.Concat(objectstore.Containers(), pushstore.Containers()))
					a.Transport.CrashAt(n, last)
					err := storeAndPublish(t.Context(), a, -1)
					crashed := a.Transport.Fired() > 0
					a.Transport.Break(nil)
					require.Equal(t, crashed, err != nil, "request %d: %v", n, err)
					require.NoError(t, storeAndPublish(t.Context(), a, 0), "request %d", n)
					require.Equal(t, []string{"created", "updated", "deleted"}, publishedChanges(t, a), "request %d", n)
					if !crashed {
						require.Greater(t, n, 15)
						return
					}
				}
			})
		})
	}
}

// publishedChanges returns the topic's events. It checks that their versions
// ascend, and that no change remains unpublished.
func publishedChanges(t *testing.T, a *accounttest.Account) (events []string) {
	t.Helper()
	documents := pushstore.New(a.Connect(), a.Content, pushstore.Options{})
	found, err := documents.Read(t.Context(), domain.ObjectsStream(), domain.Position{}, 100)
	require.NoError(t, err)
	var version int64
	for _, e := range found.Entries {
		var data struct {
			Event   string
			Version int64
		}
		require.NoError(t, json.Unmarshal(e.Payload, &data))
		require.Greater(t, data.Version, version)
		version = data.Version
		events = append(events, data.Event)
	}
	left, err := objectstore.New(a.Connect(), objectstore.Options{Topic: true}).Topic().Unpublished(t.Context(), time.Now().Add(time.Minute), 10)
	require.NoError(t, err)
	require.Empty(t, left, fmt.Sprint(events))
	return events
}
