package embedded_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/certificate"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

// exchangeRaw sends a request without changing the case of header names, and returns the head of the response as lines.
// extra contains header lines that replace those of r.
func exchangeRaw(t *testing.T, conn net.Conn, r *http.Request, extra string) []string {
	t.Helper()
	var head strings.Builder
	fmt.Fprintf(&head, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n", r.Method, r.URL.RequestURI(), r.ContentLength)
	for name, values := range r.Header {
		if !strings.Contains(strings.ToLower(extra), strings.ToLower(name)+":") {
			fmt.Fprintf(&head, "%s: %s\r\n", name, values[0])
		}
	}
	_, err := io.WriteString(conn, head.String()+extra+"\r\n")
	require.NoError(t, err)
	_, err = io.Copy(conn, r.Body)
	require.NoError(t, err)
	lines := bufio.NewReader(conn)
	var resp []string
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if line == "\r\n" {
			break
		}
		resp = append(resp, strings.TrimSpace(line))
	}
	return resp
}

func TestMetadata_KeepsItsNamesAsSent(t *testing.T) {
	dir := t.TempDir()
	cert, err := certificate.Load(dir, "localhost")
	require.NoError(t, err)
	for name, config := range map[string]*tls.Config{"HTTP": nil, "HTTPS": cert.Config()} {
		t.Run(name, func(t *testing.T) {
			a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			served := make(chan error, 1)
			go func() { served <- a.Serve(t.Context(), l, embedded.ServeOptions{TLS: config}) }()
			t.Cleanup(func() { require.NoError(t, <-served) })
			conn, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			if config != nil {
				conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
			}
			const path = "/devstoreaccount1/c-c/x"
			for _, meta := range []string{"x-ms-meta-myKey", "X-MS-META-Other_KEY"} {
				// One line of the body looks like a header.
				put := newSignedRequest(t, a, "PUT", path, "a\r\nX-Ms-Meta-MYKEY: 2\r\n\r\n", "x-ms-blob-type: BlockBlob", meta+": 1")
				require.Contains(t, exchangeRaw(t, conn, put, meta+": 1\r\n")[0], "201")
				want := "x-ms-meta-" + meta[len("x-ms-meta-"):]
				head := exchangeRaw(t, conn, newSignedRequest(t, a, "HEAD", path, ""), "")
				require.Contains(t, head, want+": 1")
				require.Contains(t, head, "x-ms-blob-type: BlockBlob", "Azure returns this name in lower case")
			}
		})
	}
}

func TestMetadata_KeepsItsNamesWithTransport(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		r := newSignedRequest(t, a, "PUT", "/devstoreaccount1/c-c/x", "data", "x-ms-blob-type: BlockBlob", "x-ms-meta-mykey: 1")
		r.Header["x-ms-meta-myKey"] = r.Header["X-Ms-Meta-Mykey"]
		delete(r.Header, "X-Ms-Meta-Mykey")
		status, code, _ := sendRequest(t, a, r)
		require.Equal(t, 201, status, code)
		_, _, resp := sendRequest(t, a, newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c?restype=container&comp=list&include=metadata", ""))
		list, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Contains(t, string(list), "<myKey>1</myKey>")
	})
}

func TestServe_RefusesPlainRequestsToHTTPS(t *testing.T) {
	cert, err := certificate.Load(t.TempDir(), "localhost")
	require.NoError(t, err)
	a := openAccount(t, embedded.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- a.Serve(t.Context(), l, embedded.ServeOptions{TLS: cert.Config()}) }()
	t.Cleanup(func() { require.NoError(t, <-served) })
	require.Contains(t, sendRaw(t, l.Addr().String(), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), "400")
}
