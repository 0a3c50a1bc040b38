package node

import (
	"context"
	"crypto/md5"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
)

// serveS3 serves an S3 bucket. It returns the bucket's URL, and a function that
// stores an object in the bucket.
func serveS3(t *testing.T, bucket string) (url string, put func(key, content string)) {
	t.Helper()
	store := s3mem.New()
	require.NoError(t, store.CreateBucket(bucket))
	server := httptest.NewServer(gofakes3.New(store).Server())
	t.Cleanup(server.Close)
	return server.URL, func(key, content string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL+"/"+bucket+"/"+key, strings.NewReader(content))
		require.NoError(t, err)
		answer, err := server.Client().Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode)
	}
}

// An inventory's manifest and files may be in S3, in an Azure storage account,
// or in a folder. The node must read each of them from the right store.
func TestAnInventoryIsReadFromTheStoreThatHasIt(t *testing.T) {
	endpoint, putInS3 := serveS3(t, "inventories")
	n, err := openNode(t, "[{bucket: inventories, kind: s3, endpoint: '"+endpoint+"', access-key: id, key-env: STORE_KEY}]", "STORE_KEY=hush")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.objects.ledger.RunJobs(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	for i, tc := range []struct {
		bucket string
		put    func(key, content string)
	}{
		{"inventories", putInS3},
		{"devstoreaccount1/messagehub-exchange", func(key, content string) {
			require.NoError(t, n.store.exchange.Put(t.Context(), key, strings.NewReader(content)))
		}},
		{"devstoreaccount1/messagehub-content", func(key, content string) {
			require.NoError(t, n.store.content.Put(t.Context(), key, strings.NewReader(content)))
		}},
	} {
		t.Run(tc.bucket, func(t *testing.T) {
			data := fmt.Sprintf("measurements,%d/a\nmeasurements,%d/b\n", i, i)
			manifest := fmt.Sprintf(`{"sourceBucket":"measurements","destinationBucket":%q,"creationTimestamp":"1790000000000","fileFormat":"CSV","files":[{"key":"daily/data.csv","MD5checksum":"%x"}]}`,
				tc.bucket, md5.Sum([]byte(data)))
			tc.put("daily/data.csv", data)
			tc.put("daily/manifest.json", manifest)
			tc.put("daily/manifest.checksum", fmt.Sprintf("%x\n", md5.Sum([]byte(manifest))))
			job, err := n.objects.ledger.StartInventory(t.Context(), ledger.InventoryRequest{Bucket: tc.bucket, Key: "daily/manifest.checksum"})
			require.NoError(t, err)
			job, err = n.objects.ledger.WaitForJob(t.Context(), job)
			require.NoError(t, err)
			require.Equal(t, domain.JobCompleted, job.State, job.Report)
			require.Equal(t, domain.JobCounts{Seen: 2, Created: 2}, job.Counts)
			_, err = n.objects.ledger.StartInventory(t.Context(), ledger.InventoryRequest{Bucket: tc.bucket, Key: "daily/none.json"})
			require.Equal(t, domain.NotFound, domain.KindOf(err), "%v", err)
		})
	}
}
