package embedded_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

// linkTo returns the query of a link, signed by Azure's client.
func linkTo(t *testing.T, a *embedded.Account, change func(*sas.BlobSignatureValues)) string {
	t.Helper()
	key, err := service.NewSharedKeyCredential(a.Name(), a.Key())
	require.NoError(t, err)
	values := sas.BlobSignatureValues{ExpiryTime: time.Now().UTC().Add(time.Hour), Permissions: "r", ContainerName: "c-c", BlobName: "dir/a b+é%"}
	change(&values)
	query, err := values.SignWithSharedKey(key)
	require.NoError(t, err)
	return query.Encode()
}

const linkedPath = "/devstoreaccount1/c-c/dir/a%20b+%C3%A9%25"

// followLink sends an unsigned request.
func followLink(t *testing.T, a *embedded.Account, method, path, query string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(a.Endpoint(), "/"+a.Name())+path+"?"+query, http.NoBody)
	require.NoError(t, err)
	answer, err := a.Transport().Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(body), answer.Header
}

func TestSharedAccess_ReadsOneBlob(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		putBlob(t, newClient(t, a, "c-c"), "dir/a b+é%", "data")
		link := linkTo(t, a, func(v *sas.BlobSignatureValues) {
			v.StartTime = time.Now().UTC().Add(-time.Minute)
			v.ContentDisposition, v.ContentType, v.ContentEncoding = `attachment; filename="a;b=c&d"`, "text/x-test", "identity"
			v.CacheControl, v.ContentLanguage = "no-store", "da"
		})
		for method, want := range map[string]string{"GET": "data", "HEAD": ""} {
			status, body, header := followLink(t, a, method, linkedPath, link)
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, want, body)
			require.Equal(t, "4", header.Get("Content-Length"))
			for name, want := range map[string]string{
				"Content-Disposition": `attachment; filename="a;b=c&d"`, "Content-Type": "text/x-test", "Content-Encoding": "identity",
				"Cache-Control": "no-store", "Content-Language": "da",
			} {
				require.Equal(t, want, header.Get(name))
			}
		}
	})
}

func TestSharedAccess_PermitsOnlyReading(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
	c := newClient(t, a, "c-c")
	putBlob(t, c, "dir/a b+é%", "data")
	putBlob(t, c, "other", "data")
	plain := func(*sas.BlobSignatureValues) {}
	good := linkTo(t, a, plain)
	parameters, err := url.ParseQuery(good)
	require.NoError(t, err)
	// with returns the valid link with changed parameters and the old signature.
	with := func(change func(url.Values)) string {
		q, err := url.ParseQuery(good)
		require.NoError(t, err)
		change(q)
		return q.Encode()
	}
	// signed returns a link with a valid signature, with any parameters.
	signed := func(changes map[string]string) string {
		q := url.Values{"sp": {"r"}, "se": {parameters.Get("se")}, "sv": {"2021-12-02"}, "sr": {"b"}}
		for name, value := range changes {
			q.Set(name, value)
		}
		key, err := base64.StdEncoding.DecodeString(a.Key())
		require.NoError(t, err)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(strings.Join([]string{
			q.Get("sp"), q.Get("st"), q.Get("se"), "/blob/devstoreaccount1/c-c/dir/a b+é%", q.Get("si"), q.Get("sip"), q.Get("spr"), q.Get("sv"), q.Get("sr"), "", "", "", "", "", "", "",
		}, "\n")))
		q.Set("sig", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		return q.Encode()
	}
	status, _, _ := followLink(t, a, "GET", linkedPath, signed(nil))
	require.Equal(t, http.StatusOK, status, "what the others change is right")
	for name, tc := range map[string]struct{ method, path, query string }{
		"another blob":          {"GET", "/devstoreaccount1/c-c/other", good},
		"the container":         {"GET", "/devstoreaccount1/c-c", good},
		"a list":                {"GET", "/devstoreaccount1/c-c", "restype=container&comp=list&" + good},
		"a write":               {"PUT", linkedPath, good},
		"a deletion":            {"DELETE", linkedPath, good},
		"another key":           {"GET", linkedPath, linkTo(t, openAccount(t, embedded.Options{Key: "b3RoZXI="}), plain)},
		"another header":        {"GET", linkedPath, with(func(q url.Values) { q.Set("rscd", "inline") })},
		"a later end":           {"GET", linkedPath, with(func(q url.Values) { q.Set("se", "2999-01-01T00:00:00Z") })},
		"no end":                {"GET", linkedPath, signed(map[string]string{"se": ""})},
		"no signature":          {"GET", linkedPath, with(func(q url.Values) { q.Set("sig", "") })},
		"no base64":             {"GET", linkedPath, with(func(q url.Values) { q.Set("sig", "%") })},
		"two signatures":        {"GET", linkedPath, good + "&sig=x"},
		"an end in the past":    {"GET", linkedPath, linkTo(t, a, func(v *sas.BlobSignatureValues) { v.ExpiryTime = time.Now().UTC().Add(-time.Second) })},
		"a start that is ahead": {"GET", linkedPath, linkTo(t, a, func(v *sas.BlobSignatureValues) { v.StartTime = time.Now().UTC().Add(time.Hour) })},
		"https alone":           {"GET", linkedPath, linkTo(t, a, func(v *sas.BlobSignatureValues) { v.Protocol = sas.ProtocolHTTPS })},
		"more permissions":      {"GET", linkedPath, linkTo(t, a, func(v *sas.BlobSignatureValues) { v.Permissions = "rd" })},
		"a container's":         {"GET", linkedPath, linkTo(t, a, func(v *sas.BlobSignatureValues) { v.BlobName = "" })},
		"a policy":              {"GET", linkedPath, signed(map[string]string{"si": "x"})},
		"a range of addresses":  {"GET", linkedPath, signed(map[string]string{"sip": "127.0.0.1"})},
		"an old version":        {"GET", linkedPath, signed(map[string]string{"sv": "2018-11-09"})},
	} {
		status, body, header := followLink(t, a, tc.method, tc.path, tc.query)
		require.Equal(t, http.StatusForbidden, status, "%s: %s", name, body)
		require.Equal(t, "AuthenticationFailed", header.Get("x-ms-error-code"), name)
		require.NotContains(t, body, "data", name)
	}
	status, _, _ = followLink(t, a, "GET", "/devstoreaccount1/c-c/dir/a%20b+%C3%A9%25", good)
	require.Equal(t, http.StatusOK, status)
	_, err = c.NewBlobClient("dir/a b+é%").Delete(t.Context(), nil)
	require.NoError(t, err)
	status, _, header := followLink(t, a, "GET", linkedPath, good)
	require.Equal(t, http.StatusNotFound, status)
	require.Equal(t, "BlobNotFound", header.Get("x-ms-error-code"))
}
