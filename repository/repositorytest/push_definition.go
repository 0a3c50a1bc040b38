package repositorytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// NewDefinition returns the definition of a subscription that no other test uses.
func NewDefinition(owner domain.ActorID) *repository.Definition {
	s := domain.Subscription{
		Owner: owner, CallbackURL: "https://example.org/hook?a=1&b=<2>", HMACKeyID: "key",
		Encoding: domain.FormEncoding, FormFields: map[string]string{"a/b": "c"},
		Filter: "type == 'made'", Attachments: map[string]string{"n": "n", "é": "@"},
	}
	s.SetDefaults()
	return &repository.Definition{
		ID: newUUID(), Subscription: s, Secret: "sealed", Created: time.Now().UTC().Truncate(time.Second),
	}
}

func (f *pushFixture) createDefinition(d *repository.Definition) *repository.Definition {
	f.Helper()
	stored, created, err := f.Definitions.CreateSubscription(f.ctx, d)
	require.NoError(f, err)
	require.True(f, created)
	return stored
}

// wantDefinitions requires that an owner has exactly these definitions.
func (f *pushFixture) wantDefinitions(owner domain.ActorID, want ...*repository.Definition) {
	f.Helper()
	slices.SortFunc(want, func(a, b *repository.Definition) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	got, err := f.Definitions.Subscriptions(f.ctx, owner)
	require.NoError(f, err)
	require.Len(f, got, len(want))
	for i := range want {
		require.Equal(f, want[i], got[i])
	}
}

func (f *pushFixture) wantKind(kind domain.Kind, err error) {
	f.Helper()
	require.Equal(f, kind, domain.KindOf(err), "%v", err)
}

// changesOf returns ShardEntry.Changes of the cursor of a subscription.
func (f *pushFixture) changesOf(id domain.SubscriptionID) int64 {
	f.Helper()
	entries, _, err := f.Shards.Cursors(f.ctx, repository.ShardOf(id.Cursor()))
	require.NoError(f, err)
	for _, e := range entries {
		if e.Cursor == id.Cursor() {
			return e.Changes
		}
	}
	require.Fail(f, "the cursor has no entry")
	return 0
}

var definitionRules = []pushRule{
	{"AChangeIsNotedInTheEntryOfTheCursor", func(f *pushFixture) {
		d := f.createDefinition(NewDefinition(NewActor()))
		other := f.createDefinition(NewDefinition(d.Owner))
		for _, id := range []domain.SubscriptionID{d.ID, other.ID} {
			require.NoError(f, f.Cursors.Create(f.ctx, id.Cursor(), domain.Standing{Stream: f.stream}))
		}
		before, ofOther := f.changesOf(d.ID), f.changesOf(other.ID)
		changes := func(err error) {
			f.Helper()
			require.NoError(f, err)
			now := f.changesOf(d.ID)
			require.NotEqual(f, before, now)
			before = now
		}
		var err error
		d.Paused = true
		d.Version, err = f.Definitions.ReplaceSubscription(f.ctx, d)
		changes(err)
		_, err = f.Definitions.Subscription(f.ctx, d.ID)
		require.NoError(f, err)
		require.Equal(f, before, f.changesOf(d.ID), "a read changes nothing")
		changes(f.Definitions.DeleteSubscription(f.ctx, d.Owner, d.ID, ""))
		require.Equal(f, ofOther, f.changesOf(other.ID))
		f.wantKind(domain.NotFound, f.Definitions.DeleteSubscription(f.ctx, d.Owner, d.ID, ""))
	}},
	{"CreatedSubscriptionsAreReadAndListed", func(f *pushFixture) {
		a, b := NewActor(), NewActor()
		f.wantDefinitions(a)
		d := NewDefinition(a)
		d.IsSync, d.MaxRate, d.MaxConcurrency, d.IsOrdered = true, 2.5, 3, true
		d.Headers, d.HeaderNames = "sealed, too", []string{"X-A", "X-B"}
		first := f.createDefinition(d)
		want := d.Clone()
		want.Version = first.Version
		require.Equal(f, want, first)
		require.NotEmpty(f, first.Version)
		second, other := f.createDefinition(NewDefinition(a)), f.createDefinition(NewDefinition(b))
		got, err := f.Definitions.Subscription(f.ctx, d.ID)
		require.NoError(f, err)
		require.Equal(f, first, got)
		f.wantDefinitions(a, first, second)
		f.wantDefinitions(b, other)
		_, err = f.Definitions.Subscription(f.ctx, NewDefinition(a).ID)
		f.wantKind(domain.NotFound, err)
	}},
	{"ARepeatedCreationReturnsTheExistingOne", func(f *pushFixture) {
		d := NewDefinition(NewActor())
		first := f.createDefinition(d)
		d.CallbackURL = "https://example.org/other"
		got, created, err := f.Definitions.CreateSubscription(f.ctx, d)
		require.NoError(f, err)
		require.False(f, created)
		require.Equal(f, first, got)
		f.wantDefinitions(d.Owner, first)
	}},
	{"AnIdBelongsToOneOwner", func(f *pushFixture) {
		d := NewDefinition(NewActor())
		first := f.createDefinition(d)
		stranger := NewDefinition(NewActor())
		stranger.ID = d.ID
		_, _, err := f.Definitions.CreateSubscription(f.ctx, stranger)
		f.wantKind(domain.Conflict, err)
		f.wantDefinitions(stranger.Owner)
		stranger.Version = first.Version
		_, err = f.Definitions.ReplaceSubscription(f.ctx, stranger)
		f.wantKind(domain.NotFound, err)
		f.wantKind(domain.NotFound, f.Definitions.DeleteSubscription(f.ctx, stranger.Owner, d.ID, ""))
		f.wantDefinitions(d.Owner, first)
	}},
	{"AReplacementNeedsTheVersion", func(f *pushFixture) {
		first := f.createDefinition(NewDefinition(NewActor()))
		second := first.Clone()
		second.Paused, second.Secret, second.FormFields, second.Encoding = true, "", nil, domain.JSONEncoding
		second.Created = second.Created.Add(time.Hour)
		second.Previous, second.PreviousUntil = first.Secret, second.Created
		second.Rotation = repository.Rotation{From: first.Version, At: first.Created}
		second.Headers, second.HeaderNames, second.MaxRate = "sealed", []string{"X"}, 7
		version, err := f.Definitions.ReplaceSubscription(f.ctx, second)
		require.NoError(f, err)
		require.NotEqual(f, first.Version, version)
		_, err = f.Definitions.ReplaceSubscription(f.ctx, first)
		f.wantKind(domain.Conflict, err)
		second.Version, second.Created = version, first.Created
		f.wantDefinitions(first.Owner, second)
		none := NewDefinition(first.Owner)
		none.Version = version
		_, err = f.Definitions.ReplaceSubscription(f.ctx, none)
		f.wantKind(domain.NotFound, err)
	}},
	{"ADeletedSubscriptionIsGone_AndItsIdStaysUsed", func(f *pushFixture) {
		d := NewDefinition(NewActor())
		first, other := f.createDefinition(d), f.createDefinition(NewDefinition(d.Owner))
		f.wantKind(domain.Conflict, f.Definitions.DeleteSubscription(f.ctx, d.Owner, d.ID, other.Version+"x"))
		require.NoError(f, f.Definitions.DeleteSubscription(f.ctx, d.Owner, d.ID, first.Version))
		f.wantKind(domain.NotFound, f.Definitions.DeleteSubscription(f.ctx, d.Owner, d.ID, ""))
		_, err := f.Definitions.Subscription(f.ctx, d.ID)
		f.wantKind(domain.NotFound, err)
		_, err = f.Definitions.ReplaceSubscription(f.ctx, first)
		f.wantKind(domain.NotFound, err)
		_, _, err = f.Definitions.CreateSubscription(f.ctx, d)
		f.wantKind(domain.Conflict, err)
		f.wantDefinitions(d.Owner, other)
	}},
	{"AnOwnerHasAtMostAHundred", func(f *pushFixture) {
		owner := NewActor()
		var all []*repository.Definition
		for range domain.MaxSubscriptions {
			all = append(all, f.createDefinition(NewDefinition(owner)))
		}
		_, _, err := f.Definitions.CreateSubscription(f.ctx, NewDefinition(owner))
		require.ErrorIs(f, err, repository.ErrSubscriptionLimit)
		f.wantKind(domain.Invalid, err)
		again, created, err := f.Definitions.CreateSubscription(f.ctx, all[5])
		require.NoError(f, err)
		require.False(f, created)
		require.Equal(f, all[5], again)
		f.wantDefinitions(owner, all...)
		require.NoError(f, f.Definitions.DeleteSubscription(f.ctx, owner, all[3].ID, ""))
		all[3] = f.createDefinition(NewDefinition(owner))
		f.wantDefinitions(owner, all...)
	}},
	{"TheLimitIsExactHoweverManyCreate", func(f *pushFixture) {
		owner := NewActor()
		for range domain.MaxSubscriptions - 3 {
			f.createDefinition(NewDefinition(owner))
		}
		const callers = 8
		var g sync.WaitGroup
		results := make([]error, callers)
		for i := range callers {
			g.Go(func() { _, _, results[i] = f.Definitions.CreateSubscription(f.ctx, NewDefinition(owner)) })
		}
		g.Wait()
		made := 0
		for _, err := range results {
			if err == nil {
				made++
			} else if !errors.Is(err, repository.ErrSubscriptionLimit) {
				f.Error(fmt.Errorf("refused by %w", err))
			}
		}
		require.Equal(f, 3, made)
		all, err := f.Definitions.Subscriptions(f.ctx, owner)
		require.NoError(f, err)
		require.Len(f, all, domain.MaxSubscriptions)
	}},
	{"OneIdIsCreatedOnce_HoweverManyCreateIt", func(f *pushFixture) {
		d := NewDefinition(NewActor())
		const callers = 6
		var g sync.WaitGroup
		made := make([]bool, callers)
		for i := range callers {
			g.Go(func() {
				stored, created, err := f.Definitions.CreateSubscription(f.ctx, d)
				if err != nil || stored.ID != d.ID {
					f.Error(err)
				}
				made[i] = created
			})
		}
		g.Wait()
		n := 0
		for _, m := range made {
			if m {
				n++
			}
		}
		require.Equal(f, 1, n)
		all, err := f.Definitions.Subscriptions(f.ctx, d.Owner)
		require.NoError(f, err)
		require.Len(f, all, 1)
	}},
}
