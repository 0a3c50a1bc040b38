package node

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository/memory"
)

// If a receiver's secret cannot be decrypted, the receiver must not be called,
// because an unsigned call does not authenticate the hub. Other receivers are
// still called.
func TestASecretThatCannotBeOpened_StopsOnlyItsCalls(t *testing.T) {
	definitions, ctx := memory.NewDefinitions(), t.Context()
	keyring := func() *subscribe.Keyring {
		k, err := subscribe.NewKeyring(subscribe.NewKey())
		require.NoError(t, err)
		return k
	}
	sealed := keyring()
	s := subscribe.New(subscribe.Ports{
		Definitions: definitions, Streams: memory.NewStreams(time.Hour, time.Now), Cursors: memory.NewCursors(time.Now),
		Dequeues: memory.New(memory.Options{}),
	}, sealed, subscribe.Options{CheckSecret: checkSecret})
	owner, err := domain.ParseActorID("owner")
	require.NoError(t, err)
	create := func(secret string) domain.CursorID {
		created, err := s.Create(ctx, subscribe.Draft{
			Subscription: domain.Subscription{Owner: owner, CallbackURL: "https://example.org/"}, Secret: &secret,
		})
		require.NoError(t, err)
		return created.ID.Cursor()
	}
	unsigned, keyed, standard := create(""), create("a key"), create("whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 32)))
	cfg := config.Default()
	for _, tc := range []struct {
		name string
		keys *subscribe.Keyring
		want domain.Kind
	}{{"another key", keyring(), domain.Unavailable}, {"no key", nil, domain.Unavailable}} {
		r := newReceivers(&cfg, nil, &subscribe.Dequeues{Definitions: definitions}, tc.keys, time.Now, prometheus.NewRegistry())
		for _, id := range []domain.CursorID{keyed, standard} {
			_, err := r.Receiver(ctx, id, false)
			require.Equal(t, tc.want, domain.KindOf(err), tc.name)
		}
		_, err = r.Receiver(ctx, unsigned, false)
		require.NoError(t, err, tc.name)
	}
	r := newReceivers(&cfg, nil, &subscribe.Dequeues{Definitions: definitions}, sealed, time.Now, prometheus.NewRegistry())
	found, err := r.Receiver(ctx, keyed, false)
	require.NoError(t, err)
	secrets, key := found.Target.(*target).signersAt(time.Now())
	require.Equal(t, "a key", string(key))
	require.Empty(t, secrets)
	found, err = r.Receiver(ctx, standard, false)
	require.NoError(t, err)
	secrets, key = found.Target.(*target).signersAt(time.Now())
	require.Empty(t, key)
	require.Len(t, secrets, 1)

	short := "whsec_c2hvcnQ="
	_, err = s.Create(ctx, subscribe.Draft{Subscription: domain.Subscription{Owner: owner, CallbackURL: "https://example.org/"}, Secret: &short})
	require.ErrorContains(t, err, "/hmac_secret_key: ")
	require.NotContains(t, err.Error(), short)
}

// The key that encrypts a secret is needed only while calls are signed with the
// secret.
func TestASecretThatHasEnded_NeedsNoKey(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	definitions, ctx, cfg := memory.NewDefinitions(), t.Context(), config.Default()
	ports := subscribe.Ports{Definitions: definitions, Streams: memory.NewStreams(time.Hour, clock), Cursors: memory.NewCursors(clock)}
	former, latter := subscribe.NewKey(), subscribe.NewKey()
	service := func(keys ...[]byte) (*subscribe.Service, *receivers) {
		keyring, err := subscribe.NewKeyring(keys...)
		require.NoError(t, err)
		return subscribe.New(ports, keyring, subscribe.Options{Clock: clock, Grace: time.Hour}), newReceivers(&cfg, nil, &subscribe.Dequeues{Definitions: definitions}, keyring, clock, prometheus.NewRegistry())
	}
	owner, err := domain.ParseActorID("owner")
	require.NoError(t, err)
	s, _ := service(former)
	first, second := "first", "second"
	created, err := s.Create(ctx, subscribe.Draft{Subscription: domain.Subscription{Owner: owner, CallbackURL: "https://example.org/"}, Secret: &first})
	require.NoError(t, err)
	s, _ = service(latter, former)
	_, _, err = s.Rotate(ctx, owner, created.ID, &second, subscribe.Match{})
	require.NoError(t, err)
	_, r := service(latter)
	_, err = r.Receiver(ctx, created.ID.Cursor(), false)
	require.Equal(t, domain.Unavailable, domain.KindOf(err), "calls would lack a signature")
	now = now.Add(time.Hour)
	_, err = r.Receiver(ctx, created.ID.Cursor(), false)
	require.NoError(t, err)
}

func TestPushKeys_ComeFromTheSettingAndTheFolder(t *testing.T) {
	cfg := config.Default()
	cfg.Data = t.TempDir()
	id, owner := domain.SubscriptionID{1}, domain.ActorID{}
	first, err := pushKeys(&cfg)
	require.NoError(t, err)
	sealed := first.Seal(id, owner, "text")
	file := filepath.Join(cfg.Data, pushKeyName)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	again, err := pushKeys(&cfg)
	require.NoError(t, err)
	require.Equal(t, "text", openSealed(t, again, sealed))

	// If the settings contain a key, new secrets are encrypted with it. Secrets
	// encrypted with the key in the file can still be decrypted.
	cfg.Push.SecretKey = config.Secret(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)))
	both, err := pushKeys(&cfg)
	require.NoError(t, err)
	require.Equal(t, "text", openSealed(t, both, sealed))
	_, err = again.Open(id, owner, both.Seal(id, owner, "text"))
	require.Error(t, err)

	// With payloads on Azure, several nodes may use the store. They must share
	// a configured key, so no key is created in the folder.
	azure := config.Default()
	azure.Data, azure.Cosmos.Endpoint, azure.Blob.Endpoint = t.TempDir(), "https://a.example/", "https://b.example/"
	none, err := pushKeys(&azure)
	require.NoError(t, err)
	require.Nil(t, none)

	require.NoError(t, os.WriteFile(file, []byte("other"), 0o600))
	_, err = pushKeys(&cfg)
	require.ErrorContains(t, err, "it does not hold the Base64 of 32 bytes; restore it")
	require.NoError(t, os.Chmod(file, 0o644))
	_, err = pushKeys(&cfg)
	require.ErrorContains(t, err, "its mode 0644 lets others read it; restore it, or correct its mode")
}

func openSealed(t *testing.T, k *subscribe.Keyring, sealed string) string {
	t.Helper()
	text, err := k.Open(domain.SubscriptionID{1}, domain.ActorID{}, sealed)
	require.NoError(t, err)
	return text
}

func TestAReceiver_HasTheLimitsAndHeadersOfItsSubscription(t *testing.T) {
	definitions, streams, ctx := memory.NewDefinitions(), memory.NewStreams(time.Hour, time.Now), t.Context()
	keys, err := subscribe.NewKeyring(subscribe.NewKey())
	require.NoError(t, err)
	s := subscribe.New(subscribe.Ports{
		Definitions: definitions, Streams: streams, Cursors: memory.NewCursors(time.Now), Dequeues: memory.New(memory.Options{}),
	}, keys, subscribe.Options{CheckHeaders: checkHeaders})
	owner, err := domain.ParseActorID("owner")
	require.NoError(t, err)
	cfg := config.Default()
	r := newReceivers(&cfg, streams, &subscribe.Dequeues{Definitions: definitions}, keys, time.Now, prometheus.NewRegistry())
	d := subscribe.Draft{Subscription: domain.Subscription{Owner: owner, CallbackURL: "https://example.org/"}}
	created, err := s.Create(ctx, d)
	require.NoError(t, err)
	found, err := r.Receiver(ctx, created.ID.Cursor(), false)
	require.NoError(t, err)
	require.Equal(t, cfg.Push.Concurrency, found.Concurrency)
	require.Zero(t, found.MaxRate)
	require.Greater(t, found.Policy.Attempts, 1)
	require.Empty(t, found.Target.(*target).headers)

	d.MaxRate, d.MaxConcurrency, d.IsSync, d.Headers = 0.5, 3, true, map[string]string{"Authorization": "Bearer x"}
	created, err = s.Create(ctx, d)
	require.NoError(t, err)
	stream, err := domain.ParseTopic(domain.DefaultTopic)
	require.NoError(t, err)
	require.NoError(t, streams.RemoveSync(ctx, stream, created.ID.Cursor()), "as a crash may leave it")
	found, err = r.Receiver(ctx, created.ID.Cursor(), false)
	require.NoError(t, err)
	require.Equal(t, 3, found.Concurrency)
	require.False(t, found.IsOrdered)
	require.InDelta(t, 0.5, found.MaxRate, 0)
	require.Equal(t, 1, found.Policy.Attempts, "a delivery that is sync has no retry")
	require.Equal(t, d.Headers, found.Target.(*target).headers)
	listed, err := streams.Sync(ctx, stream)
	require.NoError(t, err)
	require.Equal(t, []domain.CursorID{created.ID.Cursor()}, listed)
	d.MaxConcurrency = domain.MaxConcurrency
	_, _, err = s.Put(ctx, created.ID, d, subscribe.Match{})
	require.NoError(t, err)
	found, err = r.Receiver(ctx, created.ID.Cursor(), false)
	require.NoError(t, err)
	require.Equal(t, cfg.Push.Concurrency, found.Concurrency, "the limit of the hub is one, too")
	d.MaxConcurrency, d.IsOrdered = 0, true
	_, _, err = s.Put(ctx, created.ID, d, subscribe.Match{})
	require.NoError(t, err)
	found, err = r.Receiver(ctx, created.ID.Cursor(), false)
	require.NoError(t, err)
	require.True(t, found.IsOrdered)

	keyless := newReceivers(&cfg, streams, &subscribe.Dequeues{Definitions: definitions}, nil, time.Now, prometheus.NewRegistry())
	_, err = keyless.Receiver(ctx, created.ID.Cursor(), false)
	require.Equal(t, domain.Unavailable, domain.KindOf(err), "calls would lack a header")

	// A secret without a Standard Webhooks prefix is the HMAC key of the
	// Authorization header.
	key, shared := "a key", "whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 32))
	d.Secret = &key
	_, err = s.Create(ctx, d)
	require.ErrorContains(t, err, "/headers/Authorization: the hub sets it")
	d.Secret = &shared
	_, err = s.Create(ctx, d)
	require.NoError(t, err)
	d.Headers = map[string]string{"Host": "x"}
	_, err = s.Create(ctx, d)
	require.ErrorContains(t, err, "/headers/Host: the hub sets it")
}
