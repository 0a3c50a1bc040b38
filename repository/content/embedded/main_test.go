package embedded_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openAccount(t testing.TB, o embedded.Options) *embedded.Account {
	t.Helper()
	a, err := embedded.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a
}

// eachAccount runs a test on an account in memory and on an account in a folder. Both have the container c-c.
func eachAccount(t *testing.T, test func(*testing.T, *embedded.Account)) {
	t.Run("in memory", func(t *testing.T) { test(t, openAccount(t, embedded.Options{Containers: []string{"c-c"}})) })
	t.Run("in a folder", func(t *testing.T) {
		test(t, openAccount(t, embedded.Options{Dir: t.TempDir(), Containers: []string{"c-c"}}))
	})
}

// newClient returns an azblob client of a container, without retries.
func newClient(t testing.TB, a *embedded.Account, name string) *container.Client {
	t.Helper()
	key, err := blob.NewSharedKeyCredential(a.Name(), a.Key())
	require.NoError(t, err)
	c, err := container.NewClientWithSharedKeyCredential(a.Endpoint()+"/"+name, key, &container.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: a.Transport(), Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	require.NoError(t, err)
	return c
}

func putBlob(t testing.TB, c *container.Client, name, data string) azcore.ETag {
	t.Helper()
	got, err := c.NewBlockBlobClient(name).Upload(t.Context(), bodyOf(data), nil)
	require.NoError(t, err)
	return *got.ETag
}

func bodyOf(data string) io.ReadSeekCloser { return streaming.NopCloser(strings.NewReader(data)) }

func getBlob(t testing.TB, c *container.Client, name string) string {
	t.Helper()
	got, err := c.NewBlobClient(name).DownloadStream(t.Context(), nil)
	require.NoError(t, err)
	data, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	require.Equal(t, int64(len(data)), *got.ContentLength)
	return string(data)
}

func requireRefused(t testing.TB, err error, status int, code bloberror.Code) {
	t.Helper()
	var resp *azcore.ResponseError
	require.ErrorAs(t, err, &resp)
	require.Equal(t, status, resp.StatusCode, resp)
	require.Equal(t, string(code), resp.ErrorCode)
}

func ifMatch(etag azcore.ETag) *blob.AccessConditions {
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &etag}}
}

func ifNoneMatch(etag azcore.ETag) *blob.AccessConditions {
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &etag}}
}

func uploadBlob(c *container.Client, name, data string, when *blob.AccessConditions) error {
	_, err := c.NewBlockBlobClient(name).Upload(context.Background(), bodyOf(data), &blockblob.UploadOptions{AccessConditions: when})
	return err
}

// newSignedRequest returns a signed request. Headers are formatted as NAME: VALUE.
func newSignedRequest(t testing.TB, a *embedded.Account, method, path string, data string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(a.Endpoint(), "/"+a.Name())+path, bytes.NewReader([]byte(data)))
	require.NoError(t, err)
	r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	r.Header.Set("x-ms-version", "2021-12-02")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	signRequest(t, a, r)
	return r
}

func signRequest(t testing.TB, a *embedded.Account, r *http.Request) {
	t.Helper()
	length := ""
	if r.ContentLength > 0 {
		length = r.Header.Get("Content-Length")
		if length == "" {
			length = strconv.FormatInt(r.ContentLength, 10)
		}
	}
	lines := []string{
		r.Method, "", "", length, r.Header.Get("Content-MD5"), r.Header.Get("Content-Type"), "", r.Header.Get("If-Modified-Since"),
		r.Header.Get("If-Match"), r.Header.Get("If-None-Match"), r.Header.Get("If-Unmodified-Since"), r.Header.Get("Range"),
	}
	var ms []string
	for name, values := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-ms-") {
			ms = append(ms, name+":"+strings.Join(values, ","))
		}
	}
	slices.Sort(ms)
	lines = append(append(lines, ms...), "/"+a.Name()+r.URL.EscapedPath())
	var query []string
	for name, values := range r.URL.Query() {
		query = append(query, name+":"+strings.Join(values, ","))
	}
	slices.Sort(query)
	key, err := base64.StdEncoding.DecodeString(a.Key())
	require.NoError(t, err)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strings.Join(append(lines, query...), "\n")))
	r.Header.Set("Authorization", "SharedKey "+a.Name()+":"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// sendRequest sends a request and returns the status, the error code and the response.
func sendRequest(t testing.TB, a *embedded.Account, r *http.Request) (int, string, *http.Response) {
	t.Helper()
	resp, err := a.Transport().Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp.StatusCode, resp.Header.Get("x-ms-error-code"), resp
}

// serveAccount serves an account on a loopback port.
func serveAccount(t testing.TB, a *embedded.Account) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- a.Serve(t.Context(), l, embedded.ServeOptions{}) }()
	t.Cleanup(func() { require.NoError(t, <-served) }) // Serve returns after the context of the test has ended
	return l.Addr().String()
}
