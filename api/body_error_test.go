package api_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/hub"
)

// malformedChunks contains chunked bodies that violate RFC 9112, each in a different place.
var malformedChunks = map[string]string{
	"a size that is no number":     "zz\r\n[]\r\n0\r\n\r\n",
	"no size":                      "\r\n[]\r\n0\r\n\r\n",
	"a size that overflows":        "fffffffffffffffff\r\n[]\r\n0\r\n\r\n",
	"a chunk longer than its size": "1\r\n[]\r\n0\r\n\r\n",
	"a line without CR":            "2\n[]\r\n0\r\n\r\n",
	"a CR inside of a line":        "2\r;x\r\n[]\r\n0\r\n\r\n",
	"a malformed trailer":          "2\r\n[]\r\n0\r\nno colon\r\n\r\n",
}

func TestBody_WithMalformedChunksIs400(t *testing.T) {
	f := serve(t, func(o *api.Options, _ *hub.Options) { o.AdminToken = token })
	for name, chunks := range malformedChunks {
		for path, method := range map[string]string{"/v1/data-available": "POST", "/v1/admin/queues/a/freeze": "POST"} {
			t.Run(name+" "+path, func(t *testing.T) {
				f.t = t
				a := f.raw(method+" "+path+" HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nAuthorization: Bearer "+token+
					"\r\nTransfer-Encoding: chunked\r\n\r\n"+chunks, false)
				require.Contains(t, a.problem(400, "invalid").Detail, "chunked transfer coding")
			})
		}
	}
	require.NotContains(t, f.logs.String(), `"level":"ERROR"`)
}

func TestBody_ResetConnectionIsNotAHubError(t *testing.T) {
	f := serve(t)
	conn := f.dial()
	_, err := io.WriteString(conn, "POST /v1/data-available HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nContent-Length: 5000\r\nExpect: 100-continue\r\n\r\n")
	require.NoError(t, err)
	_, err = io.ReadFull(conn, make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))) // with this response, the hub has begun to read the body
	require.NoError(t, err)
	require.NoError(t, conn.SetLinger(0))
	require.NoError(t, conn.Close())
	f.logs.wait(t, `"problem":"body-cut"`)
	require.NotContains(t, f.logs.String(), `"level":"ERROR"`)
}
