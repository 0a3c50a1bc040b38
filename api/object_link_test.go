package api_test

import (
	"context"
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository"
)

// A linkedStore contains every object. The links that it returns contain the options of the link.
type linkedStore struct{ repository.Source }

func (linkedStore) Stat(_ context.Context, name domain.ObjectName, version *domain.VersionID) (repository.SourceObject, error) {
	return repository.SourceObject{Key: name.Key(), Version: *version}, nil
}

func (linkedStore) Link(_ context.Context, name domain.ObjectName, version domain.VersionID, o repository.LinkOptions) (string, error) {
	parameters := url.Values{
		"version": {version.String()}, "expires": {o.Expires.String()}, "disposition": {o.Disposition}, "type": {o.ContentType}, "encoding": {o.ContentEncoding},
	}
	return (&url.URL{Scheme: "https", Host: "store.test", Path: "/" + name.Bucket() + "/" + name.Key(), RawQuery: parameters.Encode()}).String(), nil
}

type objectLink struct {
	Link    *string
	Expires time.Time
	Reason  string
}

func serveLinks(t *testing.T) *objectFixture {
	t.Helper()
	return serveObjects(t, func(o *api.Options, _ *hub.Options) {
		o.AdminToken = token
		o.Objects.Source = linkedStore{}
	})
}

func (f *objectFixture) link(path string, headers ...string) (link objectLink) {
	f.t.Helper()
	answer := f.do("GET", path, "", append([]string{"Authorization", "Bearer " + token}, headers...)...).wants(200)
	require.NoError(f.t, json.Unmarshal([]byte(answer.body), &link))
	return link
}

// FM-99: a link is for the current version of an object. It has the requested expiry, file name and
// headers.
func TestObjectLink_IsForTheCurrentVersion(t *testing.T) {
	f := serveLinks(t)
	f.ingestScript("bucket", "dir/a b.txt", "[C@C1/v] [C@C2/w]")
	ids := f.ids("dir/a b.txt")
	got := f.link("/v1/objects/"+ids[0]+"/link?disposition=attachment&expires=500", "Content-Type", "text/x-test", "Content-Encoding", "gzip")
	require.Empty(t, got.Reason)
	require.WithinDuration(t, time.Now().Add(500*time.Second), got.Expires, 10*time.Second)
	u, err := url.Parse(*got.Link)
	require.NoError(t, err)
	require.Equal(t, "/bucket/dir/a b.txt", u.Path)
	require.Equal(t, url.Values{
		"version": {"w"}, "expires": {"8m20s"}, "disposition": {`attachment; filename="a b.txt"`}, "type": {"text/x-test"}, "encoding": {"gzip"},
	}, u.Query())
	got = f.link("/v1/objects/" + ids[0] + "/link")
	u, err = url.Parse(*got.Link)
	require.NoError(t, err)
	require.Equal(t, url.Values{"version": {"w"}, "expires": {"168h0m0s"}, "disposition": {`inline; filename="a b.txt"`}, "type": {""}, "encoding": {""}}, u.Query())
	require.Equal(t, objectLink{Reason: "not-current"}, f.link("/v1/objects/"+ids[1]+"/link"))
}

// FM-99: an object is deleted or archived. Its link is null, with a reason; the request does not
// fail.
func TestObjectLink_IsNullWithItsReason(t *testing.T) {
	f := serveLinks(t)
	f.ingestScript("bucket", "deleted", "[C@C1] [D@D1]")
	f.ingestScript("bucket", "archived", "[C@C1]", func(e *domain.ObjectEvent) { e.StorageClass = domain.ClassGlacier })
	for key, reason := range map[string]string{"deleted": "deleted", "archived": "archived"} {
		for _, id := range f.ids(key) {
			answer := f.do("GET", "/v1/objects/"+id+"/link", "", "Authorization", "Bearer "+token).wants(200)
			require.JSONEq(t, `{"link": null, "reason": "`+reason+`"}`, answer.body)
		}
	}
}

func TestObjectLink_RefusesRequests(t *testing.T) {
	f := serveLinks(t)
	f.ingestScript("bucket", "a", "[C@C1]")
	id := f.ids("a")[0]
	f.do("GET", "/v1/objects/"+id+"/link", "", "Authorization", "").wants(401)
	for _, query := range []string{"?expires=0", "?expires=604801", "?expires=1h", "?disposition=download", "?other=1"} {
		f.do("GET", "/v1/objects/"+id+"/link"+query, "", "Authorization", "Bearer "+token).wants(400)
	}
	f.do("GET", "/v1/objects/no-id/link", "", "Authorization", "Bearer "+token).wants(400)
	name, err := domain.ParseObjectName("bucket", "other")
	require.NoError(t, err)
	other := ledger.RowID{Name: name, Row: domain.ObjectRowID{Carrier: domain.Carrier{Message: "m"}}}
	f.do("GET", "/v1/objects/"+other.String()+"/link", "", "Authorization", "Bearer "+token).wants(404)
}
