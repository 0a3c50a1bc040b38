package embedded_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

// linkTo returns a URL query with a shared access signature that Azure's client has signed.
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

// followLink sends a request without an Authorization header. query usually contains a shared access signature.
func followLink(t *testing.T, a *embedded.Account, method, path, query string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(a.Endpoint(), "/"+a.Name())+path+"?"+query, http.NoBody)
	require.NoError(t, err)
	resp, err := a.Transport().Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body), resp.Header
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

func TestSharedAccess_NamesTheReasonOfARefusal(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
	c := newClient(t, a, "c-c")
	putBlob(t, c, "dir/a b+é%", "data")
	putBlob(t, c, "other", "data")
	plain := func(*sas.BlobSignatureValues) {}
	good := linkTo(t, a, plain)
	parameters, err := url.ParseQuery(good)
	require.NoError(t, err)
	// with returns the query with changed parameters but the old signature.
	with := func(change func(url.Values)) string {
		q, err := url.ParseQuery(good)
		require.NoError(t, err)
		change(q)
		return q.Encode()
	}
	// signed returns the query with changed parameters and a new signature.
	signed := func(changes map[string]string) string {
		q := url.Values{"sp": {"r"}, "se": {parameters.Get("se")}, "sv": {"2021-12-02"}, "sr": {"b"}}
		for name, value := range changes {
			q.Set(name, value)
		}
		key, err := base64.StdEncoding.DecodeString(a.Key())
		require.NoError(t, err)
		mac := hmac.New(sha256.New, key)
		lines := []string{
			q.Get("sp"), q.Get("st"), q.Get("se"), "/blob/devstoreaccount1/c-c/dir/a b+é%", q.Get("si"), q.Get("sip"), q.Get("spr"), q.Get("sv"), q.Get("sr"), "", "", "", "", "", "", "",
		}
		if q.Get("sv") < "2020-12-06" {
			lines = lines[:len(lines)-1] // older versions do not sign the encryption scope
		}
		if q.Get("sv") < "2018-11-09" {
			lines = slices.Delete(lines, 8, 10) // older versions sign neither the kind of resource nor the snapshot
		}
		mac.Write([]byte(strings.Join(lines, "\n")))
		q.Set("sig", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		return q.Encode()
	}
	status, _, _ := followLink(t, a, "GET", linkedPath, signed(nil))
	require.Equal(t, http.StatusOK, status, "the unchanged query is valid")
	for _, version := range []string{"2015-04-05", "2017-11-09", "2018-11-09", "2020-10-02", "2020-12-06", "2025-01-05"} {
		status, _, _ := followLink(t, a, "GET", linkedPath, signed(map[string]string{"sv": version}))
		require.Equal(t, http.StatusOK, status, version)
	}
	for _, addresses := range []string{"127.0.0.1", "0.0.0.0-255.255.255.255", "127.0.0.1-127.0.0.2"} {
		status, body, _ := followLink(t, a, "GET", linkedPath, signed(map[string]string{"sip": addresses}))
		require.Equal(t, http.StatusOK, status, "%s: %s", addresses, body)
	}
	const failed, mismatch = "AuthenticationFailed", "AuthorizationPermissionMismatch"
	for name, tc := range map[string]struct{ method, path, query, code, says string }{
		"another blob":          {"GET", "/devstoreaccount1/c-c/other", good, failed, "signature is not that"},
		"the container":         {"GET", "/devstoreaccount1/c-c", good, "AuthorizationResourceTypeMismatch", "for a blob (sr=b)"},
		"a list":                {"GET", "/devstoreaccount1/c-c", "restype=container&comp=list&" + good, "AuthorizationResourceTypeMismatch", "for a blob (sr=b)"},
		"a write":               {"PUT", linkedPath, good, mismatch, "needs c or w"},
		"a deletion":            {"DELETE", linkedPath, good, mismatch, "needs d"},
		"metadata":              {"PUT", linkedPath, "comp=metadata&" + good, mismatch, "needs w"},
		"another key":           {"GET", linkedPath, linkTo(t, openAccount(t, embedded.Options{Key: "b3RoZXI="}), plain), failed, "signature is not that"},
		"another header":        {"GET", linkedPath, with(func(q url.Values) { q.Set("rscd", "inline") }), failed, "signature is not that"},
		"a later end":           {"GET", linkedPath, with(func(q url.Values) { q.Set("se", "2999-01-01T00:00:00Z") }), failed, "signature is not that"},
		"no end":                {"GET", linkedPath, signed(map[string]string{"se": ""}), failed, "has no se"},
		"no version":            {"GET", linkedPath, signed(map[string]string{"sv": ""}), failed, "has no sv"},
		"no signature":          {"GET", linkedPath, with(func(q url.Values) { q.Del("sig") }), failed, "has no sig"},
		"no base64":             {"GET", linkedPath, with(func(q url.Values) { q.Set("sig", "%") }), failed, "not base64"},
		"two signatures":        {"GET", linkedPath, good + "&sig=x", failed, "has sig twice"},
		"an end in the past":    {"GET", linkedPath, linkTo(t, a, func(v *sas.BlobSignatureValues) { v.ExpiryTime = time.Now().UTC().Add(-time.Second) }), failed, "has expired at"},
		"no time":               {"GET", linkedPath, signed(map[string]string{"se": "soon"}), failed, "not a time"},
		"a start that is ahead": {"GET", linkedPath, linkTo(t, a, func(v *sas.BlobSignatureValues) { v.StartTime = time.Now().UTC().Add(time.Hour) }), failed, "not valid before"},
		"https alone":           {"GET", linkedPath, linkTo(t, a, func(v *sas.BlobSignatureValues) { v.Protocol = sas.ProtocolHTTPS }), "AuthorizationProtocolMismatch", "https only"},
		"a snapshot":            {"GET", linkedPath, signed(map[string]string{"sr": "bs"}), failed, "snapshot"},
		"a policy":              {"GET", linkedPath, signed(map[string]string{"si": "x"}), failed, "stored access policy"},
		"a user's key":          {"GET", linkedPath, signed(map[string]string{"skoid": "x"}), failed, "(skoid)"},
		"another address":       {"GET", linkedPath, signed(map[string]string{"sip": "127.0.0.2-127.0.0.9"}), "AuthorizationSourceIPMismatch", "comes from 127.0.0.1"},
		"a changed address":     {"GET", linkedPath, with(func(q url.Values) { q.Set("sip", "127.0.0.1") }), failed, "signature is not that"},
		"no address":            {"GET", linkedPath, signed(map[string]string{"sip": "here"}), failed, "want an IPv4 address"},
		"an old version":        {"GET", linkedPath, signed(map[string]string{"sv": "2014-02-14"}), failed, "2015-04-05"},
		"no access":             {"GET", linkedPath, "", failed, "neither a header Authorization nor a shared access signature"},
	} {
		status, body, header := followLink(t, a, tc.method, tc.path, tc.query)
		require.Equal(t, http.StatusForbidden, status, "%s: %s", name, body)
		require.Equal(t, tc.code, header.Get("x-ms-error-code"), name)
		require.Contains(t, body, tc.says, name)
		require.NotContains(t, body, ">data", name)
	}
	status, _, _ = followLink(t, a, "GET", "/devstoreaccount1/c-c/dir/a%20b+%C3%A9%25", good)
	require.Equal(t, http.StatusOK, status)
	_, err = c.NewBlobClient("dir/a b+é%").Delete(t.Context(), nil)
	require.NoError(t, err)
	status, _, header := followLink(t, a, "GET", linkedPath, good)
	require.Equal(t, http.StatusNotFound, status)
	require.Equal(t, "BlobNotFound", header.Get("x-ms-error-code"))
}

// newLinkedClient returns a client of the container c-c that authenticates only with a shared access signature.
func newLinkedClient(t *testing.T, a *embedded.Account, query string) *container.Client {
	t.Helper()
	c, err := container.NewClientWithNoCredential(a.Endpoint()+"/c-c?"+query, &container.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: a.Transport(), Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	require.NoError(t, err)
	return c
}

func TestSharedAccess_OfAContainerPermitsItsPermissions(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		putBlob(t, newClient(t, a, "c-c"), "old", "data")
		with := func(permissions string) *container.Client {
			return newLinkedClient(t, a, linkTo(t, a, func(v *sas.BlobSignatureValues) { v.BlobName, v.Permissions = "", permissions }))
		}
		get := func(c *container.Client) error {
			got, err := c.NewBlobClient("old").DownloadStream(t.Context(), nil)
			if err != nil {
				return err
			}
			return got.Body.Close()
		}
		list := func(c *container.Client) error {
			_, err := c.NewListBlobsFlatPager(nil).NextPage(t.Context())
			return err
		}
		remove := func(c *container.Client) error {
			_, err := c.NewBlobClient("old").Delete(t.Context(), nil)
			return err
		}
		write := func(c *container.Client) error { return uploadBlob(c, "old", "new", nil) }
		create := func(c *container.Client) error { return uploadBlob(c, "new", "new", nil) }
		block := func(c *container.Client) error { return stageBlock(c, "x", "1", "data") }
		drop := func(c *container.Client) error {
			_, err := c.Delete(t.Context(), nil)
			return err
		}
		require.NoError(t, get(with("r")))
		require.NoError(t, list(with("l")))
		require.NoError(t, create(with("c")))
		requireRefused(t, create(with("c")), 403, bloberror.UnauthorizedBlobOverwrite)
		require.NoError(t, write(with("w")))
		require.NoError(t, block(with("w")))
		const mismatch = bloberror.AuthorizationPermissionMismatch
		requireRefused(t, get(with("cwdl")), 403, mismatch)
		requireRefused(t, list(with("rcwd")), 403, mismatch)
		requireRefused(t, write(with("rdl")), 403, mismatch)
		requireRefused(t, block(with("rcdl")), 403, mismatch)
		requireRefused(t, remove(with("rcwl")), 403, mismatch)
		requireRefused(t, drop(with("rcwdl")), 403, bloberror.AuthorizationFailure)

		all := with("rcwdl")
		source := newClient(t, a, "c-c").NewBlobClient("old")
		_, err := all.NewBlobClient("copied").StartCopyFromURL(t.Context(), source.URL(), nil)
		requireRefused(t, err, 403, bloberror.CannotVerifyCopySource)
		_, err = all.NewBlobClient("copied").StartCopyFromURL(t.Context(), with("w").NewBlobClient("old").URL(), nil)
		requireRefused(t, err, 403, bloberror.CannotVerifyCopySource)
		_, err = all.NewBlobClient("copied").StartCopyFromURL(t.Context(), with("r").NewBlobClient("old").URL(), nil)
		require.NoError(t, err)
		about, err := all.NewBlobClient("copied").GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, source.URL(), *about.CopySource, "without the signature")
		require.NoError(t, remove(with("d")))
		other, err := container.NewClientWithNoCredential(a.Endpoint()+"/other?"+linkTo(t, a, func(v *sas.BlobSignatureValues) { v.BlobName = "" }), &container.ClientOptions{
			ClientOptions: azcore.ClientOptions{Transport: a.Transport(), Retry: policy.RetryOptions{MaxRetries: -1}},
		})
		require.NoError(t, err)
		requireRefused(t, get(other), 403, bloberror.AuthenticationFailed)
	})
}

func TestSharedAccess_OfTheAccountPermitsItsResources(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
	putBlob(t, newClient(t, a, "c-c"), "x", "data")
	key, err := service.NewSharedKeyCredential(a.Name(), a.Key())
	require.NoError(t, err)
	with := func(permissions, resources string) string {
		query, err := sas.AccountSignatureValues{IPRange: sas.IPRange{Start: net.IPv4(127, 0, 0, 1), End: net.IPv4(127, 0, 0, 9)}, ExpiryTime: time.Now().UTC().Add(time.Hour), Permissions: permissions, ResourceTypes: resources}.SignWithSharedKey(key)
		require.NoError(t, err)
		return query.Encode()
	}
	for name, tc := range map[string]struct {
		method, path, query string
		status              int
		code                string
	}{
		"a list of containers":        {"GET", "/devstoreaccount1", "comp=list&" + with("l", "s"), 200, ""},
		"without service":             {"GET", "/devstoreaccount1", "comp=list&" + with("l", "co"), 403, "AuthorizationResourceTypeMismatch"},
		"a list of blobs":             {"GET", "/devstoreaccount1/c-c", "restype=container&comp=list&" + with("l", "c"), 200, ""},
		"a blob":                      {"GET", "/devstoreaccount1/c-c/x", with("r", "o"), 200, ""},
		"without object":              {"GET", "/devstoreaccount1/c-c/x", with("r", "sc"), 403, "AuthorizationResourceTypeMismatch"},
		"without reading":             {"GET", "/devstoreaccount1/c-c/x", with("l", "sco"), 403, "AuthorizationPermissionMismatch"},
		"without creating":            {"PUT", "/devstoreaccount1/c-d", "restype=container&" + with("rdl", "sco"), 403, "AuthorizationPermissionMismatch"},
		"a container":                 {"PUT", "/devstoreaccount1/c-d", "restype=container&" + with("c", "c"), 201, ""},
		"deletion without permission": {"DELETE", "/devstoreaccount1/c-c", "restype=container&" + with("rcwl", "sco"), 403, "AuthorizationPermissionMismatch"},
		"the account":                 {"GET", "/devstoreaccount1", "restype=account&comp=properties&" + with("r", "s"), 200, ""},
		"another service":             {"GET", "/devstoreaccount1/c-c/x", strings.Replace(with("r", "o"), "ss=b", "ss=q", 1), 403, "AuthorizationServiceMismatch"},
	} {
		status, body, header := followLink(t, a, tc.method, tc.path, tc.query)
		require.Equal(t, tc.status, status, "%s: %s", name, body)
		require.Equal(t, tc.code, header.Get("x-ms-error-code"), name)
	}
}
