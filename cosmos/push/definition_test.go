package push

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// otherStore starts a node whose connection never breaks.
func (r *rig) otherStore() *Store {
	r.t.Helper()
	db := r.account.ConnectBy(r.engine.Transport())
	return New(db, r.content, Options{})
}

// createDefinition stores a subscription and requires success.
func (r *rig) createDefinition(s *Store, d *repository.Definition) *repository.Definition {
	r.t.Helper()
	stored, _, err := s.CreateSubscription(context.Background(), d)
	require.NoError(r.t, err)
	return stored
}

// fillOwner creates subscriptions of an owner until a creation is refused. It then requires that the
// owner has domain.MaxSubscriptions subscriptions and no other reservations.
func (r *rig) fillOwner(owner domain.ActorID) {
	r.t.Helper()
	s := r.otherStore()
	for {
		_, _, err := s.CreateSubscription(context.Background(), repositorytest.NewDefinition(owner))
		if errors.Is(err, repository.ErrSubscriptionLimit) {
			break
		}
		require.NoError(r.t, err)
	}
	r.wantFull(s, owner)
}

func (r *rig) wantFull(s *Store, owner domain.ActorID) {
	r.t.Helper()
	all, err := s.Subscriptions(context.Background(), owner)
	require.NoError(r.t, err)
	require.Len(r.t, all, domain.MaxSubscriptions)
	list, err := s.readOwner(context.Background(), s.client.Begin("test"), owner)
	require.NoError(r.t, err)
	require.Len(r.t, list.reservations, domain.MaxSubscriptions)
}

// A definitionLife creates two subscriptions, changes one, and deletes the other.
type definitionLife struct {
	kept, deleted *repository.Definition
	begun         int // number of steps that were started
}

func newDefinitionLife() *definitionLife {
	kept := repositorytest.NewDefinition(repositorytest.NewActor())
	return &definitionLife{kept: kept, deleted: repositorytest.NewDefinition(kept.Owner)}
}

func (l *definitionLife) runLife(s *Store) error {
	ctx := context.Background()
	stored, _, err := s.CreateSubscription(ctx, l.kept)
	if err != nil {
		return err
	}
	if _, _, err := s.CreateSubscription(ctx, l.deleted); err != nil && (l.begun < 2 || domain.KindOf(err) != domain.Conflict) {
		return err
	}
	l.begun = max(l.begun, 1)
	if !stored.Paused {
		stored.Paused = true
		if _, err := s.ReplaceSubscription(ctx, stored); err != nil {
			return err
		}
	}
	if _, err := s.Subscriptions(ctx, l.kept.Owner); err != nil {
		return err
	}
	l.begun = 2
	if err := s.DeleteSubscription(ctx, l.kept.Owner, l.deleted.ID, ""); domain.KindOf(err) != domain.NotFound {
		return err
	}
	return nil
}

// wantEnded requires the documents that should exist after all steps of the life.
func (l *definitionLife) wantEnded(r *rig) {
	r.t.Helper()
	s := r.otherStore()
	all, err := s.Subscriptions(context.Background(), l.kept.Owner)
	require.NoError(r.t, err)
	require.Len(r.t, all, 1)
	want := l.kept.Clone()
	want.Paused, want.Version = true, all[0].Version
	require.Equal(r.t, want, all[0])
	_, err = s.Subscription(context.Background(), l.deleted.ID)
	require.Equal(r.t, domain.NotFound, domain.KindOf(err))
}

func TestEveryCallOfDefinitionsBrokenOnceInEveryWay(t *testing.T) {
	for _, consistency := range []string{"", "Session"} {
		for i, fault := range append(faulty.CommonFaults(), faulty.Truncated) {
			for _, retries := range []int{-1, 0} {
				if raced && (i+retries)%3 != 0 {
					continue
				}
				t.Run(consistency+"/"+fault.String()+"/"+map[int]string{-1: "retried by the caller", 0: "retried by the call"}[retries], func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						for n := 1; ; n++ {
							r, l := newRig(t, embedded.Options{Consistency: consistency}), newDefinitionLife()
							node := r.node(Options{Retries: retries})
							r.line.BreakOne(n, fault)
							err := l.runLife(node)
							if retries < 0 {
								for again := 0; err != nil && again < 3; again++ {
									require.NotEqual(t, domain.Damaged, domain.KindOf(err))
									err = l.runLife(node)
								}
							}
							require.NoError(t, err, "call %d", n)
							broken := r.line.Calls() >= n
							l.wantEnded(r)
							if !broken {
								require.Greater(t, n, 10)
								return
							}
						}
					})
				})
			}
		}
	}
}

// A node that crashes at any request of a creation or a deletion leaves no reservation that counts
// against the limit forever.
func TestACrashAnywhere_LeavesNoReservationThatCounts(t *testing.T) {
	for _, last := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		t.Run(last.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for n := 1; ; n++ {
					r, l := newRig(t, embedded.Options{}), newDefinitionLife()
					node := r.node(Options{Retries: -1})
					r.line.CrashAt(n, last)
					_ = l.runLife(node)
					if r.line.Fired() == 0 {
						return
					}
					r.fillOwner(l.kept.Owner)
				}
			})
		})
	}
}

// Before each request of a creation, another node creates the maximum number of subscriptions. Whether
// the creation succeeds or fails, the owner then has the maximum number of subscriptions.
func TestALateCreation_KeepsTheLimit(t *testing.T) {
	for n := 1; ; n++ {
		r := newRig(t, embedded.Options{})
		d := repositorytest.NewDefinition(repositorytest.NewActor())
		node := r.node(Options{})
		r.line.Break(func(call int, _ *http.Request) faulty.Fault {
			if call == n {
				r.fillOwner(d.Owner)
			}
			return faulty.None
		})
		_, _, err := node.CreateSubscription(t.Context(), d)
		if r.line.Calls() < n {
			require.NoError(t, err)
			require.Greater(t, n, 3)
			return
		}
		if err != nil {
			require.ErrorIs(t, err, repository.ErrSubscriptionLimit)
		}
		r.wantFull(r.otherStore(), d.Owner)
		require.Equal(t, err == nil, r.isListed(d), "request %d", n)
		_, err = r.otherStore().Subscription(t.Context(), d.ID)
		require.Equal(t, r.isListed(d), err == nil, "request %d", n)
	}
}

// isListed reports whether Subscriptions returns the subscription for its owner.
func (r *rig) isListed(d *repository.Definition) bool {
	r.t.Helper()
	all, err := r.otherStore().Subscriptions(context.Background(), d.Owner)
	require.NoError(r.t, err)
	return slices.ContainsFunc(all, func(other *repository.Definition) bool { return other.ID == d.ID })
}

// Before each request of a creation or a deletion, another node creates a subscription of the same owner.
// Subscriptions returns all of them.
func TestTwoNodesThatCreate_LoseNoReservation(t *testing.T) {
	for n := 1; ; n++ {
		r := newRig(t, embedded.Options{})
		other, l := r.otherStore(), newDefinitionLife()
		between := repositorytest.NewDefinition(l.kept.Owner)
		r.line.Break(func(call int, _ *http.Request) faulty.Fault {
			if call == n {
				r.createDefinition(other, between)
			}
			return faulty.None
		})
		require.NoError(t, l.runLife(r.node(Options{})))
		require.True(t, r.isListed(l.kept))
		require.False(t, r.isListed(l.deleted))
		if r.line.Calls() < n {
			require.Greater(t, n, 10)
			return
		}
		require.True(t, r.isListed(between), "request %d", n)
	}
}

// A creation refuses the reservation of an unfinished creation. Before each request of the refusing
// creation, another node continues the unfinished creation.
func TestACreationThatIsBeingRefused_IsListedOrFails(t *testing.T) {
	for n := 1; ; n++ {
		if n == 5 {
			n = domain.MaxSubscriptions - 5 // the skipped requests are all reads
		}
		r := newRig(t, embedded.Options{})
		other, d := r.otherStore(), repositorytest.NewDefinition(repositorytest.NewActor())
		for range domain.MaxSubscriptions - 1 {
			r.createDefinition(other, repositorytest.NewDefinition(d.Owner))
		}
		node := r.node(Options{Retries: -1})
		r.line.BreakOne(4, faulty.RequestLost) // request 4 stores the subscription
		_, _, err := node.CreateSubscription(t.Context(), d)
		require.Error(t, err)
		r.line.Break(func(call int, _ *http.Request) faulty.Fault {
			if call == n {
				_, _, err = other.CreateSubscription(context.Background(), d)
			}
			return faulty.None
		})
		_, _, _ = node.CreateSubscription(t.Context(), repositorytest.NewDefinition(d.Owner))
		if r.line.Calls() < n {
			require.Greater(t, n, domain.MaxSubscriptions)
			return
		}
		require.Equal(t, err == nil, r.isListed(d), "request %d: %v", n, err)
		_, err = other.Subscription(t.Context(), d.ID)
		require.Equal(t, r.isListed(d), err == nil, "request %d", n)
		r.fillOwner(d.Owner)
	}
}

// A refused reservation is replaced when the owner is below the limit again.
func TestARefusedReservation_IsReplaced(t *testing.T) {
	r := newRig(t, embedded.Options{})
	d := repositorytest.NewDefinition(repositorytest.NewActor())
	node := r.node(Options{Retries: -1})
	r.line.BreakOne(4, faulty.RequestLost) // request 4 stores the subscription
	_, _, err := node.CreateSubscription(t.Context(), d)
	require.Error(t, err)
	r.fillOwner(d.Owner)
	s := r.otherStore()
	_, _, err = s.CreateSubscription(t.Context(), d)
	require.ErrorIs(t, err, repository.ErrSubscriptionLimit)
	all, err := s.Subscriptions(t.Context(), d.Owner)
	require.NoError(t, err)
	require.NoError(t, s.DeleteSubscription(t.Context(), d.Owner, all[0].ID, ""))
	require.Equal(t, d.CallbackURL, r.createDefinition(s, d).CallbackURL)
	r.wantFull(s, d.Owner)
}

func TestAReplacement_KeepsUnknownMembers(t *testing.T) {
	r := newRig(t, embedded.Options{})
	s := r.otherStore()
	stored := r.createDefinition(s, repositorytest.NewDefinition(repositorytest.NewActor()))
	c := s.client.Begin("test")
	for _, at := range []struct{ key, id string }{{stored.ID.Cursor().String(), definitionID}, {ownerKey(stored.Owner), ownerID}} {
		ops := client.NewPatch(client.DocumentKind{Name: "any", Format: 1})
		ops.AppendSet("/future", map[string]any{"a": 1})
		require.NoError(t, c.Patch(t.Context(), s.cursors, at.key, at.id, ops, &struct{}{}))
	}
	stored, err := s.Subscription(t.Context(), stored.ID)
	require.NoError(t, err)
	stored.Paused = true
	_, err = s.ReplaceSubscription(t.Context(), stored)
	require.NoError(t, err)
	r.createDefinition(s, repositorytest.NewDefinition(stored.Owner))
	for _, at := range []struct{ key, id string }{{stored.ID.Cursor().String(), definitionID}, {ownerKey(stored.Owner), ownerID}} {
		var doc map[string]any
		_, err := c.Read(t.Context(), s.cursors, at.key, at.id, &doc)
		require.NoError(t, err)
		require.Equal(t, map[string]any{"a": 1.0}, doc["future"], at.id)
	}
}

func TestSubscriptions_CostUpToTheirLimit(t *testing.T) {
	r := newRig(t, embedded.Options{Pessimistic: true})
	s, owner := r.otherStore(), repositorytest.NewActor()
	price := func(what string, limit float64, f func() error) {
		t.Helper()
		before := r.engine.RequestUnits()
		require.NoError(t, f())
		units := r.engine.RequestUnits() - before
		t.Logf("%s: %.2f RU", what, units)
		require.LessOrEqual(t, units, limit, what)
	}
	var d *repository.Definition
	create := func() (err error) {
		d, _, err = s.CreateSubscription(t.Context(), repositorytest.NewDefinition(owner))
		return err
	}
	price("create the first", 16, create)
	price("create the second", 20, create)
	price("create again", 2, func() error { _, _, err := s.CreateSubscription(t.Context(), d); return err })
	price("read", 2, func() error { _, err := s.Subscription(t.Context(), d.ID); return err })
	replace := func() (err error) { d.Version, err = s.ReplaceSubscription(t.Context(), d); return err }
	price("replace one without a cursor", 15, replace)
	look := func() error { _, _, err := s.Cursors(t.Context(), repository.ShardOf(d.ID.Cursor())); return err }
	require.NoError(t, s.Create(t.Context(), d.ID.Cursor(), domain.Standing{Stream: repositorytest.NewStream()}))
	price("look at its shard", 3.3, look)
	price("replace, and note that", 24, replace)
	price("look at its shard after that", 3.3, look)
	price("list", 6, func() error { _, err := s.Subscriptions(t.Context(), owner); return err })
	price("delete, and note that", 36, func() error { return s.DeleteSubscription(t.Context(), owner, d.ID, "") })
	for range domain.MaxSubscriptions - 2 {
		require.NoError(t, create())
	}
	price("create the last", 24, create)
	price("create one too many", 205, func() error {
		if err := create(); !errors.Is(err, repository.ErrSubscriptionLimit) {
			return errors.New("it was not refused")
		}
		return nil
	})
	price("list a hundred", 203, func() error { _, err := s.Subscriptions(t.Context(), owner); return err })
}
