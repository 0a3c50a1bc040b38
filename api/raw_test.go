package api_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dial opens a connection on which a test can violate HTTP.
func (f *hubFixture) dial() *net.TCPConn {
	f.t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(f.t.Context(), "tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// raw sends text unchanged, closes the sending side if end is true, and reads one response.
func (f *hubFixture) raw(text string, end bool) domainAnswer {
	f.t.Helper()
	conn := f.dial()
	if _, err := io.WriteString(conn, text); err != nil {
		f.t.Fatal(err)
	}
	if end {
		if err := conn.CloseWrite(); err != nil {
			f.t.Fatal(err)
		}
	}
	method, rest, _ := strings.Cut(text, " ")
	path, _, _ := strings.Cut(rest, " ")
	req := f.newRequest(method, path, nil)
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	(&validatingTransport{t: f.t}).validate(req, resp, body)
	return domainAnswer{f.t, resp.StatusCode, resp.Header, string(body)}
}

// The names of some headers are spelled exactly as in the original, because the original's clients
// compare them case-sensitively.
func TestHeadersAreSpelledAsTheContractSpellsThem(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1))
	conn := f.dial()
	_, err := io.WriteString(conn, "GET /v1/peek HTTP/1.1\r\nHost: hub\r\nX-Actor-Id: "+actor+"\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(text), "\r\nMessageId: ")
	require.Contains(t, string(text), "\r\nMessageType: NotifyValidatedMeasureData\r\n")
}
