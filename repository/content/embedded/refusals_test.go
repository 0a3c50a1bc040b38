package embedded_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

func TestRequests_MustBeSignedWithTheKeyOfTheAccount(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
	other := openAccount(t, embedded.Options{Key: "b3RoZXI=", Account: "other"})
	const path = "/devstoreaccount1/c-c/x"
	signed := func(change func(*http.Request)) *http.Request {
		r := newSignedRequest(t, a, "PUT", path, "data", "x-ms-blob-type: BlockBlob", "x-ms-meta-a: 1")
		change(r)
		return r
	}
	status, _, _ := sendRequest(t, a, signed(func(*http.Request) {}))
	require.Equal(t, http.StatusCreated, status)
	for what, r := range map[string]*http.Request{
		"no signature":         signed(func(r *http.Request) { r.Header.Del("Authorization") }),
		"no scheme":            signed(func(r *http.Request) { r.Header.Set("Authorization", "x") }),
		"a token":              signed(func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }),
		"the lite scheme":      signed(func(r *http.Request) { r.Header.Set("Authorization", "SharedKeyLite devstoreaccount1:eA==") }),
		"an empty signature":   signed(func(r *http.Request) { r.Header.Set("Authorization", "SharedKey devstoreaccount1:") }),
		"no base64":            signed(func(r *http.Request) { r.Header.Set("Authorization", "SharedKey devstoreaccount1:%") }),
		"another key":          signed(func(r *http.Request) { signRequest(t, other, r) }),
		"another account":      signed(func(r *http.Request) { r.Header.Set("Authorization", "SharedKey other:eA==") }),
		"another method":       signed(func(r *http.Request) { r.Method = "DELETE" }),
		"another blob":         signed(func(r *http.Request) { r.URL.Path += "y" }),
		"one more header":      signed(func(r *http.Request) { r.Header.Set("x-ms-meta-b", "2") }),
		"another header":       signed(func(r *http.Request) { r.Header.Set("x-ms-meta-a", "2") }),
		"one more parameter":   signed(func(r *http.Request) { r.URL.RawQuery = "timeout=1" }),
		"a condition":          signed(func(r *http.Request) { r.Header.Set("If-Match", "*") }),
		"another length":       signed(func(r *http.Request) { r.ContentLength = 3 }),
		"a date of yesterday":  signed(func(r *http.Request) { signAt(t, a, r, time.Now().Add(-24*time.Hour)) }),
		"a date of tomorrow":   signed(func(r *http.Request) { signAt(t, a, r, time.Now().Add(24*time.Hour)) }),
		"no date":              signed(func(r *http.Request) { r.Header.Del("x-ms-date"); signRequest(t, a, r) }),
		"a shared access link": signed(func(r *http.Request) { r.Header.Del("Authorization"); r.URL.RawQuery = "sv=2024-11-04&sp=r&sig=eA" }),
	} {
		status, code, _ := sendRequest(t, a, r)
		require.Equal(t, http.StatusForbidden, status, what)
		require.Equal(t, "AuthenticationFailed", code, what)
	}
}

func TestRefusal_NamesItsReasonInTheErrorDetail(t *testing.T) {
	a := openAccount(t, embedded.Options{})
	of := func(r *http.Request) string {
		_, _, resp := sendRequest(t, a, r)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(text)
	}
	require.Contains(t, of(newSignedRequest(t, a, "POST", "/devstoreaccount1/?restype=service&comp=userdelegationkey", "")),
		"<AuthenticationErrorDetail>Only authentication scheme Bearer is supported</AuthenticationErrorDetail>")
	other := newSignedRequest(t, a, "GET", "/other/?comp=list", "")
	other.Header.Set("Authorization", "SharedKey other:eA==")
	require.Contains(t, of(other), "<Code>ResourceNotFound</Code>", "the account is checked first")
}

func signAt(t *testing.T, a *embedded.Account, r *http.Request, at time.Time) {
	r.Header.Set("x-ms-date", at.UTC().Format(http.TimeFormat))
	signRequest(t, a, r)
}

// The account must refuse unsupported headers and parameters that could change the meaning of a request.
func TestUnsupportedRequests_AreRefused(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
	const of, c, x = "/devstoreaccount1", "/devstoreaccount1/c-c", "/devstoreaccount1/c-c/x"
	for _, tc := range []struct {
		method, path, header string
		status               int
		code                 string
	}{
		{"GET", c, "", 501, "NotImplemented"},
		{"GET", c + "/", "", 400, "InvalidUri"},
		{"PUT", x, "x-ms-blob-type: AppendBlob", 501, "NotImplemented"},
		{"PUT", x, "x-ms-blob-type: PageBlob", 501, "NotImplemented"},
		{"PUT", x, "", 501, "NotImplemented"},
		{"PUT", x, "x-ms-lease-id: 1", 400, "UnsupportedHeader"},
		{"PUT", x, "x-ms-encryption-key: 1", 400, "UnsupportedHeader"},
		{"PUT", x, "x-ms-tags: a=b", 400, "UnsupportedHeader"},
		{"GET", x, "x-ms-if-tags: a='b'", 400, "UnsupportedHeader"},
		{"PUT", x + "?comp=lease", "x-ms-lease-action: acquire", 501, "NotImplemented"},
		{"PUT", x + "?comp=tags", "", 501, "NotImplemented"},
		{"PUT", x + "?comp=block&blockid=MQ==", "x-ms-copy-source: http://other/", 501, "NotImplemented"},
		{"PUT", x, "x-ms-source-if-match: 1", 400, "UnsupportedHeader"},
		{"GET", x, "x-ms-copy-source: http://other/", 400, "UnsupportedHeader"},
		{"PUT", c + "?restype=container&comp=acl", "", 501, "NotImplemented"},
		{"PUT", x + "?comp=snapshot", "", 501, "NotImplemented"},
		{"PUT", x + "?comp=appendblock", "", 501, "NotImplemented"},
		{"GET", x + "?comp=blocklist", "", 404, "BlobNotFound"},
		{"GET", x + "?comp=blocklist&blocklisttype=some", "", 400, "InvalidQueryParameterValue"},
		{"GET", x + "?snapshot=2024-01-01", "", 400, "UnsupportedQueryParameter"},
		{"GET", x + "?versionid=1", "", 400, "UnsupportedQueryParameter"},
		{"DELETE", x, "x-ms-delete-snapshots: only", 501, "NotImplemented"},
		{"POST", x, "", 501, "NotImplemented"},
		{"GET", x + "?a=%zz", "", 400, "InvalidUri"},
		{"GET", "/other/c-c/x", "", 404, "ResourceNotFound"},
		{"GET", "/", "", 404, "ResourceNotFound"},
		{"DELETE", x, "If-Match: \"1\", \"2\"", 404, "BlobNotFound"},
		{"GET", x, "If-Match: " + strings.Repeat("1,", 101), 400, "InvalidHeaderValue"},
		{"GET", x, "If-Modified-Since: yesterday", 400, "InvalidHeaderValue"},
		{"PUT", x, "x-ms-meta-a-b: 1", 400, "InvalidMetadata"},
		{"PUT", x, "x-ms-meta-a: " + strings.Repeat("x", 9<<10), 400, "MetadataTooLarge"},
		{"PUT", x, "x-ms-blob-content-type: " + strings.Repeat("x", 2<<10), 400, "InvalidHeaderValue"},
		{"PUT", c + "/" + strings.Repeat("x", 1025), "", 400, "InvalidUri"},
		{"PUT", c + "/%00", "", 400, "InvalidUri"},
		{"PUT", c + "/%ff", "", 400, "InvalidUri"},
		{"PUT", c + "/%EF%BF%BE", "", 400, "InvalidUri"},
	} {
		r := newSignedRequest(t, a, tc.method, tc.path, "")
		if name, value, ok := strings.Cut(tc.header, ": "); ok {
			r.Header.Set(name, value)
			if strings.Contains(tc.header, "x-ms-meta") || strings.Contains(tc.header, "content-type") {
				r.Header.Set("x-ms-blob-type", "BlockBlob")
			}
			signRequest(t, a, r)
		}
		if strings.Contains(tc.path, "%zz") {
			r.URL.RawQuery = "a=%zz"
		}
		status, code, resp := sendRequest(t, a, r)
		require.Equal(t, tc.status, status, "%s %.60s %.60s: %s", tc.method, tc.path, tc.header, code)
		require.Equal(t, tc.code, code, "%s %.60s %.60s", tc.method, tc.path, tc.header)
		require.NotEmpty(t, resp.Header.Get("x-ms-request-id"))
	}
	chunked := newSignedRequest(t, a, "PUT", x, "data", "x-ms-blob-type: BlockBlob")
	chunked.ContentLength = -1
	signRequest(t, a, chunked)
	status, code, _ := sendRequest(t, a, chunked)
	require.Equal(t, 411, status)
	require.Equal(t, "MissingContentLengthHeader", code)
}
