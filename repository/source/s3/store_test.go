package s3_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
	"github.com/messagehub/messagehub/repository/source"
	"github.com/messagehub/messagehub/repository/source/s3"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const bucket, accessKey, secretKey = "bucket", "AKIDEXAMPLE", "wJalrXUtnFEMI"

func TestSource(t *testing.T) {
	for _, hasVersions := range []bool{false, true} {
		t.Run(map[bool]string{false: "a bucket without versions", true: "a bucket with versions"}[hasVersions], func(t *testing.T) {
			repositorytest.RunSource(t, func(t *testing.T) repositorytest.SourceStore {
				return openStore(t, startServer(t, bucket, hasVersions), hasVersions)
			})
		})
	}
}

// From a store that cannot list versions, pages of any size return all keys in order.
func TestSourceWithoutListingOfVersions(t *testing.T) {
	endpoint := startServer(t, bucket, false)
	store := openStore(t, endpoint, false)
	store.Put(t, "a", "x")
	store.Put(t, "b", "x")
	limited := connectStore(t, endpoint, withoutVersions{http.DefaultTransport})
	for _, limit := range []int{1, 2, 10} {
		var keys []string
		for cursor := ""; ; {
			page, err := limited.List(t.Context(), bucket, "", cursor, limit)
			require.NoError(t, err)
			for _, o := range page.Objects {
				keys = append(keys, o.Key)
			}
			if cursor = page.Cursor; cursor == "" {
				break
			}
		}
		require.Equal(t, []string{"a", "b"}, keys)
	}
}

// A withoutVersions is a transport that responds with 501 to requests that list versions, like a store
// that cannot list versions.
type withoutVersions struct{ next http.RoundTripper }

func (w withoutVersions) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Has("versions") {
		faults := repositorytest.SourceFaults{}
		faults.Answer(http.StatusNotImplemented)
		answer, err := faults.Do(r)
		return answer, err
	}
	return w.next.RoundTrip(r)
}

func openStore(t *testing.T, endpoint string, hasVersions bool) repositorytest.SourceStore {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	web := &http.Client{Transport: transport}
	faults := &repositorytest.SourceFaults{Next: web}
	host := strings.TrimPrefix(endpoint, "http://")
	client, err := minio.New(host, &minio.Options{Creds: credentials.NewStaticV4(accessKey, secretKey, ""), Region: "us-east-1", Transport: transport, MaxRetries: 3})
	require.NoError(t, err)
	return repositorytest.SourceStore{
		Source: source.Stores{{Buckets: "*", Source: connectStore(t, endpoint, faults)}},
		Bucket: bucket, Absent: "absent",
		Put: func(t testing.TB, key, content string) domain.VersionID {
			info, err := client.PutObject(t.Context(), bucket, key, strings.NewReader(content), int64(len(content)), minio.PutObjectOptions{})
			require.NoError(t, err)
			if !hasVersions {
				return domain.VersionID{}
			}
			version, err := domain.ParseVersionID(info.VersionID)
			require.NoError(t, err)
			return version
		},
		Delete: func(t testing.TB, key string, version *domain.VersionID) {
			opts := minio.RemoveObjectOptions{}
			if version != nil {
				opts.VersionID = version.String()
			}
			require.NoError(t, client.RemoveObject(t.Context(), bucket, key, opts))
		},
		HasVersions: hasVersions, HasETags: true, HasAnyKey: true, HasLinks: true, HTTP: web, Faults: faults,
	}
}

func connectStore(t *testing.T, endpoint string, transport http.RoundTripper) *s3.Store {
	t.Helper()
	store, err := s3.New(s3.Options{Endpoint: endpoint, AccessKey: accessKey, SecretKey: secretKey, Transport: transport, Attempts: 2})
	require.NoError(t, err)
	return store
}

// The response to HEAD says whether an object is archived or restored. Stat reports this state, which is
// missing in a listing.
func TestStat_ReportsArchivedObjects(t *testing.T) {
	for _, tc := range []struct {
		name         string
		header       http.Header
		class, tier  string
		reason       domain.ObjectReason
		isAccessible bool
	}{
		{"the standard class is left out", http.Header{}, domain.ClassStandard, "", domain.Crawl, true},
		{"archived", http.Header{"X-Amz-Storage-Class": {"GLACIER"}}, domain.ClassGlacier, "", domain.Crawl, false},
		{"being restored", http.Header{"X-Amz-Storage-Class": {"GLACIER"}, "X-Amz-Restore": {`ongoing-request="true"`}}, domain.ClassGlacier, "", domain.Crawl, false},
		{
			"restored",
			http.Header{"X-Amz-Storage-Class": {"DEEP_ARCHIVE"}, "X-Amz-Restore": {`ongoing-request="false", expiry-date="Fri, 21 Dec 2040 00:00:00 GMT"`}},
			domain.ClassDeepArchive, "", domain.CrawlRestored, true,
		},
		{
			"archived by tiering",
			http.Header{"X-Amz-Storage-Class": {"INTELLIGENT_TIERING"}, "X-Amz-Archive-Status": {"DEEP_ARCHIVE_ACCESS"}},
			domain.ClassIntelligentTiering, "DEEP_ARCHIVE_ACCESS", domain.Crawl, false,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.header.Set("ETag", `"e"`)
			tc.header.Set("Last-Modified", "Fri, 21 Nov 2025 00:00:00 GMT")
			tc.header.Set("Content-Length", "9223372036854775807")
			tc.header.Set("X-Amz-Checksum-Sha256", "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=")
			store := connectStore(t, "http://store.test", headerTransport{tc.header})
			name, err := domain.ParseObjectName(bucket, "a")
			require.NoError(t, err)
			found, err := store.Stat(t.Context(), name, nil)
			require.NoError(t, err)
			require.EqualValues(t, 9223372036854775807, *found.Size)
			require.Equal(t, `"e"`, found.ETag)
			require.Equal(t, "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=", found.SHA256)
			require.Equal(t, time.Date(2025, 11, 21, 0, 0, 0, 0, time.UTC), found.LastModified)
			require.Equal(t, tc.class, found.StorageClass)
			require.Equal(t, tc.tier, found.ArchiveStatus)
			require.Equal(t, tc.reason, found.Reason)
			event := domain.ObjectEvent{Type: domain.ObjectCreated, ObjectFacts: found.ObjectFacts}
			require.Equal(t, tc.isAccessible, event.IsAccessible())
		})
	}
}

// A headerTransport responds to each request with the same header.
type headerTransport struct{ header http.Header }

func (a headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: a.header, Body: http.NoBody, Request: r}, nil
}

// S3 responds with 405 to a HEAD of a version that is a delete marker. Stat returns the delete marker.
func TestStatFindsAMarkerByItsVersion(t *testing.T) {
	store := connectStore(t, "http://store.test", marker{})
	name, err := domain.ParseObjectName(bucket, "a")
	require.NoError(t, err)
	version, err := domain.ParseVersionID("v1")
	require.NoError(t, err)
	found, err := store.Stat(t.Context(), name, &version)
	require.NoError(t, err)
	require.Equal(t, repository.SourceObject{Version: version, Marker: true, Key: "a", ObjectFacts: domain.ObjectFacts{Reason: domain.Crawl}}, found)
}

type marker struct{}

func (marker) RoundTrip(r *http.Request) (*http.Response, error) {
	header := http.Header{"X-Amz-Delete-Marker": {"true"}, "X-Amz-Version-Id": {"v1"}}
	return &http.Response{StatusCode: http.StatusMethodNotAllowed, Header: header, Body: http.NoBody, Request: r}, nil
}

// A link names its version, even the null version: in a bucket with versions, the null version is not
// always the latest.
func TestLinkNamesItsVersion(t *testing.T) {
	store := connectStore(t, "https://s3.eu-north-1.amazonaws.com", nil)
	name, err := domain.ParseObjectName(bucket, "a+b/é.txt")
	require.NoError(t, err)
	link, err := store.Link(t.Context(), name, domain.VersionID{}, repository.LinkOptions{Expires: time.Hour, Disposition: "inline", ContentEncoding: "gzip"})
	require.NoError(t, err)
	u, err := url.Parse(link)
	require.NoError(t, err)
	require.Equal(t, "/a+b/é.txt", u.Path)
	require.Equal(t, "null", u.Query().Get("versionId"))
	require.Equal(t, "3600", u.Query().Get("X-Amz-Expires"))
	require.Equal(t, "inline", u.Query().Get("response-content-disposition"))
	require.Equal(t, "gzip", u.Query().Get("response-content-encoding"))
	require.NotContains(t, link, secretKey)
}

func TestNew_RefusesInvalidOptions(t *testing.T) {
	for _, o := range []s3.Options{
		{AccessKey: "a", SecretKey: "b"},
		{Endpoint: "s3.amazonaws.com", AccessKey: "a", SecretKey: "b"},
		{Endpoint: "https://user@s3.amazonaws.com", AccessKey: "a", SecretKey: "b"},
		{Endpoint: "https://s3.amazonaws.com/bucket", AccessKey: "a", SecretKey: "b"},
		{Endpoint: "https://s3.amazonaws.com", AccessKey: "a"},
	} {
		_, err := s3.New(o)
		require.Equal(t, domain.Invalid, domain.KindOf(err), "%+v", o)
	}
}
