package azure_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/source/azure"
)

// A keyService responds to requests for user delegation keys.
type keyService struct{ requests []string }

func (s *keyService) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	s.requests = append(s.requests, r.URL.RawQuery+" "+string(body))
	const key = `<UserDelegationKey><SignedOid>11111111-1111-1111-1111-111111111111</SignedOid><SignedTid>22222222-2222-2222-2222-222222222222</SignedTid>` +
		`<SignedStart>2026-11-26T11:55:00Z</SignedStart><SignedExpiry>2026-12-03T11:55:00Z</SignedExpiry><SignedService>b</SignedService>` +
		`<SignedVersion>2021-12-02</SignedVersion><Value>a2V5</Value></UserDelegationKey>`
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/xml"}}, Body: io.NopCloser(strings.NewReader(key)), Request: r,
	}, err
}

type identity struct{}

func (identity) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "token", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// Without an account key, links are signed with a user delegation key. The identity requests a key for
// seven days, and uses it for all links that expire before the key.
func TestLink_IsSignedWithAUserDelegationKey(t *testing.T) {
	keys := &keyService{}
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	store, err := azure.New(azure.Options{Endpoint: "https://account.blob.core.windows.net/", Credential: identity{}, Transport: keys, Clock: func() time.Time { return now }})
	require.NoError(t, err)
	name, err := domain.ParseObjectName("account/c-c", "a b")
	require.NoError(t, err)
	link := func(expires time.Duration) url.Values {
		text, err := store.Link(t.Context(), name, domain.VersionID{}, repository.LinkOptions{Expires: expires, Disposition: "inline"})
		require.NoError(t, err)
		u, err := url.Parse(text)
		require.NoError(t, err)
		require.Equal(t, "https://account.blob.core.windows.net/c-c/a%20b", u.Scheme+"://"+u.Host+u.EscapedPath())
		return u.Query()
	}
	query := link(time.Hour)
	require.Equal(t, "11111111-1111-1111-1111-111111111111", query.Get("skoid"))
	require.Equal(t, [...]string{"b", "r", "2026-11-26T13:00:00Z", "https", "inline"}, [...]string{query.Get("sr"), query.Get("sp"), query.Get("se"), query.Get("spr"), query.Get("rscd")})
	require.NotEmpty(t, query.Get("sig"))
	require.Len(t, keys.requests, 1)
	require.Contains(t, keys.requests[0], "comp=userdelegationkey")
	require.Contains(t, keys.requests[0], "<Start>2026-11-26T11:55:00Z</Start>")
	require.Contains(t, keys.requests[0], "<Expiry>2026-12-03T11:55:00Z</Expiry>")
	require.Equal(t, "2026-12-03T11:55:00Z", link(7*24*time.Hour).Get("se"), "a link ends with its key")
	now = now.Add(24 * time.Hour)
	link(time.Hour)
	require.Len(t, keys.requests, 1)
	link(7 * 24 * time.Hour)
	require.Len(t, keys.requests, 2)
}
