package node_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain/hub"
	blobs "github.com/messagehub/messagehub/repository/content/embedded"
)

// A cloudAccounts is a Cosmos account and a storage account, which serve HTTP.
// As on Azure, the states of the two accounts can be saved and restored
// independently.
type cloudAccounts struct {
	*testing.T
	folder string
}

func (a *cloudAccounts) path(names ...string) string {
	return filepath.Join(append([]string{a.folder}, names...)...)
}

// saveState saves the states of both accounts under a name. The accounts must
// not be open.
func (a *cloudAccounts) saveState(moment string) {
	for _, account := range []string{"cosmos", "blobs"} {
		require.NoError(a, os.CopyFS(a.path(moment, account), os.DirFS(a.path("now", account))))
	}
}

// restore restores the Cosmos account to the state named documents, and the
// storage account to the state named contents.
func (a *cloudAccounts) restore(documents, contents string) {
	require.NoError(a, os.RemoveAll(a.path("now")))
	for account, moment := range map[string]string{"cosmos": documents, "blobs": contents} {
		require.NoError(a, os.CopyFS(a.path("now", account), os.DirFS(a.path(moment, account))))
	}
}

// serve serves both accounts over HTTP until use returns.
func (a *cloudAccounts) serve(use func(cfg config.Config)) {
	engine, err := embedded.Open(embedded.Options{Dir: a.path("now", "cosmos")})
	require.NoError(a, err)
	defer func() { require.NoError(a, engine.Close()) }()
	account, err := blobs.Open(blobs.Options{Dir: a.path("now", "blobs")})
	require.NoError(a, err)
	defer func() { require.NoError(a, account.Close()) }()
	documents := httptest.NewServer(engine.Handler())
	defer documents.Close()
	contents := httptest.NewServer(account.Handler())
	defer contents.Close()
	cfg := settings(a.TempDir())
	cfg.Cosmos.Endpoint, cfg.Cosmos.Key = documents.URL, config.Secret(engine.Key())
	cfg.Blob.Endpoint, cfg.Blob.Key = contents.URL+"/"+account.Name(), config.Secret(account.Key())
	use(cfg)
}

// announce sends events, whose payloads the hub stores in the storage account.
func (a *cloudAccounts) announce(from, to int) {
	a.serve(func(cfg config.Config) {
		n, stop := start(a.T, cfg, node.Options{})
		for i := from; i <= to; i++ {
			status, body := call(a.T, http.MethodPost, n.URL()+"/v1/data-available", "", fmt.Sprintf(
				`[{"id":"00000000-0000-4000-8000-%012d","recipient":"a","origin":"Charges","contentType":"c","documentType":"d","supportsBundling":false,"weight":3,"payload":{"n":%d,"x":%q}}]`,
				i, i, strings.Repeat("x", 2000)))
			require.Equal(a, 202, status, body)
		}
		require.NoError(a, stop())
	})
}

// check checks the store with repairs, and then without. It returns both
// reports.
func (a *cloudAccounts) check(cfg config.Config) (repaired, after hub.CheckReport) {
	logger := slog.New(slog.DiscardHandler)
	repaired, err := node.Check(a.Context(), cfg, hub.CheckOptions{Repair: true}, logger)
	require.NoError(a, err)
	after, err = node.Check(a.Context(), cfg, hub.CheckOptions{}, logger)
	require.NoError(a, err)
	return repaired, after
}

// drain peeks and dequeues until no data is left. It returns the numbers of the
// events, and the last response.
func (a *cloudAccounts) drain(n *node.Node) (numbers []int, status int, body string) {
	for {
		req, err := http.NewRequestWithContext(a.Context(), http.MethodGet, n.URL()+"/v1/peek", http.NoBody)
		require.NoError(a, err)
		req.Header.Set("X-Actor-Id", "a")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(a, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(a, errors.Join(err, resp.Body.Close()))
		if resp.StatusCode != http.StatusOK {
			return numbers, resp.StatusCode, string(text)
		}
		var events []struct{ Payload struct{ N int } }
		require.NoError(a, json.Unmarshal(text, &events))
		for _, e := range events {
			numbers = append(numbers, e.Payload.N)
		}
		status, answer := call(a.T, http.MethodDelete, n.URL()+"/v1/dequeue/"+resp.Header.Get("MessageId"), "a", "")
		require.Equal(a, http.StatusOK, status, answer)
	}
}

func sequence(from, to int) (numbers []int) {
	for i := from; i <= to; i++ {
		numbers = append(numbers, i)
	}
	return numbers
}

// The Cosmos account and the storage account are restored to states of
// different times. The hub must report every loss.
func TestRestoreOnAzure_OfDifferentMomentsLosesNothingSilently(t *testing.T) {
	a := &cloudAccounts{t, t.TempDir()}
	a.announce(1, 3)
	a.saveState("first")
	a.announce(4, 6)
	a.saveState("second")

	t.Run("documents older than blobs", func(t *testing.T) {
		a := &cloudAccounts{t, a.folder}
		a.restore("first", "second")
		a.serve(func(cfg config.Config) {
			repaired, after := a.check(cfg)
			require.Zero(t, repaired.Found, repaired.Findings)
			require.Zero(t, after.Found, after.Findings)
			n, stop := start(t, cfg, node.Options{})
			numbers, status, _ := a.drain(n)
			require.Equal(t, sequence(1, 3), numbers, "all that the documents know")
			require.Equal(t, http.StatusNoContent, status)
			require.NoError(t, stop())
		})
		a.announce(4, 6) // the senders repeat the events that the restore lost
		a.serve(func(cfg config.Config) {
			n, stop := start(t, cfg, node.Options{})
			numbers, _, _ := a.drain(n)
			require.Equal(t, sequence(4, 6), numbers)
			require.NoError(t, stop())
		})
	})
	t.Run("documents younger than blobs", func(t *testing.T) {
		a := &cloudAccounts{t, a.folder}
		a.restore("second", "first")
		a.serve(func(cfg config.Config) {
			_, after := a.check(cfg)
			require.True(t, after.Clean(), after.Findings)
			n, stop := start(t, cfg, node.Options{})
			numbers, status, body := a.drain(n)
			require.Equal(t, sequence(1, 3), numbers, "in order, up to the first content that is lost")
			require.GreaterOrEqual(t, status, 500, "which is an error, and never passed over: %s", body)
			require.NoError(t, stop())
		})
	})
}
