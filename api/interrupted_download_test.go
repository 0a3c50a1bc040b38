package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// get sends a request on a new connection, and reads the header of the response.
func (f *hubFixture) get(path string, headers ...string) (net.Conn, *http.Response) {
	f.t.Helper()
	conn := f.dial()
	req := "GET " + path + " HTTP/1.1\r\nHost: hub\r\nX-Actor-Id: " + actor + "\r\n"
	for i := 0; i < len(headers); i += 2 {
		req += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	_, err := io.WriteString(conn, req+"\r\n")
	require.NoError(f.t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(f.t, err)
	return conn, resp
}

// A download is interrupted after every 64 KB, and resumed each time. The client receives the whole
// body.
func TestAnInterruptedDownloadContinuesAtItsPosition(t *testing.T) {
	const piece = 64 << 10
	f := serve(t)
	for n := range 40 {
		f.post(202, newEvent(n+1, "weight", 100, "payload", fmt.Sprintf("%d %s", n, strings.Repeat("x", 10_000+n*2_000))), newEvent(n+1001))
	}
	whole := f.do("GET", "/v1/peek", "").wants(200)
	tag, path := whole.header.Get("ETag"), "/v1/bundles/"+whole.header.Get("MessageId")
	for _, path := range []string{path, "/v1/peek", "/API/peek?responseformat=JSON"} {
		t.Run(path, func(t *testing.T) {
			var got strings.Builder
			cuts := 0
			for got.Len() < len(whole.body) {
				conn, resp := f.get(path, "Range", fmt.Sprintf("bytes=%d-", got.Len()), "If-Range", tag, "Accept-Encoding", "gzip")
				require.Equal(t, 206, resp.StatusCode)
				require.Equal(t, fmt.Sprintf("bytes %d-%d/%d", got.Len(), len(whole.body)-1, len(whole.body)), resp.Header.Get("Content-Range"))
				_, err := io.CopyN(&got, resp.Body, min(piece, int64(len(whole.body)-got.Len())))
				require.NoError(t, err)
				require.NoError(t, conn.(*net.TCPConn).SetLinger(0))
				require.NoError(t, conn.Close())
				cuts++
			}
			require.Greater(t, cuts, 20)
			if got.String() != whole.body {
				t.Fatal("the pieces are not the whole")
			}
		})
	}
}

// A client that never reads the response takes the memory of one part of the body, and not of the
// whole body. Tests in deadline_test.go require that it is disconnected at the deadline.
func TestReaders_ThatNeverReadTakeLittleMemory(t *testing.T) {
	const readers = 12
	f := serve(t)
	f.postPayloads(50) // 50 MB, which is the size limit of a bundle
	f.do("GET", "/v1/peek", "", "Range", "bytes=0-0").wants(206)
	before := heap()
	for range readers {
		_, resp := f.get("/v1/peek")
		require.Equal(t, 200, resp.StatusCode)
		_, err := io.ReadFull(resp.Body, make([]byte, 1<<10)) // the response body has started
		require.NoError(t, err)
	}
	require.Less(t, heap()-before, int64(16<<20), "while %d readers hold up 50 MB each", readers)
}

// heap returns the bytes of heap memory in use after a garbage collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
