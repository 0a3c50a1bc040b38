package embedded_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

// newNetworkClient returns an azblob client that connects to an address.
func newNetworkClient(t testing.TB, a *embedded.Account, address string) *azblob.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := azblob.NewClientFromConnectionString(a.ConnectionString(address), &azblob.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: transport}, Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	require.NoError(t, err)
	return c
}

func TestServe_ServesClientsOverTheNetwork(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newNetworkClient(t, a, serveAccount(t, a))
		data := strings.Repeat("0123456789", 500_000)
		_, err := c.UploadStream(t.Context(), "c-c", "a b/æ", strings.NewReader(data), nil)
		require.NoError(t, err)
		got, err := c.DownloadStream(t.Context(), "c-c", "a b/æ", nil)
		require.NoError(t, err)
		read, err := io.ReadAll(got.Body)
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
		require.True(t, data == string(read))
		about, err := c.ServiceClient().NewContainerClient("c-c").NewBlobClient("a b/æ").GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, int64(len(data)), *about.ContentLength)
		_, err = c.ServiceClient().NewContainerClient("c-c").NewBlobClient("a b/æ").SetHTTPHeaders(t.Context(), blob.HTTPHeaders{}, nil)
		require.NoError(t, err)
		got, err = c.DownloadStream(t.Context(), "c-c", "a b/æ", nil)
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
		require.Nil(t, got.ContentType, "no content type is derived from the content")
		none := azcore.ETagAny
		_, err = c.UploadBuffer(t.Context(), "c-c", "a b/æ", []byte(data), &azblob.UploadBufferOptions{AccessConditions: ifNoneMatch(none)})
		requireRefused(t, err, 409, bloberror.BlobAlreadyExists) // the client gets the response although the account ignored the body
		_, err = c.DownloadStream(t.Context(), "c-c", "none", nil)
		requireRefused(t, err, 404, bloberror.BlobNotFound)
	})
}

func TestServe_RefusesOtherHostsOnALoopbackAddress(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
	address := serveAccount(t, a)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for host, status := range map[string]int{
		"127.0.0.1": 404, "localhost:1": 404, "x.localhost": 404, "[::1]": 404,
		"example.org": 421, "127.0.0.1.example.org": 421, "": 421, "10.0.0.1": 421,
	} {
		r := newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c/x", "")
		r.URL.Host, r.Host = address, host
		if host == "" {
			require.Contains(t, sendRaw(t, address, "GET / HTTP/1.0\r\n\r\n"), "421")
			continue
		}
		resp, err := transport.RoundTrip(r)
		require.NoError(t, err)
		require.Equal(t, status, resp.StatusCode, host)
		_ = resp.Body.Close()
	}
}

// sendRaw sends text to a server and returns the first line of the response.
func sendRaw(t *testing.T, address, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, text)
	require.NoError(t, err)
	line, _ := bufio.NewReader(c).ReadString('\n')
	return line
}

func TestServe_RefusesEndlessHeaders(t *testing.T) {
	a := openAccount(t, embedded.Options{})
	line := sendRaw(t, serveAccount(t, a), "GET / HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 80_000)+"\r\n\r\n")
	require.Contains(t, line, "431")
}

func TestPutBlob_LeavesNoDraftIfItIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	a := openAccount(t, embedded.Options{Dir: dir, Containers: []string{"c-c"}})
	address := serveAccount(t, a)
	for _, query := range []string{"", "?comp=block&blockid=MQ=="} {
		r := newSignedRequest(t, a, "PUT", "/devstoreaccount1/c-c/x"+query, strings.Repeat("x", 1000), "x-ms-blob-type: BlockBlob")
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		var head strings.Builder
		fmt.Fprintf(&head, "PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n", r.URL.RequestURI())
		require.NoError(t, r.Header.Write(&head))
		_, err = io.WriteString(c, head.String()+"\r\nhalf")
		require.NoError(t, err)
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		resp, err := http.ReadResponse(bufio.NewReader(c), r)
		require.NoError(t, err)
		require.Equal(t, "InvalidInput", resp.Header.Get("x-ms-error-code"))
		require.NoError(t, c.Close())
	}
	drafts, err := os.ReadDir(filepath.Join(dir, "+unfinished"))
	require.NoError(t, err)
	require.Empty(t, drafts)
	require.Equal(t, 404, statusOf(t, a, "c-c/x"))
}

func TestMaxRequests_RefusesFurtherRequests(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-c"}, MaxRequests: 1})
	c := newClient(t, a, "c-c")
	arriving, reading, stop := newSignedRequest(t, a, "PUT", "/devstoreaccount1/c-c/x", "1", "x-ms-blob-type: BlockBlob"), make(chan struct{}), make(chan struct{})
	arriving.Body = io.NopCloser(&waitingReader{reading, stop})
	statuses := make(chan int)
	go func() {
		resp, err := a.Transport().Do(arriving)
		if err != nil {
			statuses <- 0
			return
		}
		resp.Body.Close()
		statuses <- resp.StatusCode
	}()
	<-reading
	requireRefused(t, uploadBlob(c, "y", "1", nil), 503, bloberror.ServerBusy)
	close(stop)
	require.Equal(t, 201, <-statuses)
	require.NoError(t, uploadBlob(c, "y", "1", nil))
}

// A waitingReader closes reading when it is first read, waits until stop is closed, and then returns one byte.
type waitingReader struct{ reading, stop chan struct{} }

func (w *waitingReader) Read(p []byte) (int, error) {
	close(w.reading)
	<-w.stop
	p[0] = '1'
	return 1, io.EOF
}

func TestMaxRequests_ReservesAQuarterForTransport(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-c"}, MaxRequests: 4})
	c := newClient(t, a, "c-c")
	stop := make(chan struct{})
	var arriving sync.WaitGroup
	for i := range 3 {
		r, reading := newSignedRequest(t, a, "PUT", fmt.Sprintf("/devstoreaccount1/c-c/%d", i), "1", "x-ms-blob-type: BlockBlob"), make(chan struct{})
		r.Body = io.NopCloser(&waitingReader{reading, stop})
		arriving.Go(func() { a.Handler().ServeHTTP(&recorder{header: http.Header{}}, r) })
		<-reading
	}
	one := &recorder{header: http.Header{}}
	a.Handler().ServeHTTP(one, newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c/x", ""))
	require.Equal(t, 503, one.status)
	require.NoError(t, uploadBlob(c, "x", "1", nil), "the request is sent through Transport")
	close(stop)
	arriving.Wait()
}

func TestServe_ClosesIdleConnectionsForNewOnes(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error)
	go func() { served <- a.Serve(context.Background(), l, embedded.ServeOptions{MaxConnections: 4}) }()
	for range 12 { // each client leaves an idle connection behind
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		resp, err := client.Get("http://" + l.Addr().String() + "/devstoreaccount1/c-c/x")
		require.NoError(t, err)
		require.Equal(t, http.StatusForbidden, resp.StatusCode)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	require.NoError(t, a.Close())
	require.NoError(t, <-served)
}

// A drippingReader simulates a slow client: it returns a byte shortly before each deadline.
type drippingReader struct {
	recorder
	deadline time.Time
}

func (d *drippingReader) SetReadDeadline(t time.Time) error {
	d.deadline = t
	return nil
}

func (d *drippingReader) Read(p []byte) (int, error) {
	select {
	case <-time.After(50 * time.Second):
		p[0] = 'x'
		return 1, nil
	case <-time.After(time.Until(d.deadline)):
		return 0, os.ErrDeadlineExceeded
	}
}

func TestServe_EndsSlowClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
		r := newSignedRequest(t, a, "PUT", "/devstoreaccount1/c-c/x", strings.Repeat("x", 10_000), "x-ms-blob-type: BlockBlob")
		client := &drippingReader{recorder: recorder{header: http.Header{}}}
		r.Body = io.NopCloser(client)
		began := time.Now()
		a.Handler().ServeHTTP(client, r)
		require.Equal(t, 400, client.status)
		require.Equal(t, 15*time.Minute, time.Since(began))
	})
}

func TestClosedAccount_RefusesRequests(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error)
	go func() { served <- a.Serve(context.Background(), l, embedded.ServeOptions{}) }()
	require.NoError(t, a.Close())
	require.NoError(t, <-served, "Close ends Serve")
	_, err = a.Transport().Do(newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c/x", ""))
	require.ErrorIs(t, err, embedded.ErrClosed)
	handler := &recorder{header: http.Header{}}
	a.Handler().ServeHTTP(handler, newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c/x", ""))
	require.Equal(t, 503, handler.status)
}

type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }

func TestRequest_EndsWithItsContext(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
	ctx, cancel := context.WithCancel(t.Context())
	c := newClient(t, a, "c-c")
	putBlob(t, c, "x", "data")
	got, err := c.NewBlobClient("x").DownloadStream(ctx, nil)
	require.NoError(t, err)
	cancel()
	_, err = io.ReadAll(got.Body)
	require.ErrorIs(t, err, context.Canceled)
	_, err = a.Transport().Do(newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c/x", "").WithContext(ctx))
	require.ErrorIs(t, err, context.Canceled)
}
