package subscribe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// readSecrets returns a subscription's valid secrets, the newest first.
func (w *world) readSecrets(t *testing.T, id domain.SubscriptionID) []string {
	t.Helper()
	d, err := w.definitions.Subscription(t.Context(), id)
	require.NoError(t, err)
	var all []string
	for _, sealed := range []string{d.Secret, d.Previous} {
		if sealed == "" {
			continue
		}
		text, err := w.keys.Open(id, w.owner, sealed)
		require.NoError(t, err)
		all = append(all, text)
	}
	return all
}

func TestARotation_KeepsThePreviousSecretForAWhile(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	changes := 0
	w := newWorld(t, subscribe.Options{
		Grace: time.Hour, Clock: func() time.Time { return now }, Changed: func(domain.CursorID) { changes++ },
	})
	d := w.draft()
	d.Secret = nil
	s, err := w.Create(t.Context(), d)
	require.NoError(t, err)
	rotate := func(wanted *string) string {
		t.Helper()
		found, made, err := w.Rotate(t.Context(), w.owner, s.ID, wanted, subscribe.Match{})
		require.NoError(t, err)
		require.NotContains(t, fmt.Sprintf("%+v", found), "whsec_")
		return made
	}
	first := rotate(nil)
	require.Equal(t, []string{first}, w.readSecrets(t, s.ID), "there was none before")
	require.True(t, strings.HasPrefix(first, "whsec_"))
	now = now.Add(subscribe.RepeatTime)
	second := rotate(nil)
	require.Equal(t, []string{second, first}, w.readSecrets(t, s.ID))
	found, err := w.Get(t.Context(), w.owner, s.ID)
	require.NoError(t, err)
	require.Equal(t, now.Add(time.Hour), found.PreviousUntil)
	now = now.Add(time.Minute)
	mine := "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	require.Empty(t, rotate(&mine), "the client has it")
	require.Equal(t, []string{mine, second}, w.readSecrets(t, s.ID), "the oldest is dropped")
	before := changes
	require.Empty(t, rotate(&mine))
	require.Equal(t, []string{mine, second}, w.readSecrets(t, s.ID), "it was repeated")
	require.Equal(t, before, changes)

	d.CallbackURL, d.Secret = "https://example.org/other", nil
	_, _, err = w.Put(t.Context(), s.ID, d, subscribe.Match{})
	require.NoError(t, err)
	d.Secret, d.Method = &mine, "PUT"
	_, _, err = w.Put(t.Context(), s.ID, d, subscribe.Match{})
	require.NoError(t, err)
	require.Equal(t, []string{mine, second}, w.readSecrets(t, s.ID), "a replacement without another secret changes neither")
	other := "whsec_" + strings.Repeat("A", 32)
	d.Secret = &other
	_, _, err = w.Put(t.Context(), s.ID, d, subscribe.Match{})
	require.NoError(t, err)
	require.Equal(t, []string{other}, w.readSecrets(t, s.ID), "one with another secret ends those before at once")
}

func TestARotation_RefusesInvalidSecrets(t *testing.T) {
	w := newWorld(t, subscribe.Options{Grace: time.Hour})
	s, err := w.Create(t.Context(), w.draft())
	require.NoError(t, err)
	none, long := "", strings.Repeat("x", subscribe.MaxSecret+1)
	for name, tc := range map[string]struct {
		owner  domain.ActorID
		wanted *string
		kind   domain.Kind
	}{
		"of another owner":   {repositorytest.NewActor(), nil, domain.NotFound},
		"to no secret":       {w.owner, &none, domain.Invalid},
		"to a long one":      {w.owner, &long, domain.Invalid},
		"to a generated one": {w.owner, nil, domain.Invalid}, // the current secret does not begin with whsec_, so the hub cannot replace it with a generated secret
	} {
		_, _, err := w.Rotate(t.Context(), tc.owner, s.ID, tc.wanted, subscribe.Match{})
		require.Equal(t, tc.kind, domain.KindOf(err), name)
		require.NotContains(t, err.Error(), secret)
	}
	require.Equal(t, []string{secret}, w.readSecrets(t, s.ID))
	keyless := subscribe.New(subscribe.Ports{Definitions: w.definitions, Streams: w.streams, Cursors: w.cursors}, nil, subscribe.Options{})
	_, _, err = keyless.Rotate(t.Context(), w.owner, s.ID, nil, subscribe.Match{})
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	d := w.draft()
	d.Secret = nil
	unsigned, err := keyless.Create(t.Context(), d)
	require.NoError(t, err)
	_, _, err = keyless.Rotate(t.Context(), w.owner, unsigned.ID, nil, subscribe.Match{})
	require.Equal(t, domain.Invalid, domain.KindOf(err))
}

// If the response to a rotation is lost, the receiver still uses the previous secret. The repeated
// rotation must not invalidate it.
func TestARotationThatIsRepeated_ReturnsTheSameSecret(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	w := newWorld(t, subscribe.Options{Grace: time.Hour, Clock: func() time.Time { return now }})
	d := w.draft()
	held := "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	d.Secret = &held
	s, err := w.Create(t.Context(), d)
	require.NoError(t, err)
	rotate := func(m subscribe.Match) (version, made string) {
		t.Helper()
		found, made, err := w.Rotate(t.Context(), w.owner, s.ID, nil, m)
		require.NoError(t, err)
		return found.Version, made
	}
	first := subscribe.Match{Versions: []string{s.Version}}
	version, lost := rotate(first)
	for _, m := range []subscribe.Match{first, {}, {Exists: true}} {
		now = now.Add(time.Minute)
		again, made := rotate(m)
		require.Equal(t, lost, made)
		require.Equal(t, version, again)
		require.Equal(t, []string{lost, held}, w.readSecrets(t, s.ID))
	}
	// The pause between the two rotations changes the version but not the secret.
	paused, err := w.SetPaused(t.Context(), w.owner, s.ID, true)
	require.NoError(t, err)
	_, made := rotate(first)
	require.Equal(t, lost, made)
	// A rotation whose Match names the current version is not a repetition. A rotation after
	// RepeatTime is not one, either.
	_, next := rotate(subscribe.Match{Versions: []string{paused.Version}})
	require.Equal(t, []string{next, lost}, w.readSecrets(t, s.ID))
	_, _, err = w.Rotate(t.Context(), w.owner, s.ID, nil, first)
	require.ErrorIs(t, err, subscribe.ErrChanged)
	now = now.Add(subscribe.RepeatTime)
	_, _, err = w.Rotate(t.Context(), w.owner, s.ID, nil, subscribe.Match{Versions: []string{paused.Version}})
	require.ErrorIs(t, err, subscribe.ErrChanged, "it is too late for a repetition")
	_, last := rotate(subscribe.Match{})
	require.Equal(t, []string{last, next}, w.readSecrets(t, s.ID))
	// Rotate never returns a secret that the owner has chosen.
	_, made, err = w.Rotate(t.Context(), w.owner, s.ID, &held, subscribe.Match{})
	require.NoError(t, err)
	require.Empty(t, made)
	_, made = rotate(subscribe.Match{})
	require.NotEqual(t, held, made)
}

// If a change's Match names an old version, the change fails and has no effect.
func TestAChange_RequiresTheVersionOfItsMatch(t *testing.T) {
	w := newWorld(t, subscribe.Options{Grace: time.Hour})
	s, err := w.Create(t.Context(), w.draft())
	require.NoError(t, err)
	paused, err := w.SetPaused(t.Context(), w.owner, s.ID, true)
	require.NoError(t, err)
	require.NotEqual(t, s.Version, paused.Version)
	old := subscribe.Match{Versions: []string{s.Version}}
	now := subscribe.Match{Versions: []string{s.Version, paused.Version}}
	exists := subscribe.Match{Exists: true}
	mine, d := "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", w.draft()
	d.CallbackURL = "https://example.org/other"
	absent := repositorytest.NewDefinition(w.owner).ID
	_, _, err = w.Rotate(t.Context(), w.owner, s.ID, &mine, old)
	require.ErrorIs(t, err, subscribe.ErrChanged)
	_, err = w.Delete(t.Context(), w.owner, s.ID, old)
	require.ErrorIs(t, err, subscribe.ErrChanged)
	_, _, err = w.Put(t.Context(), s.ID, d, old)
	require.ErrorIs(t, err, subscribe.ErrChanged)
	for _, m := range []subscribe.Match{now, exists} {
		_, _, err = w.Put(t.Context(), absent, d, m)
		require.ErrorIs(t, err, subscribe.ErrChanged)
	}
	stored, _, err := w.Put(t.Context(), s.ID, d, now)
	require.NoError(t, err)
	again, _, err := w.Put(t.Context(), s.ID, d, now)
	require.NoError(t, err, "it was repeated")
	require.Equal(t, stored.Version, again.Version)
	_, _, err = w.Rotate(t.Context(), w.owner, s.ID, &mine, exists)
	require.NoError(t, err)
	_, err = w.Delete(t.Context(), w.owner, s.ID, exists)
	require.NoError(t, err)
}
