package push

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A retirement creates and deletes a subscription and retires its cursor.
type retirement struct {
	*rig
	definition *repository.Definition
	clock      *clock
}

func newRetirement(t *testing.T, opts embedded.Options) *retirement {
	r := &retirement{definition: repositorytest.NewDefinition(repositorytest.NewActor()), clock: &clock{time.Now().UTC().Truncate(time.Second)}}
	opts.Clock = r.clock.readTime
	r.rig = newRig(t, opts)
	return r
}

func (r *retirement) startStore(retries int) *Store {
	return r.node(Options{Retries: retries, Clock: r.clock.readTime})
}

// createCursor creates the subscription and its cursor.
func (r *retirement) createCursor(s *Store) error {
	ctx := context.Background()
	if _, _, err := s.CreateSubscription(ctx, r.definition); err != nil {
		return err
	}
	stream, err := r.definition.Stream()
	if err != nil {
		return err
	}
	return s.Create(ctx, r.definition.ID.Cursor(), domain.Standing{Stream: stream})
}

// retireCursor retires the cursor of a deleted subscription with the same calls as its owner.
func (r *retirement) retireCursor(s *Store) error {
	ctx, id := context.Background(), r.definition.ID.Cursor()
	cursor, version, err := s.Load(ctx, id, domain.Owner{Incarnation: "a", Limit: 1}, r.clock.readTime)
	if err != nil {
		return err
	}
	cursor.Cancel(1)
	if version, err = s.Settle(ctx, id, version, cursor.Settlement()); err != nil {
		return err
	}
	return s.Retire(ctx, id, version)
}

func (r *retirement) delete(s *Store) error {
	return s.DeleteSubscription(context.Background(), r.definition.Owner, r.definition.ID, "")
}

// retireIfListed retires the cursor if its shard lists it, as the next owner does.
func (r *retirement) retireIfListed() {
	r.t.Helper()
	s := r.startStore(0)
	if r.isListed(s) {
		if err := r.retireCursor(s); domain.KindOf(err) != domain.NotFound {
			require.NoError(r.t, err)
		}
	}
}

func (r *retirement) isListed(s *Store) bool {
	r.t.Helper()
	entries, _, err := s.Cursors(context.Background(), repository.ShardOf(r.definition.ID.Cursor()))
	require.NoError(r.t, err)
	return len(entries) > 0
}

// countDocuments counts the cursor and the definition, if their documents exist.
func (r *retirement) countDocuments() int {
	r.t.Helper()
	s := r.startStore(0)
	found := 0
	for _, id := range []string{cursorID, definitionID} {
		var doc map[string]any
		_, err := s.client.Begin("test").Read(context.Background(), s.cursors, r.definition.ID.Cursor().String(), id, &doc)
		if err == nil {
			found++
		}
	}
	return found
}

// wantEnded requires that the cursor and the definition expire. Until then, the creation of a
// subscription with the same id fails with Conflict; afterwards, it succeeds and begins with an active
// cursor.
func (r *retirement) wantEnded(at string) {
	r.t.Helper()
	for day := range 20 {
		s, n := r.startStore(0), r.countDocuments()
		require.False(r.t, r.isListed(s), at)
		err := r.createCursor(s)
		if err == nil {
			require.Zero(r.t, n, "%s: it is created again while something is left of it", at)
			require.Greater(r.t, day, 14, at)
			cursor, _, err := s.Load(context.Background(), r.definition.ID.Cursor(), domain.Owner{Incarnation: "b", Limit: 1}, r.clock.readTime)
			require.NoError(r.t, err, at)
			require.Equal(r.t, domain.Active, cursor.Standing().State, at)
			require.True(r.t, r.isListed(s), at)
			return
		}
		require.Equal(r.t, domain.Conflict, domain.KindOf(err), at)
		require.Positive(r.t, n, at)
		r.clock.now = r.clock.now.Add(24 * time.Hour)
	}
	require.Fail(r.t, "something is left of it for ever", at)
}

// A node crashes at any step of a retirement, or one call fails. The next owner then completes the
// retirement. A node that has read the cursor earlier does not restore its documents.
func TestACrashAtAnyStepOfARetirement_IsCompletedLater(t *testing.T) {
	for _, consistency := range []string{"", "Session"} {
		for _, fault := range append(faulty.CommonFaults(), faulty.Truncated) {
			for _, isCrash := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/%t", consistency, fault, isCrash), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						for n := 1; ; n++ {
							r := newRetirement(t, embedded.Options{Consistency: consistency})
							at := fmt.Sprintf("call %d", n)
							require.NoError(t, r.createCursor(r.startStore(0)))
							old := r.startStore(0)
							held, version, err := old.Load(context.Background(), r.definition.ID.Cursor(), domain.Owner{Incarnation: "old", Limit: 1}, r.clock.readTime)
							require.NoError(t, err)
							require.NoError(t, r.delete(r.startStore(0)))
							node := r.startStore(-1)
							if isCrash {
								r.line.CrashAt(n, fault)
							} else {
								r.line.BreakOne(n, fault)
							}
							_ = r.retireCursor(node)
							ended := r.line.Calls() < n
							r.line.Break(nil)
							r.retireIfListed()
							held.Release()
							_, err = old.Settle(context.Background(), r.definition.ID.Cursor(), version, held.Settlement())
							require.Error(t, err, at)
							r.retireIfListed()
							r.wantEnded(at)
							if ended {
								require.Greater(t, n, 5)
								return
							}
						}
					})
				})
			}
		}
	}
}

// A node is about to remove the leftover entry of an expired cursor. Before each request of that node,
// another node creates a subscription with the same id. The shard must list the new cursor.
func TestALeftoverEntry_IsNotRemovedFromANewCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		removed := 0
		for n := 1; ; n++ {
			r := newRetirement(t, embedded.Options{})
			id := r.definition.ID.Cursor()
			entry := &entryDoc{ID: id.String(), PartitionKey: shardKey(repository.ShardOf(id)), Kind: entryDocument.Name, Stream: "topic|old"}
			s, other := r.otherStore(), r.startStore(0)
			_, err := s.client.Begin("test").Put(t.Context(), s.cursors, entry.PartitionKey, entry.ID, "", entry)
			require.NoError(t, err)
			r.line.Break(func(call int, req *http.Request) faulty.Fault {
				if req.Method == http.MethodDelete {
					removed++
				}
				if call == n {
					require.NoError(t, r.createCursor(s))
				}
				return faulty.None
			})
			_, _, err = other.Load(t.Context(), id, domain.Owner{Incarnation: "o", Limit: 1}, r.clock.readTime)
			require.True(t, err == nil || domain.KindOf(err) == domain.NotFound, "%v", err)
			isEnd := r.line.Calls() < n
			r.line.Break(nil)
			if isEnd {
				require.False(t, r.isListed(other))
				require.Greater(t, removed, 1, "an entry was about to be removed")
				return
			}
			require.True(t, r.isListed(other), "request %d", n)
		}
	})
}

// A loadCounter counts the cursors that a delivery engine loads.
type loadCounter struct {
	repository.Cursors
	n atomic.Int64
}

func (c *loadCounter) Load(ctx context.Context, id domain.CursorID, o domain.Owner, clock func() time.Time) (*domain.Cursor, repository.CursorVersion, error) {
	c.n.Add(1)
	return c.Cursors.Load(ctx, id, o, clock)
}

// subscriptions provides the receivers of a store's subscriptions to a delivery engine.
type subscriptions struct{ *Store }

func (s subscriptions) Receiver(ctx context.Context, cursor domain.CursorID, _ bool) (delivery.Receiver, error) {
	id, err := domain.ParseSubscriptionID(cursor.String()[len("s|"):])
	if err != nil {
		return delivery.Receiver{}, err
	}
	_, err = s.Subscription(ctx, id)
	return delivery.Receiver{Policy: domain.DefaultPolicy()}, err
}

// After a thousand subscriptions were created and deleted, a node sends no additional request when it
// starts.
func TestDeletedSubscriptions_CostAStartingNodeNothing(t *testing.T) {
	const n = 1000
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, embedded.Options{})
		serve := func() (loads, requests int) {
			s := r.node(Options{})
			counted := &loadCounter{Cursors: s}
			before := r.line.Calls()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = delivery.New(delivery.Ports{Streams: s, Cursors: counted, Shards: s, Receivers: subscriptions{s}}, delivery.Options{}).Run(ctx)
			}()
			<-time.After(50 * time.Second)
			cancel()
			<-ended
			return int(counted.n.Load()), r.line.Calls() - before
		}
		_, none := serve()
		s := r.node(Options{})
		for i := range n {
			d := repositorytest.NewDefinition(repositorytest.NewActor())
			_, _, err := s.CreateSubscription(t.Context(), d)
			require.NoError(t, err)
			stream, err := d.Stream()
			require.NoError(t, err)
			require.NoError(t, s.Create(t.Context(), d.ID.Cursor(), domain.Standing{Stream: stream}))
			require.NoError(t, s.DeleteSubscription(t.Context(), d.Owner, d.ID, ""), i)
		}
		loads, _ := serve()
		require.GreaterOrEqual(t, loads, n)
		loads, requests := serve()
		require.Zero(t, loads)
		require.Equal(t, none, requests)
		t.Logf("%d requests of a node that starts, before and after", none)
	})
}
