package api_test

import (
	"bufio"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPeek_IsAnsweredWhileOtherConnectionsReadNothing(t *testing.T) {
	f := serve(t)
	n := 0
	for _, actor := range []string{"first", "second"} {
		for range 8 { // together, these bundles exceed the buffers of a connection
			n++
			f.post(202, bigEvent(n, actor))
		}
	}
	f.post(202, newEvent(n+1))
	for range 20 {
		for _, actor := range []string{"first", "second"} {
			conn := f.dial()
			require.NoError(t, conn.SetReadBuffer(4<<10))
			_, err := io.WriteString(conn, peekAs(actor))
			require.NoError(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode, "its body is not read")
		}
	}
	for range 20 {
		f.do("GET", "/v1/peek", "").wants(200)
	}
	require.Regexp(t, "messagehub_http_requests_in_flight 4[1-9]", f.do("GET", "/metrics", "").body, "none of the 40 has ended")
}
