package node

import (
	"context"
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
	"github.com/messagehub/messagehub/domain/watch"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A removalWorld is an account that contains a watched, dequeued bundle.
type removalWorld struct {
	*testing.T
	account *accounttest.Account
	actor   domain.ActorID
	bundle  domain.BundleID
}

const removalRetention = time.Minute

// serve starts a new node, which sweeps, and delivers notices for this
// duration. retries is the number of retries that all of its store requests
// share: 0 selects the default, a negative number none.
func (w *removalWorld) serve(retries int, duration time.Duration) {
	db := w.account.Connect()
	store := cosmos.New(db, w.account.Content, cosmos.Options{SweepEvery: -1, Retention: removalRetention, Retries: retries})
	documents := pushstore.New(db, w.account.Content, pushstore.Options{Retries: retries})
	relay := watch.NewRelay(documents, documents, func(domain.StreamName, []domain.Message, []repository.Appended) {}, watch.RelayOptions{})
	noticeRelay := hub.NewNoticeRelay(store, noticesTo{relay}, hub.NoticeRelayOptions{})
	store.ObserveRemovals(noticeRelay.Enqueue)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := store.Sweep(ctx)
	require.True(w, err == nil || retries < 0, "%v", err)
	var running sync.WaitGroup
	running.Go(func() { _ = noticeRelay.Run(ctx) })
	<-time.After(duration) // time of the synctest bubble
	synctest.Wait()
	cancel()
	running.Wait()
}

// A noticesTo passes notices to a relay of changes.
type noticesTo struct{ relay *watch.Relay }

func (c noticesTo) Notify(ctx context.Context, n domain.Notice) error { return c.relay.Notify(ctx, n) }

// published returns the published changes of the bundle.
func (w *removalWorld) published() (events []domain.ChangeEvent) {
	documents := pushstore.New(w.account.Connect(), w.account.Content, pushstore.Options{})
	found, err := documents.Read(w.Context(), domain.BundleOf(w.actor, w.bundle).Stream(), domain.Position{}, 100)
	require.NoError(w, err)
	for i, e := range found.Entries {
		c, err := domain.ChangeOf(&e.Message, int64(i))
		require.NoError(w, err)
		events = append(events, c.Event)
	}
	return events
}

// A node crashes at each of its store requests in turn, during a sweep and the
// delivery of its notices. Then another node continues. The removal of a
// watched bundle must be published exactly once, after the bundle's Dequeue.
func TestRemovals_SurviveACrashAtEachRequest(t *testing.T) {
	for _, last := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		t.Run(last.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for n := 1; ; n++ {
					if crashed := crashRemoval(t, n, last); !crashed {
						require.Greater(t, n, 12)
						return
					}
				}
			})
		})
	}
}

// crashRemoval runs a node with a crash at the n-th store request. It returns
// false if the run needed fewer requests.
func crashRemoval(t *testing.T, n int, last faulty.Fault) (crashed bool) {
	w := &removalWorld{
		T: t, actor: repositorytest.NewActor(), bundle: repositorytest.NewBundleID(),
		account: accounttest.New(t, embedded.Options{}, append(cosmos.Containers(), pushstore.Containers()...)),
	}
	store := cosmos.New(w.account.Connect(), w.account.Content, cosmos.Options{SweepEvery: -1, Retention: removalRetention})
	_, err := store.Save(t.Context(), w.actor, repositorytest.Events(1, w.actor))
	require.NoError(t, err)
	stores := repositorytest.Stores{Events: store, Bundles: store, Content: w.account.Content, Answers: store, Outbox: store}
	_, err = repositorytest.Peek(t.Context(), stores, w.actor, domain.DefaultGroups().All(), w.bundle)
	require.NoError(t, err)
	_, err = store.WatchBundle(t.Context(), w.actor, w.bundle)
	require.NoError(t, err)
	_, err = store.Acknowledge(t.Context(), w.actor, w.bundle)
	require.NoError(t, err)
	<-time.After(removalRetention)

	w.account.Transport.CrashAt(n, last)
	w.serve(-1, time.Minute)
	crashed = w.account.Transport.Fired() > 0
	w.account.Transport.Break(nil)
	w.serve(0, 2*time.Minute)
	require.Equal(t, []domain.ChangeEvent{domain.ResourceUpdated, domain.ResourceDeleted}, w.published(), "crash at request %d", n)
	notices, err := store.Notices(t.Context(), w.actor)
	require.NoError(t, err)
	require.Empty(t, notices)
	return crashed
}
