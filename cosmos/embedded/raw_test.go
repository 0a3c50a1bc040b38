package embedded_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// signedRequest returns a signed request with arbitrary headers and body, for requests that azcosmos cannot send. The
// signature covers kind and link.
func signedRequest(t testing.TB, engine *embedded.Engine, method, path, kind, link, body string, header ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(engine.Endpoint(), "/")+path, bytes.NewReader([]byte(body)))
	require.NoError(t, err)
	date := time.Now().UTC().Format(http.TimeFormat)
	req.Header.Set("x-ms-date", date)
	req.Header.Set("x-ms-version", "2020-11-05")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	key, err := base64.StdEncoding.DecodeString(engine.Key())
	require.NoError(t, err)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s\n%s\n%s\n%s\n\n", strings.ToLower(method), kind, link, strings.ToLower(req.Header.Get("x-ms-date")))
	req.Header.Set("Authorization", url.QueryEscape("type=master&ver=1.0&sig="+base64.StdEncoding.EncodeToString(mac.Sum(nil))))
	return req
}

const (
	docsPath      = "/dbs/db/colls/c/docs"
	containerLink = "dbs/db/colls/c"
)

// sendRequest sends a signed request and returns the response and its body.
func sendRequest(t testing.TB, engine *embedded.Engine, req *http.Request) (*http.Response, string) {
	t.Helper()
	answer, err := engine.Transport().Do(req)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer, string(body)
}

func queryRequest(t testing.TB, engine *embedded.Engine, query, params string, header ...string) func() *http.Request {
	body := fmt.Sprintf(`{"query":%q,"parameters":%s}`, query, params)
	header = append([]string{
		"Content-Type", "application/query+json", "x-ms-documentdb-query", "True",
		"x-ms-documentdb-partitionkey", `["p"]`, "x-ms-max-item-count", "-1",
	}, header...)
	req := signedRequest(t, engine, "POST", docsPath, "docs", containerLink, body, header...)
	return func() *http.Request {
		req.Body = io.NopCloser(strings.NewReader(body))
		return req
	}
}

func readRequest(t testing.TB, engine *embedded.Engine) *http.Request {
	return signedRequest(t, engine, "GET", docsPath+"/a", "docs", containerLink+"/docs/a", "", "x-ms-documentdb-partitionkey", `["p"]`)
}
