package api_test

import (
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parts returns the ranges and the texts of all parts of a multipart response.
func (a domainAnswer) parts(t *testing.T) (ranges, texts []string) {
	t.Helper()
	media, params, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/byteranges", media)
	reader := multipart.NewReader(strings.NewReader(a.body), params["boundary"])
	for {
		part, err := reader.NextPart()
		if err == io.EOF { //nolint:errorlint // as documented
			return ranges, texts
		}
		require.NoError(t, err)
		text, err := io.ReadAll(part)
		require.NoError(t, err)
		ranges, texts = append(ranges, part.Header.Get("Content-Range")), append(texts, string(text))
	}
}

func TestRanges_KeepTheirOrderOrGiveTheWholeBody(t *testing.T) {
	f := serve(t)
	for n := range 4 {
		f.post(202, newEvent(n+1, "weight", 100, "payload", strings.Repeat("x", 100_000)))
	}
	first := f.do("GET", "/v1/peek", "").wants(200)
	body, size := first.body, len(first.body)
	path := "/v1/bundles/" + first.header.Get("MessageId")
	for _, tc := range []struct {
		name   string
		ranges [][2]int // expected ranges; nil if the response must contain the whole body
		header string
	}{
		{"small ones, descending", [][2]int{{350_000, 350_099}, {200_000, 200_000}, {5, 10}}, "bytes=350000-350099,200000-200000,5-10"},
		{"small ones that overlap", [][2]int{{10, 20}, {15, 25}, {0, 300}}, "bytes=10-20,15-25,0-300"},
		{"the same three times", [][2]int{{7, 7}, {7, 7}, {7, 7}}, "bytes=7-7,7-7,7-7"},
		{"a suffix first", [][2]int{{size - 5, size - 1}, {0, 4}}, "bytes=-5,0-4"},
		{"one that is out of reach among them", [][2]int{{20, 29}, {0, 9}}, "bytes=20-29,99999999-,0-9"},
		{"as much as is buffered", [][2]int{{100_000, 165_534}, {0, 0}}, "bytes=100000-165534,0-0"},
		{"more than is buffered", nil, "bytes=100000-165535,0-0"},
		{"long ones that overlap", nil, "bytes=0-100000,50000-150000"},
		{"long ones, ascending", [][2]int{{0, 99_999}, {100_000, 149_999}, {200_000, 299_999}}, "bytes=0-99999,100000-149999,200000-299999"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := f.do("GET", path, "", "Range", tc.header)
			if tc.ranges == nil {
				require.Equal(t, body, got.wants(200).body)
				return
			}
			var wantRanges, wantTexts []string
			for _, r := range tc.ranges {
				wantRanges = append(wantRanges, fmt.Sprintf("bytes %d-%d/%d", r[0], r[1], size))
				wantTexts = append(wantTexts, body[r[0]:r[1]+1])
			}
			ranges, texts := got.wants(206).parts(t)
			require.Equal(t, wantRanges, ranges)
			require.Equal(t, wantTexts, texts)
		})
	}
	tag := first.header.Get("ETag")
	require.Equal(t, body, f.do("GET", path, "", "Range", "bytes=20-29,0-9", "If-Range", tag).wants(200).body)
	require.Equal(t, 206, f.do("GET", path, "", "Range", "bytes=0-9,20-29", "If-Range", tag).status)
	f.do("GET", path, "", "Range", "bytes=20-29,0-9", "If-None-Match", tag).wants(304)
	for _, malformed := range []string{"bytes=20-29,5-2", "bytes=20-29,x", "bytes=9-,-", "bytes=2-3,--1", "bytes=2-3,+-1", "bytes=3-,9223372036854775808-"} {
		f.do("GET", path, "", "Range", malformed).problem(416, "range-not-satisfiable")
	}
	require.Equal(t, body[3:], f.do("GET", path, "", "Range", "bytes=3-9223372036854775807").wants(206).body)
}
