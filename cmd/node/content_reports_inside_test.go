package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// openReporting opens an in-memory node, but does not run it. settle stores the
// reports that the node has queued.
func openReporting(t *testing.T) (n *Node, settle func()) {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.InMemory = "127.0.0.1:0", true
	n, err := Open(t.Context(), cfg, Options{ReadinessInterval: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	return n, func() { n.objects.runReports(ended, n.opts.reports) }
}

// object returns the ledger's description of an object.
func (n *Node) object(t *testing.T, bucket, key string) domain.Object {
	t.Helper()
	name, err := domain.ParseObjectName(bucket, key)
	require.NoError(t, err)
	o, err := n.objects.stored.Object(t.Context(), name)
	require.NoError(t, err)
	return o
}

const ownBucket = "devstoreaccount1/messagehub-content"

func TestOwnContents_AreInTheLedger(t *testing.T) {
	n, settle := openReporting(t)
	ctx, content := t.Context(), n.store.content
	for _, name := range []string{"payloads/a/1", "payloads/a/2", "payloads/b/1", "payloads/ab/1"} {
		require.NoError(t, content.Put(ctx, name, strings.NewReader("0123456789")))
	}
	require.Error(t, content.Put(ctx, "payloads/a/1", strings.NewReader("x")), "a failure is not reported")
	require.NoError(t, n.store.exchange.Put(ctx, "lists/1", strings.NewReader("abc")))
	settle()
	o := n.object(t, ownBucket, "payloads/a/1")
	require.EqualValues(t, 1, o.Events)
	require.EqualValues(t, 10, *o.Current.Size)
	require.EqualValues(t, 3, *n.object(t, "devstoreaccount1/messagehub-exchange", "lists/1").Current.Size)

	require.NoError(t, content.Delete(ctx, "payloads/b/1"))
	require.NoError(t, content.DeleteFolder(ctx, "payloads/a"))
	require.NoError(t, n.store.exchange.Delete(ctx, "lists/1"))
	settle()
	for bucket, keys := range map[string][]string{ownBucket: {"payloads/a/1", "payloads/a/2", "payloads/b/1"}, "devstoreaccount1/messagehub-exchange": {"lists/1"}} {
		for _, key := range keys {
			o := n.object(t, bucket, key)
			require.Nil(t, o.Current, key)
			require.EqualValues(t, 2, o.Events)
		}
	}
	require.NotNil(t, n.object(t, ownBucket, "payloads/ab/1").Current, "another folder")
	require.Zero(t, testutil.ToFloat64(n.opts.reports.lost))
}

func TestOwnContentsThatAreDeleted_MarkTheirOpenBundles(t *testing.T) {
	n, settle := openReporting(t)
	ctx, actor := t.Context(), repositorytest.NewActor()
	_, err := n.store.Save(ctx, actor, repositorytest.Events(1, actor))
	require.NoError(t, err)
	stores := repositorytest.Stores{Events: n.store, Bundles: n.store, Answers: n.store}
	b, err := repositorytest.Peek(ctx, stores, actor, domain.DefaultGroups().All(), domain.BundleID{}, repositorytest.OnRequest)
	require.NoError(t, err)
	isGone := func() bool {
		t.Helper()
		found, _, err := n.store.Find(ctx, actor, b.ID)
		require.NoError(t, err)
		return found.Gone
	}
	object := fmt.Sprintf("payloads/x/%s-%s", b.ID, uuid.New())
	other := fmt.Sprintf("payloads/x/%s-%s", b.ID, uuid.New()) // content of a reply that arrived later than another reply
	for _, name := range []string{object, other} {
		require.NoError(t, n.store.content.Put(ctx, name, strings.NewReader("content")))
	}
	_, err = n.store.Answer(ctx, actor, b.ID, object, domain.Body{Length: 7})
	require.NoError(t, err)
	require.NoError(t, n.store.content.Delete(ctx, other))
	settle()
	require.False(t, isGone())
	require.NoError(t, n.store.content.Delete(ctx, object))
	settle()
	require.True(t, isGone())
	require.EqualValues(t, 1, testutil.ToFloat64(n.opts.contents.missing.WithLabelValues("bundle")))
}

// newReports returns contentReports that do not use a ledger yet; the test
// passes a ledger to run.
func newReports(t *testing.T) (*contentReports, repository.Content) {
	t.Helper()
	cfg := config.Default()
	cfg.InMemory = true
	opts := &Options{}
	opts.Logger = slog.New(slog.DiscardHandler)
	r := newContentReports(&cfg, opts, prometheus.NewRegistry())
	return r, r.wrapContent(memory.NewContent())
}

func TestAReport_DelaysNoPutWhileTheLedgerIsUnavailable(t *testing.T) {
	r, content := newReports(t)
	for i := range maxContentReports + 5 {
		require.NoError(t, content.Put(t.Context(), fmt.Sprintf("payloads/%d", i), strings.NewReader("x")))
	}
	require.EqualValues(t, 5, testutil.ToFloat64(r.lost))
}

// A failingObjects is a ledger some of whose calls fail, either completely or
// only for one object.
type failingObjects struct {
	*memory.Objects
	fails int
	key   string // only calls for this object fail; "" for all objects
}

func (a *failingObjects) Ingest(ctx context.Context, reports []repository.ObjectReport) ([]repository.ObjectResult, error) {
	away := domain.Errorf(domain.Unavailable, "%w", errors.New("away"))
	if a.fails--; a.fails >= 0 && a.key == "" {
		return nil, away
	}
	results, err := a.Objects.Ingest(ctx, reports)
	for i := range results {
		if a.fails >= 0 && reports[i].Name.Key() == a.key {
			results[i] = repository.ObjectResult{Err: away}
		}
	}
	return results, err
}

func TestAReportThatFails_IsRetriedAndThenLost(t *testing.T) {
	for _, tc := range []struct {
		fails        int
		key          string
		stored, lost int
	}{
		{0, "", 3, 0},
		{contentReportTries - 1, "", 3, 0},
		{contentReportTries, "", 0, 3},
		{contentReportTries - 1, "payloads/1", 3, 0},
		{contentReportTries, "payloads/1", 2, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, content := newReports(t)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			for i := range 3 {
				require.NoError(t, content.Put(ctx, fmt.Sprintf("payloads/%d", i), strings.NewReader("x")))
			}
			go func() {
				r.run(ctx, &failingObjects{Objects: memory.NewObjects(), fails: tc.fails, key: tc.key})
				close(done)
			}()
			<-time.After(time.Hour) // time of the synctest bubble
			cancel()
			<-done
			require.EqualValues(t, tc.stored, testutil.ToFloat64(r.stored), "%+v", tc)
			require.EqualValues(t, tc.lost, testutil.ToFloat64(r.lost), "%+v", tc)
		})
	}
}

func TestStorageAccount_ComesFromTheEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"": "devstoreaccount1", "https://hub.blob.core.windows.net": "hub", "https://hub.blob.core.windows.net/": "hub",
		"http://127.0.0.1:10000/account": "account",
	} {
		cfg := config.Default()
		cfg.Blob.Endpoint = endpoint
		require.Equal(t, want, storageAccount(&cfg))
		require.Equal(t, want+"/messagehub-content", contentBucket(&cfg))
	}
}
