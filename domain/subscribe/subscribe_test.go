package subscribe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

const secret = "a very secret secret"

type world struct {
	*subscribe.Service
	store       *memory.Store
	definitions *memory.Definitions
	streams     *memory.Streams
	cursors     *memory.Cursors
	keys        *subscribe.Keyring
	owner       domain.ActorID
}

func newWorld(t *testing.T, opts subscribe.Options) *world {
	t.Helper()
	keys, err := subscribe.NewKeyring(subscribe.NewKey())
	require.NoError(t, err)
	w := &world{
		store: memory.New(memory.Options{}), definitions: memory.NewDefinitions(), streams: memory.NewStreams(time.Hour, time.Now), cursors: memory.NewCursors(time.Now),
		keys: keys, owner: repositorytest.NewActor(),
	}
	w.Service = subscribe.New(subscribe.Ports{Definitions: w.definitions, Streams: w.streams, Cursors: w.cursors, Dequeues: w.store}, keys, opts)
	return w
}

func (w *world) draft() subscribe.Draft {
	text := secret
	return subscribe.Draft{Secret: &text, Subscription: domain.Subscription{Owner: w.owner, CallbackURL: "https://example.org/", Filter: "type == 'a'"}}
}

func TestASubscription_BeginsAtTheEndOfItsTopic(t *testing.T) {
	w := newWorld(t, subscribe.Options{})
	topic, err := domain.ParseTopic(domain.DefaultTopic)
	require.NoError(t, err)
	_, err = w.streams.Append(t.Context(), topic, repositorytest.Messages(3))
	require.NoError(t, err)
	s, err := w.Create(t.Context(), w.draft())
	require.NoError(t, err)
	owner := domain.Owner{Incarnation: "i", Limit: 1}
	cursor, _, err := w.cursors.Load(t.Context(), s.ID.Cursor(), owner, time.Now)
	require.NoError(t, err)
	require.EqualValues(t, 3, cursor.Position(0).Number)
	require.Equal(t, topic, cursor.Standing().Stream)
}

// A staleStreams returns the end of an empty stream, although messages were appended.
type staleStreams struct{ repository.Streams }

func (staleStreams) End(context.Context, domain.StreamName) (repository.StreamEnd, error) {
	return repository.StreamEnd{}, nil
}

// A subscription does not receive messages that were published before it was created, even if a
// stale read returns an earlier end of the stream.
func TestASubscription_BeginsAtTheCurrentEnd(t *testing.T) {
	w := newWorld(t, subscribe.Options{})
	topic, err := domain.ParseTopic(domain.DefaultTopic)
	require.NoError(t, err)
	_, err = w.streams.Append(t.Context(), topic, repositorytest.Messages(3))
	require.NoError(t, err)
	s := subscribe.New(subscribe.Ports{Definitions: w.definitions, Streams: staleStreams{w.streams}, Cursors: w.cursors, Dequeues: w.store}, w.keys, subscribe.Options{})
	created, err := s.Create(t.Context(), w.draft())
	require.NoError(t, err)
	standing, err := w.cursors.Standing(t.Context(), created.ID.Cursor())
	require.NoError(t, err)
	require.Len(t, standing.At, 1)
	require.EqualValues(t, 3, standing.At[0].Number)
}

func TestPut_IsIdempotentAndReplacesTheSubscription(t *testing.T) {
	w := newWorld(t, subscribe.Options{})
	id := repositorytest.NewDefinition(w.owner).ID
	version := func() repository.DefinitionVersion {
		d, err := w.definitions.Subscription(t.Context(), id)
		require.NoError(t, err)
		return d.Version
	}
	put := func(d subscribe.Draft) bool {
		t.Helper()
		_, created, err := w.Put(t.Context(), id, d, subscribe.Match{})
		require.NoError(t, err)
		return created
	}
	d := w.draft()
	require.True(t, put(d))
	first := version()
	require.False(t, put(d))
	d.Secret = nil
	require.False(t, put(d))
	require.Equal(t, first, version(), "nothing was to be stored")
	_, err := w.SetPaused(t.Context(), w.owner, id, true)
	require.NoError(t, err)
	d.CallbackURL = "https://example.org/other"
	require.False(t, put(d))
	s, err := w.Get(t.Context(), w.owner, id)
	require.NoError(t, err)
	require.True(t, s.IsPaused, "a replacement resumes nothing")
	require.True(t, s.IsSigned, "the secret is kept")
	require.Equal(t, d.CallbackURL, s.CallbackURL)
	none := ""
	d.Secret = &none
	require.False(t, put(d))
	s, err = w.Get(t.Context(), w.owner, id)
	require.NoError(t, err)
	require.False(t, s.IsSigned)
	d.Topic = "other"
	_, _, err = w.Put(t.Context(), id, d, subscribe.Match{})
	require.Equal(t, domain.Invalid, domain.KindOf(err))
	require.True(t, strings.HasPrefix(err.Error(), "/topic: "), err)
}

func TestASubscription_IsHiddenFromOtherOwners(t *testing.T) {
	w := newWorld(t, subscribe.Options{})
	s, err := w.Create(t.Context(), w.draft())
	require.NoError(t, err)
	stranger := repositorytest.NewActor()
	_, err = w.Get(t.Context(), stranger, s.ID)
	require.Equal(t, domain.NotFound, domain.KindOf(err))
	_, err = w.SetPaused(t.Context(), stranger, s.ID, true)
	require.Equal(t, domain.NotFound, domain.KindOf(err))
	_, err = w.Delete(t.Context(), stranger, s.ID, subscribe.Match{})
	require.Equal(t, domain.NotFound, domain.KindOf(err))
	all, err := w.List(t.Context(), stranger)
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestASecret_IsStoredSealed(t *testing.T) {
	w := newWorld(t, subscribe.Options{})
	s, err := w.Create(t.Context(), w.draft())
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprintf("%+v", s), secret)
	d, err := w.definitions.Subscription(t.Context(), s.ID)
	require.NoError(t, err)
	require.NotContains(t, d.Secret, secret)
	opened, err := w.keys.Open(s.ID, w.owner, d.Secret)
	require.NoError(t, err)
	require.Equal(t, secret, opened)
}

func TestASealedSecret_OpensOnlyForItsSubscriptionAndKey(t *testing.T) {
	a, b := bytes.Repeat([]byte{1}, subscribe.KeySize), bytes.Repeat([]byte{2}, subscribe.KeySize)
	before, err := subscribe.NewKeyring(a)
	require.NoError(t, err)
	rotated, err := subscribe.NewKeyring(b, a)
	require.NoError(t, err)
	after, err := subscribe.NewKeyring(b)
	require.NoError(t, err)
	owner := repositorytest.NewActor()
	d, other := repositorytest.NewDefinition(owner), repositorytest.NewDefinition(owner)
	sealed := before.Seal(d.ID, owner, secret)
	require.NotEqual(t, sealed, before.Seal(d.ID, owner, secret), "each has its own nonce")
	got, err := rotated.Open(d.ID, owner, sealed)
	require.NoError(t, err)
	require.Equal(t, secret, got)
	_, err = after.Open(d.ID, owner, sealed)
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	got, err = after.Open(d.ID, owner, rotated.Seal(d.ID, owner, secret))
	require.NoError(t, err)
	require.Equal(t, secret, got)
	for name, open := range map[string]func() (string, error){
		"another subscription": func() (string, error) { return before.Open(other.ID, owner, sealed) },
		"another owner":        func() (string, error) { return before.Open(d.ID, repositorytest.NewActor(), sealed) },
		"changed":              func() (string, error) { return before.Open(d.ID, owner, sealed[:len(sealed)-2]+"AA") },
		"cut":                  func() (string, error) { return before.Open(d.ID, owner, sealed[:20]) },
		"in the clear":         func() (string, error) { return before.Open(d.ID, owner, secret) },
	} {
		_, err := open()
		require.Equal(t, domain.Damaged, domain.KindOf(err), name)
		require.NotContains(t, err.Error(), secret)
	}
	require.Equal(t, "*** ***", fmt.Sprintf("%v %#v", before, before))
	_, err = subscribe.NewKeyring()
	require.Equal(t, domain.Invalid, domain.KindOf(err))
	_, err = subscribe.NewKeyring([]byte("short"))
	require.Equal(t, domain.Invalid, domain.KindOf(err))
}

func TestAnInvalidDraft_IsNotStored(t *testing.T) {
	refused := domain.Errorf(domain.Invalid, "/callback_url: private")
	w := newWorld(t, subscribe.Options{CheckURL: func(_ context.Context, url string) error {
		if strings.Contains(url, "private") {
			return refused
		}
		return nil
	}})
	long := strings.Repeat("x", subscribe.MaxSecret+1)
	for where, change := range map[string]func(*subscribe.Draft){
		"/callback_url":             func(d *subscribe.Draft) { d.CallbackURL = "https://private/" },
		"/method":                   func(d *subscribe.Draft) { d.Method = "GET" },
		"/jmespath_query":           func(d *subscribe.Draft) { d.Filter = "a[" },
		"/attachments/a/expression": func(d *subscribe.Draft) { d.Attachments = map[string]string{"a": "pad_left(a, `9`)"} },
		"/hmac_secret_key":          func(d *subscribe.Draft) { d.Secret = &long },
	} {
		d := w.draft()
		change(&d)
		_, err := w.Create(t.Context(), d)
		require.Equal(t, domain.Invalid, domain.KindOf(err))
		require.True(t, strings.HasPrefix(err.Error(), where+": "), err)
		require.NotContains(t, err.Error(), long)
	}
	all, err := w.List(t.Context(), w.owner)
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestCreate_FailsAtTheLimitUntilASubscriptionIsDeleted(t *testing.T) {
	w := newWorld(t, subscribe.Options{})
	var last *subscribe.Subscription
	for range domain.MaxSubscriptions {
		var err error
		last, err = w.Create(t.Context(), w.draft())
		require.NoError(t, err)
	}
	_, err := w.Create(t.Context(), w.draft())
	require.True(t, errors.Is(err, subscribe.ErrLimit))
	_, err = w.Delete(t.Context(), w.owner, last.ID, subscribe.Match{})
	require.NoError(t, err)
	_, err = w.Delete(t.Context(), w.owner, last.ID, subscribe.Match{})
	require.Equal(t, domain.NotFound, domain.KindOf(err))
	_, err = w.Create(t.Context(), w.draft())
	require.NoError(t, err)
}
