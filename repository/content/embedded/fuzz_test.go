package embedded

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever a signed request contains, it must get a response, which must not be an internal error.
func FuzzRequests(f *testing.F) {
	f.Add("PUT", "/c-c/x", "", "x-ms-meta-a", "1", "data")
	f.Add("PUT", "/c-c/x", "comp=block&blockid=MQ==", "Content-MD5", "x", "data")
	f.Add("PUT", "/c-c/x", "comp=blocklist", "If-None-Match", "*", "<BlockList><Latest>MQ==</Latest></BlockList>")
	f.Add("GET", "/c-c/x", "", "x-ms-range", "bytes=1-2", "")
	f.Add("GET", "/c-c", "restype=container&comp=list&prefix=x&maxresults=1", "", "", "")
	f.Add("GET", "/c-c", "restype=container&comp=list&delimiter=%2F&include=metadata,copy", "", "", "")
	f.Add("PUT", "/c-c/x", "comp=metadata", "x-ms-meta-Key", "1", "")
	f.Add("PUT", "/c-c/x", "comp=properties", "x-ms-blob-content-type", "a/b", "")
	f.Add("GET", "/c-c/x", "comp=blocklist&blocklisttype=all", "If-None-Match", "1, 2", "")
	f.Add("PUT", "/c-c/y", "", "x-ms-copy-source", "http://embedded.localhost/devstoreaccount1/c-c/x?sp=r", "")
	f.Add("DELETE", "/c-c", "restype=container", "If-Modified-Since", "x", "")
	f.Add("GET", "/", "comp=list&prefix=c&sv=2021-12-02", "", "", "")
	f.Add("PUT", "/c-c/x", "comp=tier", "x-ms-access-tier", "Archive", "")
	f.Add("POST", "/", "comp=batch", "Content-Type", "multipart/mixed; boundary=b", "--b\r\n\r\nDELETE /devstoreaccount1/c-c/x HTTP/1.1\r\n\r\n--b--\r\n")
	f.Add("PUT", "/", "restype=service&comp=properties", "", "", "<StorageServiceProperties><Cors><CorsRule/></Cors></StorageServiceProperties>")
	f.Add("GET", "/c-c/x", "", "x-ms-range-get-content-crc64", "true", "")
	f.Add("GET", "/c-c/x", "sp=r&sv=2015-04-05&sip=1.1.1.1-2.2.2.2", "Range", "bytes=0-", "")
	f.Add("DELETE", "/c-c/../x", "", "If-Match", "1", "")
	key := []byte("key")
	f.Fuzz(func(t *testing.T, method, path, query, header, value, data string) {
		switch http.CanonicalHeaderKey(header) {
		case "X-Ms-Date", "Date":
			return // a request with an invalid date cannot be signed
		}
		a := newAccount(Options{
			Account: WellKnownAccount, Containers: []string{"c-c"}, MaxBlob: 1 << 20, MaxUncommitted: 1 << 20, MaxRequests: 1,
			Clock: time.Now, Logger: slog.New(slog.DiscardHandler),
		}, key, newMemoryStore(1<<20))
		require.NoError(t, a.loadStored())
		for _, path := range []string{"/c-c/x", path} {
			r := newRequest(method, "", data)
			r.URL = &url.URL{Scheme: "http", Host: "embedded.localhost", Path: "/" + WellKnownAccount + path, RawQuery: query}
			r.Header.Set(header, value)
			signed, err := url.ParseQuery(query)
			if err != nil {
				signed = nil
			}
			signRequest(a, r, signed)
			resp, err := a.Transport().Do(r)
			require.NoError(t, err)
			require.Less(t, resp.StatusCode, 502)
			require.NotEqual(t, http.StatusInternalServerError, resp.StatusCode)
			require.Equal(t, resp.StatusCode >= 300, resp.Header.Get("X-Ms-Error-Code") != "")
			require.NoError(t, resp.Body.Close())
			require.NotContains(t, strings.ToLower(resp.Header.Get("X-Ms-Error-Code")), "authentication", "the request was signed")
		}
	})
}
