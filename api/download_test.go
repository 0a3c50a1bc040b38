package api_test

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// openFirstBundle returns a fixture with an open bundle, and the response to the Peek that opened
// it.
func openFirstBundle(t *testing.T) (*hubFixture, domainAnswer) {
	t.Helper()
	f := serve(t)
	for n := range 30 {
		f.post(202, newEvent(2*n+1, "payload", strings.Repeat("x", n*30)), newEvent(2*n+2))
	}
	return f, f.do("GET", "/v1/peek", "").wants(200)
}

// downloads returns all paths that serve the body of an open bundle.
func downloads(id string) []string {
	return []string{"/v1/peek", "/v1/peek/timeseries", "/v1/bundles/" + id, "/api/peek?responseformat=json", "/api/peek/timeseries?responseformat=json"}
}

func TestBody_IsTheSameOnEachRoute(t *testing.T) {
	f, first := openFirstBundle(t)
	id := first.header.Get("MessageId")
	require.Equal(t, strconv.Itoa(len(first.body)), first.header.Get("Content-Length"))
	require.Regexp(t, `^"[0-9a-f]{32}"$`, first.header.Get("ETag"))
	node := serve(t)
	node.store.Store = f.store.Store // this fixture is another node with the same store
	for _, on := range []*hubFixture{f, node} {
		for _, path := range downloads(id) {
			t.Run(path, func(t *testing.T) {
				got := on.do("GET", path, "").wants(200)
				require.Equal(t, first.body, got.body)
				head := on.do("HEAD", path, "").wants(200)
				require.Empty(t, head.body)
				for _, name := range []string{"ETag", "MessageId", "MessageType", "Content-Length", "Content-Type", "Accept-Ranges", "Vary", "Cache-Control", "MessageHub-Backlog"} {
					require.NotEmpty(t, first.header.Get(name), name)
					require.Equal(t, first.header.Values(name), got.header.Values(name), name)
					require.Equal(t, first.header.Values(name), head.header.Values(name), name)
				}
			})
		}
	}
}

func TestTheNextBundleHasAnotherTag(t *testing.T) {
	f, first := openFirstBundle(t)
	f.do("DELETE", "/v1/dequeue/"+first.header.Get("MessageId"), "").wants(200)
	f.post(202, newEvent(101))
	require.NotEqual(t, first.header.Get("ETag"), f.do("GET", "/v1/peek", "").wants(200).header.Get("ETag"))
}

func TestHEADAndIfMatchOpenNoBundle(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1))
	for _, path := range []string{"/v1/peek", "/v1/peek/timeseries", "/api/peek", "/api/peek/timeseries"} {
		require.Empty(t, f.do("HEAD", path, "").wants(204).header.Get("ETag"))
		f.do("GET", path, "", "If-Match", "*").wants(412)
		f.do("HEAD", path, "", "If-Match", `"a"`).wants(412)
	}
	f.do("GET", "/v1/bundles/"+id(71), "").problem(404, "not-found")
	f.do("HEAD", "/v1/bundles/"+id(71), "").wants(404)
	f.do("GET", "/v1/peek?bundleId="+id(71), "").wants(200) // this Peek opens a bundle, so no bundle was open before
	f.do("HEAD", "/v1/peek", "").wants(200)
}

func TestABundleIsServedByItsIDToItsActorWhileItIsOpen(t *testing.T) {
	f, first := openFirstBundle(t)
	path := "/v1/bundles/" + first.header.Get("MessageId")
	f.do("GET", path, "", "X-Actor-Id", "other").problem(404, "not-found")
	f.do("GET", path, "", "X-Actor-Id", "").problem(401, "missing-actor")
	f.do("GET", path+"?x=1", "").problem(400, "invalid")
	f.do("GET", "/v1/bundles/4711", "").problem(400, "invalid")
	f.do("GET", "/v1/bundles/"+strings.ToUpper(first.header.Get("MessageId")), "").wants(200)
	f.do("DELETE", "/v1/dequeue/"+first.header.Get("MessageId"), "").wants(200)
	f.do("GET", path, "").problem(404, "not-found")
}

func TestRange_ReturnsTheRequestedBytes(t *testing.T) {
	f, first := openFirstBundle(t)
	whole, size := first.body, len(first.body)
	for _, tc := range []struct {
		ranges   string
		from, to int // expected range; from is -1 if the whole body is expected
	}{
		{"bytes=0-0", 0, 1},
		{"bytes=0-9", 0, 10},
		{"BYTES=10-19", 10, 20},
		{"bytes=1-", 1, size},
		{"bytes= 3-5", 3, 6},
		{"bytes=-7", size - 7, size},
		{"bytes=-1", size - 1, size},
		{"bytes=-99999999", 0, size},
		{"bytes=0-99999999", 0, size},
		{fmt.Sprintf("bytes=%d-%d", size-1, size-1), size - 1, size},
		{fmt.Sprintf("bytes=%d-", size/2), size / 2, size},
		{"bytes=4-6,", 4, 7},
		{"bytes=5-6,99999999-", 5, 7}, // only the first range is within the body
		{"bytes=", -1, 0},
		{"bytes=,,", -1, 0},
		{"lines=0-1", -1, 0},
		{"bytes", -1, 0},
		{"nonsense", -1, 0},
		{fmt.Sprintf("bytes=0-%d,1-%d", size-1, size-1), -1, 0}, // together, the ranges are longer than the body
		{"bytes=0-0" + strings.Repeat(",2-2", 16), -1, 0},       // too many ranges
		{"bytes=0-0" + strings.Repeat(",2-2", 5_000), -1, 0},
	} {
		for _, path := range downloads(first.header.Get("MessageId")) {
			t.Run(tc.ranges[:min(30, len(tc.ranges))]+" "+path, func(t *testing.T) {
				got := f.do("GET", path, "", "Range", tc.ranges)
				require.Equal(t, first.header.Get("ETag"), got.header.Get("ETag"))
				require.Equal(t, first.header.Get("MessageId"), got.header.Get("MessageId"))
				if tc.from < 0 {
					got.wants(200)
					require.Equal(t, whole, got.body)
					require.Empty(t, got.header.Get("Content-Range"))
					return
				}
				got.wants(206)
				require.Equal(t, whole[tc.from:tc.to], got.body)
				require.Equal(t, fmt.Sprintf("bytes %d-%d/%d", tc.from, tc.to-1, size), got.header.Get("Content-Range"))
			})
		}
	}
}

func TestAnInvalidRangeIs416(t *testing.T) {
	f, first := openFirstBundle(t)
	size := len(first.body)
	for _, ranges := range []string{
		"bytes=abc", "bytes=-", "bytes=--1", "bytes=5-2", "bytes=1-x", "bytes=-0", "bytes=99999999999999999999-", "bytes=0x1-2", "bytes=1",
		fmt.Sprintf("bytes=%d-", size), fmt.Sprintf("bytes=%d-%d", size, size+5), "bytes=88888888-99999999,99999999-",
	} {
		t.Run(ranges, func(t *testing.T) {
			for _, path := range downloads(first.header.Get("MessageId")) {
				a := f.do("GET", path, "", "Range", ranges).wants(416)
				require.Equal(t, fmt.Sprintf("bytes */%d", size), a.header.Get("Content-Range"))
				require.Empty(t, a.header.Get("MessageId"))
				if strings.HasPrefix(path, "/v1") {
					a.problem(416, "range-not-satisfiable")
				}
			}
		})
	}
	f.do("HEAD", "/v1/peek", "", "Range", "bytes=abc").wants(200) // the header Range does not apply to HEAD
	require.Equal(t, first.body, f.do("GET", "/v1/peek", "", "Range", "bytes=0-1", "Range", "bytes=2-3").wants(200).body)
}

func TestSeveralRangesAreSeveralParts(t *testing.T) {
	f, first := openFirstBundle(t)
	for _, places := range [][][2]int{
		{{0, 1}, {5, 9}},
		{{1000, 1999}, {3, 3}, {500, 800}}, // the ranges may have any order
		{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6}, {7, 7}, {8, 8}, {9, 9}, {10, 10}, {11, 11}, {12, 12}, {13, 13}, {14, 14}, {15, 15}},
	} {
		var wanted []string
		for _, p := range places {
			wanted = append(wanted, fmt.Sprintf("%d-%d", p[0], p[1]))
		}
		a := f.do("GET", "/v1/peek", "", "Range", "bytes="+strings.Join(wanted, ", ")).wants(206)
		media, params, err := mime.ParseMediaType(a.header.Get("Content-Type"))
		require.NoError(t, err)
		require.Equal(t, "multipart/byteranges", media)
		require.Equal(t, strconv.Itoa(len(a.body)), a.header.Get("Content-Length"))
		parts := multipart.NewReader(strings.NewReader(a.body), params["boundary"])
		for _, p := range places {
			part, err := parts.NextPart()
			require.NoError(t, err)
			text, err := io.ReadAll(part)
			require.NoError(t, err)
			require.Equal(t, first.body[p[0]:p[1]+1], string(text))
			require.Equal(t, fmt.Sprintf("bytes %d-%d/%d", p[0], p[1], len(first.body)), part.Header.Get("Content-Range"))
			require.Equal(t, "application/json", part.Header.Get("Content-Type"))
		}
		_, err = parts.NextPart()
		require.ErrorIs(t, err, io.EOF)
	}
}

func TestConditions_ApplyToTheOpenBundle(t *testing.T) {
	f, first := openFirstBundle(t)
	tag := first.header.Get("ETag")
	for _, tc := range []struct {
		header, value string
		status        int
	}{
		{"If-Match", tag, 200},
		{"If-Match", `"other", ` + tag, 200},
		{"If-Match", "*", 200},
		{"If-Match", `"other"`, 412},
		{"If-Match", "W/" + tag, 412}, // If-Match never matches a weak tag, because it compares strongly
		{"If-Match", strings.Trim(tag, `"`), 412},
		{"If-None-Match", tag, 304},
		{"If-None-Match", "W/" + tag, 304},
		{"If-None-Match", "*", 304},
		{"If-None-Match", `"other",` + tag, 304},
		{"If-None-Match", `"other"`, 200},
		{"If-None-Match", "nonsense", 200},
		{"If-Modified-Since", "Mon, 02 Jan 2090 15:04:05 GMT", 200}, // the header is ignored, because bundles have no modification time
		{"If-Unmodified-Since", "Mon, 02 Jan 2006 15:04:05 GMT", 200},
	} {
		for _, path := range downloads(first.header.Get("MessageId")) {
			t.Run(tc.header+" "+tc.value+" "+path, func(t *testing.T) {
				for _, method := range []string{"GET", "HEAD"} {
					a := f.do(method, path, "", tc.header, tc.value).wants(tc.status)
					switch {
					case tc.status == 200 && method == "GET":
						require.Equal(t, first.body, a.body)
					case tc.status == 304:
						require.Empty(t, a.body)
						require.Equal(t, tag, a.header.Get("ETag"))
						require.Equal(t, first.header.Get("MessageId"), a.header.Get("MessageId"))
					case tc.status == 412:
						require.Empty(t, a.header.Get("MessageId"))
					}
				}
			})
		}
	}
}

func TestIfRange_ReturnsThePartOrTheWholeBody(t *testing.T) {
	f, first := openFirstBundle(t)
	tag, id1 := first.header.Get("ETag"), first.header.Get("MessageId")
	for _, path := range downloads(id1) {
		require.Equal(t, first.body[10:20], f.do("GET", path, "", "Range", "bytes=10-19", "If-Range", tag).wants(206).body)
		for _, other := range []string{`"other"`, "W/" + tag, "Mon, 02 Jan 2006 15:04:05 GMT", "nonsense"} {
			require.Equal(t, first.body, f.do("GET", path, "", "Range", "bytes=10-19", "If-Range", other).wants(200).body)
		}
	}
	// After the bundle was dequeued, a Peek opens the next bundle, to which the range does not
	// apply.
	f.do("DELETE", "/v1/dequeue/"+id1, "").wants(200)
	f.do("GET", "/v1/bundles/"+id1, "", "Range", "bytes=10-19", "If-Range", tag).problem(404, "not-found")
	f.post(202, newEvent(101))
	f.do("GET", "/v1/peek", "", "Range", "bytes=10-19", "If-Match", tag).problem(412, "precondition-failed")
	next := f.do("GET", "/v1/peek", "", "Range", "bytes=10-19", "If-Range", tag).wants(200)
	require.NotEqual(t, id1, next.header.Get("MessageId"))
	require.Contains(t, next.body, id(101))
}

func TestGzipIsNegotiated(t *testing.T) {
	f, first := openFirstBundle(t)
	tag := first.header.Get("ETag")
	gzipTag := strings.TrimSuffix(tag, `"`) + `-gzip"`
	for _, tc := range []struct {
		accepts string
		gzip    bool
	}{
		{"gzip", true},
		{"GZIP", true},
		{"deflate, gzip;q=0.5, br", true},
		{"gzip;q=1.0, identity; q=0.5", true},
		{"*", true},
		{"br, *;q=0.1", true},
		{"identity;q=0, gzip", true},
		{"", false},
		{"identity", false},
		{"gzip;q=0", false},
		{"gzip;q=0, *", false},
		{"gzip;q=0.2, identity;q=0.8", false},
		{"gzip;q=nonsense", false},
		{"gzip;q=7", false},
		{"br, deflate", false},
		{"x-gzip-not", false},
		{";;,,=;q", false},
	} {
		for _, path := range downloads(first.header.Get("MessageId")) {
			t.Run(tc.accepts+" "+path, func(t *testing.T) {
				a := f.do("GET", path, "", "Accept-Encoding", tc.accepts).wants(200)
				require.Equal(t, "Accept-Encoding", a.header.Get("Vary"))
				if !tc.gzip {
					require.Empty(t, a.header.Get("Content-Encoding"))
					require.Equal(t, tag, a.header.Get("ETag"))
					require.Equal(t, first.body, a.body)
					return
				}
				require.Equal(t, "gzip", a.header.Get("Content-Encoding"))
				require.Equal(t, gzipTag, a.header.Get("ETag"))
				require.Equal(t, first.body, string(gunzipped(t, []byte(a.body))))
				require.Less(t, len(a.body), len(first.body)/4)
				require.Equal(t, a.body, f.do("GET", path, "", "Accept-Encoding", tc.accepts).body, "the same bytes again")
				head := f.do("HEAD", path, "", "Accept-Encoding", tc.accepts).wants(200)
				require.Equal(t, gzipTag, head.header.Get("ETag"))
				require.Equal(t, "gzip", head.header.Get("Content-Encoding"))
				f.do("GET", path, "", "Accept-Encoding", tc.accepts, "If-None-Match", gzipTag).wants(304)
				f.do("GET", path, "", "Accept-Encoding", tc.accepts, "If-None-Match", tag).wants(200)
				f.do("GET", path, "", "Accept-Encoding", tc.accepts, "If-Match", gzipTag).wants(200)
			})
		}
	}
	part := f.do("GET", "/v1/peek", "", "Accept-Encoding", "gzip", "Range", "bytes=0-9").wants(206)
	require.Empty(t, part.header.Get("Content-Encoding"), "a range is one of the body as it is")
	require.Equal(t, tag, part.header.Get("ETag"))
	require.Equal(t, first.body[:10], part.body)
	whole := f.do("GET", "/v1/peek", "", "Accept-Encoding", "gzip", "Range", "bytes=0-9", "If-Range", gzipTag).wants(200)
	require.Equal(t, first.body, whole.body, "a part of the compressed body is not to be had")
}

func TestRanges_AreCutIfAReadFails(t *testing.T) {
	f := serve(t)
	sound := savePayloadObjects(f, 20)
	f.do("GET", "/v1/peek", "", "Range", "bytes=500000-").problem(500, "internal") // reading the store fails before the first byte is sent
	f.do("GET", "/v1/peek", "", "Accept-Encoding", "gzip").problem(500, "internal")
	for _, tc := range []struct {
		header, value string
		sound         int32
	}{{"Range", "bytes=0-9, 500000-", 1}, {"Range", "bytes=500000-500009, 0-9", 0}, {"Range", "bytes=1000-", 5}, {"Accept-Encoding", "gzip", 5}} {
		t.Run(tc.value, func(t *testing.T) {
			sound.Store(tc.sound)
			req := f.newRequest("GET", "/v1/peek", http.NoBody)
			req.Header.Set(tc.header, tc.value)
			resp, err := f.client.Do(req)
			if err == nil {
				defer resp.Body.Close()
				_, err = io.ReadAll(resp.Body)
			}
			if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) { // the error is EOF if not even the header was sent
				t.Fatalf("the answer must not look whole: %v", err)
			}
		})
	}
}
