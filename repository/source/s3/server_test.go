package s3_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// A backend corrects the listing of versions of s3mem. As in S3, the newest version of a key comes
// first, the key in key-marker is not listed again, and a truncated page names the next one.
type backend struct{ *s3mem.Backend }

func (b backend) ListBucketVersions(bucket string, prefix *gofakes3.Prefix, page *gofakes3.ListBucketVersionsPage) (*gofakes3.ListBucketVersionsResult, error) {
	all, err := b.Backend.ListBucketVersions(bucket, prefix, &gofakes3.ListBucketVersionsPage{})
	if err != nil {
		return all, err
	}
	reverseVersions(all.Versions)
	result := gofakes3.NewListBucketVersionsResult(bucket, prefix, page)
	isBehindMarker := !page.HasVersionIDMarker
	for _, v := range all.Versions {
		key, version := keyOf(v), v.GetVersionID()
		switch {
		case key < page.KeyMarker, key == page.KeyMarker && !page.HasVersionIDMarker:
			continue
		case key == page.KeyMarker && !isBehindMarker:
			isBehindMarker = version == page.VersionIDMarker
			continue
		}
		if page.MaxKeys > 0 && int64(len(result.Versions)) == page.MaxKeys {
			last := result.Versions[len(result.Versions)-1]
			result.IsTruncated, result.NextKeyMarker, result.NextVersionIDMarker = true, keyOf(last), last.GetVersionID()
			break
		}
		result.Versions = append(result.Versions, v)
	}
	return result, nil
}

// reverseVersions reverses the versions of each key.
func reverseVersions(all []gofakes3.VersionItem) {
	for begin := 0; begin < len(all); {
		end := begin
		for end < len(all) && keyOf(all[end]) == keyOf(all[begin]) {
			end++
		}
		slices.Reverse(all[begin:end])
		begin = end
	}
}

func keyOf(v gofakes3.VersionItem) string {
	if marker, ok := v.(*gofakes3.DeleteMarker); ok {
		return marker.Key
	}
	return v.(*gofakes3.Version).Key
}

// A withoutBody omits the body of a response.
type withoutBody struct{ http.ResponseWriter }

func (w withoutBody) Write(p []byte) (int, error) { return len(p), nil }

// startServer starts a server with a bucket. gofakes3 does not support HEAD of a version, so the server
// handles HEAD as a GET without a body.
func startServer(t *testing.T, bucket string, hasVersions bool) (url string) {
	t.Helper()
	store := backend{s3mem.New()}
	if err := store.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
	if hasVersions {
		if err := store.SetVersioningConfiguration(bucket, gofakes3.VersioningConfiguration{Status: gofakes3.VersioningEnabled}); err != nil {
			t.Fatal(err)
		}
	}
	fake := gofakes3.New(store).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if version := r.URL.Query().Get("versionId"); r.Method == http.MethodHead && version != "" && version != "null" {
			r.Method, w = http.MethodGet, withoutBody{w}
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
