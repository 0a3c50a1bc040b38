package subscribe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// readHeaders returns the stored headers of a subscription.
func (w *world) readHeaders(t *testing.T, id domain.SubscriptionID) map[string]string {
	t.Helper()
	d, err := w.definitions.Subscription(t.Context(), id)
	require.NoError(t, err)
	for _, value := range []string{"token", "other"} {
		require.NotContains(t, fmt.Sprintf("%+v", d), value)
	}
	headers, err := w.keys.OpenHeaders(d)
	require.NoError(t, err)
	return headers
}

func TestHeaders_AreSealedAndKeptUntilTheyAreReplaced(t *testing.T) {
	w := newWorld(t, subscribe.Options{})
	id := repositorytest.NewDefinition(w.owner).ID
	d := w.draft()
	put := func(headers map[string]string) *subscribe.Subscription {
		t.Helper()
		d.Headers = headers
		s, _, err := w.Put(t.Context(), id, d, subscribe.Match{})
		require.NoError(t, err)
		require.NotContains(t, fmt.Sprintf("%+v", s), "token")
		return s
	}
	headers := map[string]string{"X-B": "other", "X-A": "token"}
	first := put(headers)
	require.Equal(t, []string{"X-A", "X-B"}, first.HeaderNames)
	require.Equal(t, headers, w.readHeaders(t, id))
	require.Equal(t, first.Version, put(headers).Version, "they are the same")
	require.Equal(t, first.Version, put(nil).Version)
	d.CallbackURL = "https://example.org/changed"
	require.Equal(t, []string{"X-A", "X-B"}, put(nil).HeaderNames, "a replacement without headers keeps them")
	require.Equal(t, headers, w.readHeaders(t, id))
	require.Equal(t, []string{"X-A"}, put(map[string]string{"X-A": "other"}).HeaderNames)
	require.Equal(t, map[string]string{"X-A": "other"}, w.readHeaders(t, id))
	before := put(nil).Version
	require.NotEqual(t, before, put(map[string]string{"X-A": "token"}).Version, "only the value differs")
	require.Empty(t, put(map[string]string{}).HeaderNames)
	require.Nil(t, w.readHeaders(t, id))
}

func TestSealedHeaders_OpenOnlyAsHeadersOfTheirSubscription(t *testing.T) {
	w := newWorld(t, subscribe.Options{})
	d := w.draft()
	d.Headers = map[string]string{"X-A": "token"}
	s, err := w.Create(t.Context(), d)
	require.NoError(t, err)
	stored, err := w.definitions.Subscription(t.Context(), s.ID)
	require.NoError(t, err)
	_, err = w.keys.Open(s.ID, w.owner, stored.Headers)
	require.Equal(t, domain.Damaged, domain.KindOf(err))
	moved := stored.Clone()
	moved.ID = repositorytest.NewDefinition(w.owner).ID
	_, err = w.keys.OpenHeaders(moved)
	require.Equal(t, domain.Damaged, domain.KindOf(err))
	moved = stored.Clone()
	moved.Headers = stored.Secret
	_, err = w.keys.OpenHeaders(moved)
	require.Equal(t, domain.Damaged, domain.KindOf(err))
}

// In this test, CheckHeaders refuses the header Authorization for signed calls, like a hub that
// sends some secrets in this header.
func TestHeaders_AreCheckedAgainstTheSecretOfCalls(t *testing.T) {
	w := newWorld(t, subscribe.Options{CheckHeaders: func(headers map[string]string, secret string) error {
		if _, ok := headers["Authorization"]; ok && secret != "" {
			return domain.Errorf(domain.Invalid, "/headers/Authorization: the hub sets it")
		}
		return nil
	}})
	id, none := repositorytest.NewDefinition(w.owner).ID, ""
	mine := map[string]string{"Authorization": "token"}
	refused := func(d subscribe.Draft) {
		t.Helper()
		_, _, err := w.Put(t.Context(), id, d, subscribe.Match{})
		require.Equal(t, domain.Invalid, domain.KindOf(err))
		require.True(t, strings.HasPrefix(err.Error(), "/headers/Authorization: "))
		require.NotContains(t, err.Error(), "token")
	}
	accepted := func(d subscribe.Draft) {
		t.Helper()
		_, _, err := w.Put(t.Context(), id, d, subscribe.Match{})
		require.NoError(t, err)
	}
	d := w.draft()
	d.Headers = mine
	refused(d)
	d.Headers = nil
	accepted(d)
	d.Secret, d.Headers = nil, mine
	refused(d) // the header conflicts with the stored secret
	d.Secret = &none
	accepted(d)
	d = w.draft()
	d.Headers = nil
	refused(d) // the secret conflicts with the stored headers
	_, _, err := w.Rotate(t.Context(), w.owner, id, d.Secret, subscribe.Match{})
	require.ErrorContains(t, err, "/headers/Authorization: ")
	d.Headers = map[string]string{}
	accepted(d)

	keyless := subscribe.New(subscribe.Ports{Definitions: w.definitions, Streams: w.streams, Cursors: w.cursors}, nil, subscribe.Options{})
	d = w.draft()
	d.Secret, d.Headers = nil, mine
	_, err = keyless.Create(t.Context(), d)
	require.ErrorContains(t, err, "/headers: this hub has no key")
}
