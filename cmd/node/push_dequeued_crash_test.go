package node

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A dequeueWorld is an account with one actor, which dequeues bundles on a
// sequence of nodes.
type dequeueWorld struct {
	*testing.T
	account *accounttest.Account
	actor   domain.ActorID
}

// finishWork starts a new node, which dequeues all waiting bundles, and
// delivers notices for this duration. retries is the number of retries that all
// of its store requests share: 0 selects the default, a negative number none.
func (w *dequeueWorld) finishWork(retries int, duration time.Duration) error {
	db := w.account.Connect()
	store := cosmos.New(db, w.account.Content, cosmos.Options{SweepEvery: -1, Retries: retries})
	documents := pushstore.New(db, w.account.Content, pushstore.Options{Retries: retries})
	events := publish.New(documents, func(domain.StreamName, []domain.Message, []repository.Appended) {})
	relay := hub.NewNoticeRelay(store, &notifier{subscribers: events}, hub.NoticeRelayOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stores := repositorytest.Stores{Events: store, Bundles: store, Content: w.account.Content, Answers: store, Outbox: store}
	_, err := repositorytest.Drain(ctx, stores, w.actor, domain.DefaultGroups().All())
	if err == nil && duration == 0 {
		relay.Enqueue(w.actor)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = relay.Run(ctx) })
	<-time.After(duration) // time of the synctest bubble
	synctest.Wait()
	cancel()
	running.Wait()
	return err
}

// published returns the ids of bundles whose Dequeue was published.
func (w *dequeueWorld) published() (ids []string) {
	db := w.account.Connect()
	documents := pushstore.New(db, w.account.Content, pushstore.Options{})
	found, err := documents.Read(w.Context(), domain.DequeuedStream(w.actor), domain.Position{}, 100)
	require.NoError(w, err)
	for _, e := range found.Entries {
		var data struct {
			BundleID string `json:"bundleId"`
			Events   int    `json:"events"`
		}
		require.NoError(w, json.Unmarshal(e.Payload, &data))
		require.Equal(w, 1, data.Events)
		ids = append(ids, data.BundleID)
	}
	return ids
}

// A node crashes at each of its store requests in turn, during Dequeues and the
// delivery of their notices. Then another node continues. The Dequeue of each
// bundle must be published exactly once.
func TestDequeuedEvents_SurviveACrashAtEachRequest(t *testing.T) {
	for _, last := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		t.Run(last.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for n := 1; ; n++ {
					if crashed := crashDequeue(t, n, last); !crashed {
						require.Greater(t, n, 20)
						return
					}
				}
			})
		})
	}
}

// crashDequeue runs a node with a crash at the n-th store request. It returns
// false if the run needed fewer requests.
func crashDequeue(t *testing.T, n int, last faulty.Fault) (crashed bool) {
	const bundles = 3
	w := &dequeueWorld{
		T: t, actor: repositorytest.NewActor(),
		account: accounttest.New(t, embedded.Options{}, append(cosmos.Containers(), pushstore.Containers()...)),
	}
	store := cosmos.New(w.account.Connect(), w.account.Content, cosmos.Options{SweepEvery: -1})
	_, err := store.RequestDequeues(t.Context(), w.actor, repositorytest.NewSubscriptionID())
	require.NoError(t, err)
	_, err = store.Save(t.Context(), w.actor, repositorytest.Events(bundles, w.actor, repositorytest.WithoutBundling))
	require.NoError(t, err)

	w.account.Transport.CrashAt(n, last)
	_ = w.finishWork(-1, 0)
	crashed = w.account.Transport.Fired() > 0
	w.account.Transport.Break(nil)
	require.NoError(t, w.finishWork(0, 2*time.Minute))
	ids := w.published()
	require.Len(t, ids, bundles, "crash at request %d: %v", n, ids)
	seen := make(map[string]bool)
	for _, id := range ids {
		require.False(t, seen[id], "crash at request %d: %s is published twice", n, id)
		seen[id] = true
	}
	notices, err := store.Notices(t.Context(), w.actor)
	require.NoError(t, err)
	require.Empty(t, notices)
	return crashed
}
