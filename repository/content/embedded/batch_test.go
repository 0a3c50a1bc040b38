package embedded_test

import (
	"io"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

func TestBatch_AnswersEachRequest(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		for _, name := range []string{"a", "b", "c/d e"} {
			putBlob(t, c, name, "data")
		}
		deletions, err := c.NewBatchBuilder()
		require.NoError(t, err)
		for _, name := range []string{"a", "none", "c/d e"} {
			require.NoError(t, deletions.Delete(name, nil))
		}
		got, err := c.SubmitBatch(t.Context(), deletions, nil)
		require.NoError(t, err)
		require.Len(t, got.Responses, 3)
		for i, one := range got.Responses {
			require.Equal(t, i, *one.ContentID)
			require.NotEmpty(t, *one.RequestID)
			require.NotEmpty(t, *one.Version)
		}
		require.NoError(t, got.Responses[0].Error)
		requireRefused(t, got.Responses[1].Error, 404, bloberror.BlobNotFound)
		require.NoError(t, got.Responses[2].Error)

		tiers, err := newServiceClient(t, a).NewBatchBuilder()
		require.NoError(t, err)
		require.NoError(t, tiers.SetTier("c-c", "b", blob.AccessTierCool, nil))
		set, err := newServiceClient(t, a).SubmitBatch(t.Context(), tiers, nil)
		require.NoError(t, err)
		require.NoError(t, set.Responses[0].Error)
		left, err := c.NewListBlobsFlatPager(nil).NextPage(t.Context())
		require.NoError(t, err)
		require.Len(t, left.Segment.BlobItems, 1)
		require.Equal(t, blob.AccessTierCool, *left.Segment.BlobItems[0].Properties.AccessTier)
	})
}

func TestBatch_ReturnsRefusalsInItsList(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-c", "d-d"}})
	putBlob(t, newClient(t, a, "d-d"), "x", "data")
	submit := func(path, contentType, body string) (int, string) {
		r := newSignedRequest(t, a, "POST", "/devstoreaccount1"+path, body)
		r.Header.Set("Content-Type", contentType)
		signRequest(t, a, r)
		status, _, resp := sendRequest(t, a, r)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return status, string(text)
	}
	part := func(request string) string {
		return "--b==\r\nContent-Type: application/http\r\nContent-ID: 7\r\n\r\n" + request + " HTTP/1.1\r\nContent-Length: 0\r\n\r\n--b==--\r\n"
	}
	const mixed, all, within = "multipart/mixed; Boundary= b==", "/?comp=batch", "/c-c?restype=container&comp=batch"
	long := strings.Repeat("--b\r\n\r\nDELETE /devstoreaccount1/c-c/x HTTP/1.1\r\n\r\n", 257) + "--b--\r\n"
	for name, tc := range map[string]struct {
		path, contentType, body string
		says                    []string
	}{
		"no signature":      {all, mixed, part("DELETE /devstoreaccount1/d-d/x"), []string{"Content-ID: 7\r\n", "HTTP/1.1 403 Forbidden\r\n", "x-ms-error-code: AuthenticationFailed\r\n"}},
		"another container": {within, mixed, part("DELETE /devstoreaccount1/d-d/x"), []string{"HTTP/1.1 400 Bad Request\r\n", "below /devstoreaccount1/c-c/"}},
		"a container":       {all, mixed, part("DELETE /devstoreaccount1/d-d?restype=container"), []string{"x-ms-error-code: InvalidInput\r\n"}},
		"a read":            {all, mixed, part("GET /devstoreaccount1/d-d/x"), []string{"a batch deletes blobs or sets their tiers"}},
		"no request":        {all, mixed, part("what is this"), []string{"request 1 of the batch cannot be read"}},
		"no part":           {all, mixed, "--b==--\r\n", []string{"x-ms-error-code: InvalidInput\r\n"}},
		"no boundary":       {all, "multipart/mixed", part("x"), []string{"x-ms-error-code: InvalidHeaderValue\r\n"}},
		"two boundaries":    {all, "multipart/mixed; boundary=a; boundary=b", part("x"), []string{"x-ms-error-code: InvalidInput\r\n"}},
		"too many":          {all, "multipart/mixed; boundary=b", long, []string{"x-ms-error-code: ExceedsMaxBatchRequestCount\r\n"}},
		"too long":          {all, mixed, strings.Repeat(" ", 4<<20+1), []string{"x-ms-error-code: RequestBodyTooLarge\r\n"}},
	} {
		status, text := submit(tc.path, tc.contentType, tc.body)
		require.Equal(t, 202, status, name)
		for _, says := range tc.says {
			require.Contains(t, text, says, name)
		}
	}
	status, _ := submit(all, "", "")
	require.Equal(t, 400, status)
	status, _ = submit("/none?restype=container&comp=batch", mixed, "")
	require.Equal(t, 404, status)
	require.Equal(t, "data", getBlob(t, newClient(t, a, "d-d"), "x"), "nothing was deleted")
}
