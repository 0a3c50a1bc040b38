package repositorytest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A SourceStore is a store under test, with an empty bucket.
type SourceStore struct {
	repository.Source
	Bucket, Absent string // Absent is a bucket that the store does not have

	// Put stores an object, and Delete deletes it, as a client of the store does. If version is not nil,
	// Delete deletes this version.
	Put    func(t testing.TB, key, content string) domain.VersionID
	Delete func(t testing.TB, key string, version *domain.VersionID)

	HasVersions bool          // the bucket stores versions, and Delete creates delete markers
	HasETags    bool          // each object has an ETag and the time of its last change
	HasAnyKey   bool          // keys may be any UTF-8, not only names of repository.Content
	HasLinks    bool          // the store has links, and HTTP follows them
	HTTP        *http.Client  // the tests follow links with this client
	Faults      *SourceFaults // breaks requests; nil if the store makes no requests
}

type sourceFixture struct {
	*testing.T
	SourceStore
	ctx context.Context
}

type sourceRule struct {
	name    string
	applies func(*SourceStore) bool // nil if the rule applies to every store
	test    func(f *sourceFixture)
}

// RunSource checks an implementation against the contract of repository.Source.
func RunSource(t *testing.T, open func(t *testing.T) SourceStore) {
	what := open(t)
	for _, r := range slices.Concat(sourceRules, sourceFaultRules) {
		if r.applies == nil || r.applies(&what) {
			t.Run(r.name, func(t *testing.T) { r.test(&sourceFixture{t, open(t), t.Context()}) })
		}
	}
}

// sourceKeys are keys whose byte order differs from the order of their path segments or letters.
var sourceKeys = []string{
	"a", "a-b", "a/b", "a/c/d", "a.b", "b/1", "b/10", "b/2", "B", "b0", "z",
	"long/" + strings.Repeat("x", 200), "long/" + strings.Repeat("x", 200) + "-a", "long/" + strings.Repeat("x", 200) + "/b", "long/" + strings.Repeat("x", 201),
	"long/" + strings.Repeat("x", 401) + "/c",
}

// sourceAnyKeys are keys that must be escaped in URLs, XML or file names, and keys of the maximum
// length.
var sourceAnyKeys = []string{
	"a+b", "a b", "100%", "a%2Fb", "a&b=c", "café", "cafe\u0301", "日本/語", "x?y#z", `"quoted"`, "<tag>", "~", strings.Repeat("k", 1024), "é" + strings.Repeat("m", 1022),
}

func (f *sourceFixture) listKeys() []string {
	keys := slices.Clone(sourceKeys)
	if f.HasAnyKey {
		keys = append(keys, sourceAnyKeys...)
	}
	slices.Sort(keys)
	return keys
}

func (f *sourceFixture) nameOf(key string) domain.ObjectName {
	f.Helper()
	name, err := domain.ParseObjectName(f.Bucket, key)
	require.NoError(f, err)
	return name
}

// listObjects returns all objects of a listing in pages of a size.
func (f *sourceFixture) listObjects(prefix string, size int) (all []repository.SourceObject) {
	f.Helper()
	cursor := ""
	for {
		page, err := f.List(f.ctx, f.Bucket, prefix, cursor, size)
		require.NoError(f, err)
		require.LessOrEqual(f, len(page.Objects), size)
		all = append(all, page.Objects...)
		if page.Cursor == "" {
			return all
		}
		cursor = page.Cursor
	}
}

func keysOf(objects []repository.SourceObject) (keys []string) {
	for i := range objects {
		keys = append(keys, objects[i].Key)
	}
	return keys
}

func (f *sourceFixture) wantKind(kind domain.Kind, err error) {
	f.Helper()
	require.Error(f, err)
	require.Equal(f, kind, domain.KindOf(err), "%v", err)
}

var sourceRules = []sourceRule{
	{name: "a listing has each object once, in the order of keys, in pages of any size", test: func(f *sourceFixture) {
		keys := f.listKeys()
		for i, key := range keys {
			f.Put(f, key, strings.Repeat("x", i+1))
		}
		for _, size := range []int{1, 2, 3, 7, len(keys), 1000} {
			all := f.listObjects("", size)
			require.Equal(f, keys, keysOf(all), "pages of %d", size)
			for i := range all {
				require.EqualValues(f, i+1, *all[i].Size)
				require.Equal(f, domain.Crawl, all[i].Reason)
				require.Equal(f, f.HasETags, all[i].ETag != "")
				require.Equal(f, f.HasETags, time.Since(all[i].LastModified).Abs() < time.Hour)
			}
		}
	}},

	{name: "a listing has the keys with a prefix", test: func(f *sourceFixture) {
		keys := f.listKeys()
		for _, key := range keys {
			f.Put(f, key, "x")
		}
		for _, prefix := range []string{"a", "a/", "a/c", "b/1", "long/" + strings.Repeat("x", 150), "long/" + strings.Repeat("x", 201), "none", "z"} {
			var want []string
			for _, key := range keys {
				if strings.HasPrefix(key, prefix) {
					want = append(want, key)
				}
			}
			for _, size := range []int{1, 2, 1000} {
				require.Equal(f, want, keysOf(f.listObjects(prefix, size)), "prefix %s, pages of %d", prefix, size)
			}
		}
	}},

	{name: "Stat returns the same as a listing", test: func(f *sourceFixture) {
		for _, key := range f.listKeys() {
			f.Put(f, key, "content of "+key)
		}
		for _, listed := range f.listObjects("", 1000) {
			for _, version := range []*domain.VersionID{nil, &listed.Version} {
				found, err := f.Stat(f.ctx, f.nameOf(listed.Key), version)
				require.NoError(f, err, "%q", listed.Key)
				require.Equal(f, listed.Key, found.Key)
				require.Equal(f, *listed.Size, *found.Size)
				require.Equal(f, [2]string{listed.ETag, listed.StorageClass}, [2]string{found.ETag, found.StorageClass})
				require.Equal(f, listed.Reason, found.Reason)
				require.WithinDuration(f, listed.LastModified, found.LastModified, time.Second)
			}
		}
	}},

	{name: "an empty bucket has one page, a missing one has none", test: func(f *sourceFixture) {
		page, err := f.List(f.ctx, f.Bucket, "", "", 10)
		require.NoError(f, err)
		require.Equal(f, repository.SourcePage{}, page)
		if f.Absent != "" {
			_, err = f.List(f.ctx, f.Absent, "", "", 10)
			f.wantKind(domain.NotFound, err)
		}
	}},

	{name: "a missing object is NotFound, a missing bucket is not", test: func(f *sourceFixture) {
		f.Put(f, "there", "x")
		_, err := f.Stat(f.ctx, f.nameOf("other"), nil)
		f.wantKind(domain.NotFound, err)
		_, err = f.Stat(f.ctx, f.nameOf("there/not"), nil)
		f.wantKind(domain.NotFound, err)
		f.Delete(f, "there", nil)
		_, err = f.Stat(f.ctx, f.nameOf("there"), nil)
		f.wantKind(domain.NotFound, err)
		if f.Absent != "" {
			name, err := domain.ParseObjectName(f.Absent, "x")
			require.NoError(f, err)
			_, err = f.Stat(f.ctx, name, nil)
			f.wantKind(domain.Unavailable, err)
		}
	}},

	{name: "a listing continues where it was while objects change", test: func(f *sourceFixture) {
		for _, key := range []string{"b", "d", "f", "h"} {
			f.Put(f, key, "x")
		}
		first, err := f.List(f.ctx, f.Bucket, "", "", 2)
		require.NoError(f, err)
		require.Equal(f, []string{"b", "d"}, keysOf(first.Objects))
		require.NotEmpty(f, first.Cursor)
		f.Delete(f, "d", nil) // deletes the last object of the page
		f.Put(f, "a", "x")    // adds an object behind the position of the listing
		f.Put(f, "g", "x")    // adds an object ahead of the position of the listing
		var rest []string
		for cursor := first.Cursor; cursor != ""; {
			page, err := f.List(f.ctx, f.Bucket, "", cursor, 2)
			require.NoError(f, err)
			rest, cursor = append(rest, keysOf(page.Objects)...), page.Cursor
		}
		require.Equal(f, []string{"f", "g", "h"}, rest)
	}},

	{name: "a listing has the latest version of a key, which may be a marker", applies: hasVersions, test: func(f *sourceFixture) {
		versions := make(map[string]domain.VersionID)
		for _, key := range []string{"a", "b", "c"} {
			for n := range 5 {
				versions[key] = f.Put(f, key, strings.Repeat("x", n+1))
			}
		}
		f.Delete(f, "b", nil)
		for _, size := range []int{1, 2, 3, 1000} {
			all := f.listObjects("", size)
			require.Equal(f, []string{"a", "b", "c"}, keysOf(all), "pages of %d", size)
			require.Equal(f, []bool{false, true, false}, []bool{all[0].Marker, all[1].Marker, all[2].Marker})
			require.Equal(f, versions["a"], all[0].Version)
			require.EqualValues(f, 5, *all[0].Size)
			require.NotEqual(f, versions["b"], all[1].Version)
			require.Nil(f, all[1].Size)
		}
		_, err := f.Stat(f.ctx, f.nameOf("b"), nil)
		f.wantKind(domain.NotFound, err)
	}},

	{name: "a version is found by its id", applies: hasVersions, test: func(f *sourceFixture) {
		first := f.Put(f, "a", "1")
		second := f.Put(f, "a", "22")
		for version, size := range map[domain.VersionID]int64{first: 1, second: 2} {
			found, err := f.Stat(f.ctx, f.nameOf("a"), &version)
			require.NoError(f, err)
			require.Equal(f, size, *found.Size)
			require.Equal(f, version, found.Version)
		}
		f.Delete(f, "a", &first)
		_, err := f.Stat(f.ctx, f.nameOf("a"), &first)
		f.wantKind(domain.NotFound, err)
	}},

	{name: "a store with one version of an object has no other one", applies: func(s *SourceStore) bool { return !s.HasVersions && s.Faults == nil }, test: func(f *sourceFixture) {
		f.Put(f, "a", "1")
		version, err := domain.ParseVersionID("other")
		require.NoError(f, err)
		_, err = f.Stat(f.ctx, f.nameOf("a"), &version)
		f.wantKind(domain.NotFound, err)
	}},

	{name: "a link is for one object, and sets the headers of the answer", applies: hasLinks, test: func(f *sourceFixture) {
		for _, key := range f.listKeys() {
			version := f.Put(f, key, "content of "+key)
			link, err := f.Link(f.ctx, f.nameOf(key), version, repository.LinkOptions{
				Expires: time.Minute, Disposition: `attachment; filename="a b.txt"; filename*=UTF-8''a%20b.txt`, ContentType: "text/x-test",
			})
			require.NoError(f, err)
			status, body, header := f.followLink(link)
			require.Equal(f, http.StatusOK, status, "%q: %s", key, body)
			require.Equal(f, "content of "+key, body)
			require.Equal(f, `attachment; filename="a b.txt"; filename*=UTF-8''a%20b.txt`, header.Get("Content-Disposition"))
			require.Equal(f, "text/x-test", header.Get("Content-Type"))
		}
	}},

	{name: "a link is for one version", applies: func(s *SourceStore) bool { return hasLinks(s) && s.HasVersions }, test: func(f *sourceFixture) {
		first := f.Put(f, "a", "first")
		f.Put(f, "a", "second")
		link, err := f.Link(f.ctx, f.nameOf("a"), first, repository.LinkOptions{Expires: time.Minute})
		require.NoError(f, err)
		_, body, _ := f.followLink(link)
		require.Equal(f, "first", body)
	}},

	{name: "a link has a time of up to seven days", applies: hasLinks, test: func(f *sourceFixture) {
		version := f.Put(f, "a", "x")
		for _, expires := range []time.Duration{-time.Second, 0, time.Millisecond, 7*24*time.Hour + time.Second} {
			_, err := f.Link(f.ctx, f.nameOf("a"), version, repository.LinkOptions{Expires: expires})
			f.wantKind(domain.Invalid, err)
		}
		_, err := f.Link(f.ctx, f.nameOf("a"), version, repository.LinkOptions{Expires: 7 * 24 * time.Hour})
		require.NoError(f, err)
		_, err = f.Link(f.ctx, f.nameOf("a"), version, repository.LinkOptions{Expires: time.Hour, Disposition: "inline\r\nX-Other: y"})
		f.wantKind(domain.Invalid, err)
	}},

	{name: "a store without links returns ErrNoLinks", applies: func(s *SourceStore) bool { return !s.HasLinks }, test: func(f *sourceFixture) {
		version := f.Put(f, "a", "x")
		_, err := f.Link(f.ctx, f.nameOf("a"), version, repository.LinkOptions{Expires: time.Hour})
		require.ErrorIs(f, err, repository.ErrNoLinks)
	}},

	{name: "content is read as it was stored", test: func(f *sourceFixture) {
		contents := map[string]string{"large": strings.Repeat("0123456789abcdef", 1<<17)}
		for _, key := range f.listKeys() {
			contents[key] = "content of " + key
		}
		for key, content := range contents {
			f.Put(f, key, content)
			require.Equal(f, content, f.readContent(key), "%q", key)
		}
	}},

	{name: "missing content is NotFound", test: func(f *sourceFixture) {
		fails := func(name domain.ObjectName) {
			_, err := f.Open(f.ctx, name)
			f.wantKind(domain.NotFound, err)
		}
		f.Put(f, "a/b", "x")
		fails(f.nameOf("other"))
		fails(f.nameOf("a"))
		fails(f.nameOf("a/b/c"))
		f.Delete(f, "a/b", nil)
		fails(f.nameOf("a/b"))
		if f.Absent != "" {
			name, err := domain.ParseObjectName(f.Absent, "x")
			require.NoError(f, err)
			fails(name)
		}
	}},

	{name: "a content is that of the latest version", applies: hasVersions, test: func(f *sourceFixture) {
		f.Put(f, "a", "first")
		f.Put(f, "a", "second")
		require.Equal(f, "second", f.readContent("a"))
	}},

	{name: "reading a content ends with its context", test: func(f *sourceFixture) {
		f.Put(f, "a", strings.Repeat("0123456789abcdef", 1<<17))
		ctx, cancel := context.WithCancel(f.ctx)
		content, err := f.Open(ctx, f.nameOf("a"))
		require.NoError(f, err)
		cancel()
		_, err = io.ReadAll(content)
		require.ErrorIs(f, err, context.Canceled)
		require.NoError(f, content.Close())
		_, err = f.Open(ctx, f.nameOf("a"))
		require.ErrorIs(f, err, context.Canceled)
	}},

	{name: "a call ends with its context", test: func(f *sourceFixture) {
		f.Put(f, "a", "x")
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		_, err := f.List(ctx, f.Bucket, "", "", 10)
		require.ErrorIs(f, err, context.Canceled)
		if f.Faults != nil {
			_, err = f.Stat(ctx, f.nameOf("a"), nil)
			require.ErrorIs(f, err, context.Canceled)
		}
	}},
}

// readContent returns the content of an object.
func (f *sourceFixture) readContent(key string) string {
	f.Helper()
	content, err := f.Open(f.ctx, f.nameOf(key))
	require.NoError(f, err, "%q", key)
	text, err := io.ReadAll(content)
	require.NoError(f, err, "%q", key)
	require.NoError(f, content.Close())
	return string(text)
}

func hasVersions(s *SourceStore) bool { return s.HasVersions }

func hasLinks(s *SourceStore) bool { return s.HasLinks }

// followLink sends a GET to the URL of a link.
func (f *sourceFixture) followLink(link string) (status int, body string, header http.Header) {
	f.Helper()
	r, err := http.NewRequestWithContext(f.ctx, http.MethodGet, link, http.NoBody)
	require.NoError(f, err)
	answer, err := f.HTTP.Do(r)
	require.NoError(f, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(f, err)
	return answer.StatusCode, string(text), answer.Header
}

var sourceFaultRules = []sourceRule{
	{name: "a request that is throttled is repeated", applies: hasFaults, test: func(f *sourceFixture) {
		f.Put(f, "a", "x")
		f.Faults.Throttle(1)
		require.Equal(f, []string{"a"}, keysOf(f.listObjects("", 10)))
		f.Faults.Throttle(1)
		_, err := f.Stat(f.ctx, f.nameOf("a"), nil)
		require.NoError(f, err)
	}},

	{name: "a store that throttles all requests is Busy, one that refuses them Unavailable", applies: hasFaults, test: func(f *sourceFixture) {
		f.Put(f, "a", "x")
		for status, kind := range map[int]domain.Kind{429: domain.Busy, 503: domain.Busy, 403: domain.Unavailable, 401: domain.Unavailable, 500: domain.Unavailable} {
			f.Faults.Answer(status)
			_, err := f.List(f.ctx, f.Bucket, "", "", 10)
			f.wantKind(kind, err)
			_, err = f.Stat(f.ctx, f.nameOf("a"), nil)
			f.wantKind(kind, err)
			_, err = f.Open(f.ctx, f.nameOf("a"))
			f.wantKind(kind, err)
		}
		f.Faults.Answer(0)
		require.Equal(f, []string{"a"}, keysOf(f.listObjects("", 10)))
	}},

	{name: "a store that cannot be reached is Unavailable", applies: hasFaults, test: func(f *sourceFixture) {
		f.Faults.Answer(-1)
		_, err := f.List(f.ctx, f.Bucket, "", "", 10)
		f.wantKind(domain.Unavailable, err)
		_, err = f.Stat(f.ctx, f.nameOf("a"), nil)
		f.wantKind(domain.Unavailable, err)
	}},

	{name: "truncated content is Unavailable", applies: hasFaults, test: func(f *sourceFixture) {
		f.Put(f, "a", strings.Repeat("x", 1000))
		f.Faults.CutNext()
		content, err := f.Open(f.ctx, f.nameOf("a"))
		require.NoError(f, err)
		_, err = io.ReadAll(content)
		f.wantKind(domain.Unavailable, err)
		require.NotErrorIs(f, err, io.ErrUnexpectedEOF)
		require.NoError(f, content.Close())
		require.Len(f, f.readContent("a"), 1000)
	}},

	{name: "a listing that repeats a page fails, and the page can be asked for again", applies: hasFaults, test: func(f *sourceFixture) {
		for n := range 6 {
			f.Put(f, fmt.Sprint("key", n), "x")
		}
		first, err := f.List(f.ctx, f.Bucket, "", "", 2)
		require.NoError(f, err)
		f.Faults.RepeatNext()
		_, err = f.List(f.ctx, f.Bucket, "", first.Cursor, 2)
		f.wantKind(domain.Unavailable, err)
		second, err := f.List(f.ctx, f.Bucket, "", first.Cursor, 2)
		require.NoError(f, err)
		require.Equal(f, []string{"key2", "key3"}, keysOf(second.Objects))
	}},
}

func hasFaults(s *SourceStore) bool { return s.Faults != nil }
