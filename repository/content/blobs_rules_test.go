package content_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/content"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

func TestErrorResponses_HaveTheirKinds(t *testing.T) {
	for _, tc := range []struct {
		status int
		code   string
		kind   domain.Kind
		says   string
	}{
		{401, "NoAuthenticationInformation", domain.Unavailable, "clock"},
		{403, "AuthenticationFailed", domain.Unavailable, "key"},
		{403, "AuthorizationPermissionMismatch", domain.Unavailable, "Storage Blob Data Contributor"},
		{404, "ContainerNotFound", domain.Unavailable, "create the container"},
		{404, "BlobNotFound", domain.NotFound, "the object does not exist"},
		{404, "", domain.NotFound, "the object does not exist"},
		{404, "ResourceNotFound", domain.Unavailable, "check the endpoint"},
		{409, "ContainerBeingDeleted", domain.Unavailable, "create the container"},
		{416, "InvalidRange", domain.Damaged, "ends before"},
		{412, "ConditionNotMet", domain.Damaged, "the object has changed"},
		{429, "", domain.Busy, "429"},
		{503, "ServerBusy", domain.Busy, "ServerBusy (request r-1)"},
		{500, "InternalError", domain.Unavailable, "500"},
		{500, "OperationTimedOut", domain.Unavailable, "500"},
		{400, "InvalidHeaderValue", domain.Unknown, "InvalidHeaderValue"},
		{501, "NotImplemented", domain.Unknown, "NotImplemented"},
	} {
		synctest.Test(t, func(t *testing.T) {
			blobs, w, _ := openWire(t)
			w.before = func(_ int, r *http.Request) (*http.Response, error) {
				return newErrorResponse(r, tc.status, tc.code), nil
			}
			_, err := readObject(t, blobs, "a/b", 1)
			require.Equal(t, tc.kind, domain.KindOf(err), err)
			require.ErrorContains(t, err, tc.says)
			require.NotContains(t, err.Error(), "\n", "one line")
		})
	}
	synctest.Test(t, func(t *testing.T) { // the account never responds
		blobs, w, _ := openWire(t)
		w.before = func(_ int, r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		began := time.Now()
		_, err := readObject(t, blobs, "a/b", 1)
		require.Equal(t, domain.Unavailable, domain.KindOf(err))
		require.NotErrorIs(t, err, context.DeadlineExceeded, "the deadline of an attempt is not the deadline of the caller")
		require.Less(t, time.Since(began), 70*time.Second)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = blobs.Open(ctx, repository.Section{Object: "a/b", Length: 1})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, blobs.Delete(ctx, "a/b"), context.DeadlineExceeded)
	})
}

func TestOpenBlobs_ReportsAnUnusableAccount(t *testing.T) {
	account := openAccount(t, "memory")
	good := inProcess(account)
	good.Container, good.Create = "exchange", true
	for _, tc := range []struct {
		change func(*content.BlobOptions)
		kind   domain.Kind
		says   string
	}{
		{func(o *content.BlobOptions) { o.Endpoint = "" }, domain.Invalid, "want a URL"},
		{func(o *content.BlobOptions) { o.Endpoint = "embedded.localhost" }, domain.Invalid, "want a URL"},
		{func(o *content.BlobOptions) { o.Endpoint += "?sig=SECRET" }, domain.Invalid, "want a URL"},
		{func(o *content.BlobOptions) { o.Aliases = []string{"ftp://x"} }, domain.Invalid, "want a URL"},
		{func(o *content.BlobOptions) { o.Container = "" }, domain.Invalid, "want a name"},
		{func(o *content.BlobOptions) { o.Container = "a/b" }, domain.Invalid, "want a name"},
		{func(o *content.BlobOptions) { o.Key = "" }, domain.Invalid, "want a credential or a key"},
		{func(o *content.BlobOptions) { o.Key = "%" }, domain.Invalid, "account key"},
		{func(o *content.BlobOptions) { o.Key = "b3RoZXI=" }, domain.Unavailable, "AuthenticationFailed"},
		{func(o *content.BlobOptions) { o.Create = false }, domain.Unavailable, "create the container"},
		{func(o *content.BlobOptions) { o.Container = "Not-a-name" }, domain.Unknown, "InvalidResourceName"},
	} {
		o := good
		tc.change(&o)
		_, err := content.OpenBlobs(t.Context(), o)
		require.Equal(t, tc.kind, domain.KindOf(err), err)
		require.ErrorContains(t, err, tc.says)
		require.NotContains(t, err.Error(), "SECRET")
	}
	for range 2 {
		_, err := content.OpenBlobs(t.Context(), good)
		require.NoError(t, err)
	}
}

func TestParseConnection_ReturnsTheOptions(t *testing.T) {
	for text, want := range map[string]content.BlobOptions{
		"DefaultEndpointsProtocol=https;AccountName=a;AccountKey=eA==;EndpointSuffix=core.windows.net": {Endpoint: "https://a.blob.core.windows.net", Account: "a", Key: "eA=="},
		"AccountName=a; AccountKey=eA==;":                                     {Endpoint: "https://a.blob.core.windows.net", Account: "a", Key: "eA=="},
		"AccountName=a;AccountKey=eA==;BlobEndpoint=http://127.0.0.1:10000/a": {Endpoint: "http://127.0.0.1:10000/a", Account: "a", Key: "eA=="},
	} {
		got, err := content.ParseConnection(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "AccountName=a", "AccountKey=SECRET", "BlobEndpoint=http://x;SharedAccessSignature=SECRET"} {
		_, err := content.ParseConnection(text)
		require.Equal(t, domain.Invalid, domain.KindOf(err))
		require.NotContains(t, err.Error(), "SECRET")
	}
}

// A fakeCredential is a credential of Microsoft Entra ID that returns the token TOKEN, and err.
type fakeCredential struct{ err error }

func (c fakeCredential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "TOKEN", ExpiresOn: time.Now().Add(time.Hour)}, c.err
}

func TestOpenBlobs_SendsTheTokenOfItsCredential(t *testing.T) {
	answered := func(r *http.Request) *http.Response {
		require.Equal(t, "https", r.URL.Scheme)
		require.Equal(t, "account.blob.core.windows.net", r.URL.Host)
		require.Equal(t, "/exchange", r.URL.Path)
		require.Equal(t, "Bearer TOKEN", r.Header.Get("Authorization"))
		return newErrorResponse(r, http.StatusOK, "")
	}
	o := content.BlobOptions{
		Endpoint: "https://account.blob.core.windows.net/", Container: "exchange", Credential: fakeCredential{}, Transport: transportFunc(answered),
	}
	_, err := content.OpenBlobs(t.Context(), o)
	require.NoError(t, err)
	o.Credential = fakeCredential{errors.New("no identity")}
	synctest.Test(t, func(t *testing.T) {
		_, err = content.OpenBlobs(t.Context(), o)
		require.Equal(t, domain.Unavailable, domain.KindOf(err))
		require.ErrorContains(t, err, "no identity")
	})
}

type transportFunc func(*http.Request) *http.Response

func (f transportFunc) Do(r *http.Request) (*http.Response, error) { return f(r), nil }

func TestAnAccount_IsRecognizedByEachOfItsNames(t *testing.T) {
	account := openAccount(t, "memory")
	calls := 0
	o := inProcess(account)
	o.Container, o.Create = "exchange", true
	o.Aliases = []string{"http://127.0.0.1:10000/devstoreaccount1", "https://Hub.Blob.Core.Windows.net", "http://[::1]:80/x/"}
	inner := account.Transport()
	o.Transport = transportFunc(func(r *http.Request) *http.Response {
		calls++
		answer, err := inner.Do(r)
		require.NoError(t, err)
		require.Equal(t, "embedded.localhost", r.URL.Host, "the hub never connects to another host")
		return answer
	})
	blobs, err := content.OpenBlobs(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, blobs.Put(t.Context(), "a/b", strings.NewReader("data")))
	for _, uri := range []string{
		"http://embedded.localhost/devstoreaccount1/exchange/a/b", "HTTP://EMBEDDED.localhost:80/devstoreaccount1/exchange/a%2Fb",
		"http://127.0.0.1:10000/devstoreaccount1/exchange/a/b?sig=x", "https://hub.blob.core.windows.net/exchange/a/b",
		"https://hub.blob.core.windows.net:443/exchange/%61/b", "http://[::1]/x/exchange/a/b", "http://[::1]:80/x/exchange/a/b",
	} {
		r, err := blobs.Fetch(t.Context(), uri)
		require.NoError(t, err, uri)
		data, err := io.ReadAll(r)
		require.NoError(t, errors.Join(err, r.Close()))
		require.Equal(t, "data", string(data))
	}
	before := calls
	for uri, says := range map[string]string{
		"https://embedded.localhost/devstoreaccount1/exchange/a/b":                  "foreign account",
		"http://127.0.0.1/devstoreaccount1/exchange/a/b":                            "foreign account",
		"http://127.0.0.1:10000/devstoreaccount2/exchange/a/b":                      "foreign account",
		"http://127.0.0.1:10000/exchange/a/b":                                       "foreign account",
		"https://other.blob.core.windows.net/exchange/a/b":                          "foreign account",
		"https://hub.blob.core.windows.net.example.org/exchange/a/b":                "foreign account",
		"https://hub.blob.core.windows.net@example.org/exchange/a/b":                "a user or a password",
		"https://hub.blob.core.windows.net/Exchange/a/b":                            "foreign container",
		"https://hub.blob.core.windows.net/exchange%2Fa/b":                          "foreign container",
		"https://hub.blob.core.windows.net//exchange/a/b":                           "foreign container",
		"https://hub.blob.core.windows.net/exchange/a/b?snapshot=2024":              "names a snapshot",
		"https://hub.blob.core.windows.net/exchange/a/b?VersionId=2024":             "names a versionid",
		"https://hub.blob.core.windows.net/exchange/a%5Cb":                          "backslash",
		"https://hub.blob.core.windows.net/exchange/a%00b":                          "control character",
		"https://hub.blob.core.windows.net/exchange/%FF":                            "not UTF-8",
		"https://hub.blob.core.windows.net/exchange/" + strings.Repeat("x", 1025):   "more than 1024",
		"https://hub.blob.core.windows.net/exchange/" + strings.Repeat("x", 17_000): "more than 16384",
		"mailto:a@b": "want scheme, host and path",
	} {
		_, err := blobs.Fetch(t.Context(), uri)
		require.Equal(t, domain.Invalid, domain.KindOf(err), uri)
		require.ErrorContains(t, err, says)
		require.Equal(t, domain.Invalid, domain.KindOf(blobs.Discard(t.Context(), uri)), uri)
	}
	require.Equal(t, before, calls, "no request is sent for a foreign URI")
}

// Fetch refuses a blob that is stored with compression, because an actor would receive the content
// without the header that names the compression.
func TestFetch_RefusesCompressedContent(t *testing.T) {
	account := openAccount(t, "memory")
	for _, o := range []content.BlobOptions{inProcess(account), overTCP(t, account)} {
		s := newShared(t, o)
		var text strings.Builder
		z := gzip.NewWriter(&text)
		_, _ = z.Write([]byte("data"))
		require.NoError(t, z.Close())
		uri := s.Upload(t, "zipped", nil)
		encoding := "gzip"
		container, name, _ := strings.Cut(strings.TrimPrefix(uri[strings.Index(uri, embedded.WellKnownAccount):], embedded.WellKnownAccount+"/"), "/")
		_, err := azClient(t, o).ServiceClient().NewContainerClient(container).NewBlockBlobClient(name).UploadBuffer(t.Context(), []byte(text.String()),
			&blockblob.UploadBufferOptions{HTTPHeaders: &blob.HTTPHeaders{BlobContentEncoding: &encoding}})
		require.NoError(t, err)
		_, err = s.Exchange.Fetch(t.Context(), uri)
		require.Equal(t, domain.Invalid, domain.KindOf(err), err)
		require.ErrorContains(t, err, "gzip")
	}
}
