package node

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// openNode opens a node whose setting objects.stores is stores.
func openNode(t *testing.T, stores string, environ ...string) (*Node, error) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "hub.yaml")
	require.NoError(t, os.WriteFile(file, []byte("listen: 127.0.0.1:0\nbus-listen: ''\nblob-listen: 127.0.0.1:0\ndata: "+filepath.Join(dir, "data")+"\nobjects: {stores: "+stores+"}\n"), 0o600))
	cfg, err := config.Load(config.Inputs{File: file, Environ: environ})
	require.NoError(t, err)
	n, err := Open(t.Context(), cfg, Options{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		t.Cleanup(func() { require.NoError(t, n.Close()) })
	}
	return n, err
}

func keysIn(t *testing.T, s repository.Source, bucket string) (keys []string) {
	t.Helper()
	page, err := s.List(t.Context(), bucket, "", "", 10)
	require.NoError(t, err)
	for i := range page.Objects {
		keys = append(keys, page.Objects[i].Key)
	}
	return keys
}

// A node must be able to list the hub's own content, and to return links to the
// content that it shares with the domains.
func TestSourcesHaveTheContentOfTheHub(t *testing.T) {
	n, err := openNode(t, "[]")
	require.NoError(t, err)
	require.NoError(t, n.store.content.Put(t.Context(), "a/b", strings.NewReader("own")))
	require.NoError(t, n.store.exchange.Put(t.Context(), "c/d", strings.NewReader("shared")))
	stores := n.objects.ledger.Source
	require.Equal(t, []string{"a/b"}, keysIn(t, stores, "devstoreaccount1/messagehub-content"))
	require.Equal(t, []string{"c/d"}, keysIn(t, stores, "devstoreaccount1/messagehub-exchange"))
	_, err = stores.List(t.Context(), "devstoreaccount1/other", "", "", 10)
	require.ErrorIs(t, err, repository.ErrNoStore)

	name, err := domain.ParseObjectName("devstoreaccount1/messagehub-exchange", "c/d")
	require.NoError(t, err)
	link, err := stores.Link(t.Context(), name, domain.VersionID{}, repository.LinkOptions{Expires: time.Minute, Disposition: "inline"})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(link, "http://"+n.BlobAddr().String()+"/devstoreaccount1/messagehub-exchange/c%2Fd?"), link)
	require.Equal(t, "shared", followInProcess(t, n, link))
}

// Without a listener for domains, no client could use a link, so the node must
// return none.
func TestSourcesWithoutAListenerHaveNoLinks(t *testing.T) {
	cfg := config.Default()
	cfg.Listen, cfg.BusListen, cfg.BlobListen, cfg.InMemory = "127.0.0.1:0", "", "", true
	n, err := Open(t.Context(), cfg, Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	name, err := domain.ParseObjectName("devstoreaccount1/messagehub-exchange", "a")
	require.NoError(t, err)
	_, err = n.objects.ledger.Source.Link(t.Context(), name, domain.VersionID{}, repository.LinkOptions{Expires: time.Minute})
	require.ErrorIs(t, err, repository.ErrNoLinks)
}

// followInProcess reads the object to which a link points, directly from the
// node's embedded account.
func followInProcess(t *testing.T, n *Node, link string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, http.NoBody)
	require.NoError(t, err)
	answer, err := n.store.exchange.own.Transport().Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

func TestSources_MatchTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key"), []byte("a2V5\n"), 0o600))
	n, err := openNode(t, `[{bucket: files, kind: folder, folder: `+dir+`}, {bucket: 'remote-*', kind: s3, endpoint: 'https://s3.example.org', access-key: id, key-env: STORE_KEY}, `+
		`{bucket: 'account/*', kind: azure, endpoint: 'https://account.blob.core.windows.net', key-file: `+filepath.Join(dir, "key")+`}]`, "STORE_KEY=hush")
	require.NoError(t, err)
	stores := n.objects.ledger.Source
	require.Empty(t, keysIn(t, stores, "files"))
	for bucket, want := range map[string]string{
		"remote-1": "https://s3.example.org/remote-1/k?", "account/c": "https://account.blob.core.windows.net/c/k?",
	} {
		name, err := domain.ParseObjectName(bucket, "k")
		require.NoError(t, err)
		link, err := stores.Link(t.Context(), name, domain.VersionID{}, repository.LinkOptions{Expires: time.Minute})
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(link, want), link)
		require.NotContains(t, link, "hush")
	}
}

// A node must not start if the key of a store is missing. The error must name
// the variable that should contain the key.
func TestSourcesWithoutTheirKeysAreRefused(t *testing.T) {
	_, err := openNode(t, `[{bucket: b, kind: s3, endpoint: 'https://s3.example.org', access-key: id, key-env: STORE_KEY}]`)
	require.ErrorContains(t, err, "objects.stores: b: key-env: the variable STORE_KEY is not set")
	_, err = openNode(t, `[{bucket: b, kind: folder, folder: /none/such}]`)
	require.ErrorContains(t, err, "objects.stores: b: open folder: ")
}
