package api

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Reading a body backwards is expensive, because the events of the bundle must be read again from
// the first. So each request reads a body at most once, in ascending order, whatever ranges it
// requests:
//
//   - Ascending ranges that do not overlap are streamed.
//   - Ranges in any other order, of up to maxBufferedRanges bytes in all, are read in ascending
//     order into memory, and sent as parts in the order of the request.
//   - In all remaining cases, the header is ignored, which RFC 9110, section 14.2, allows: the
//     response is the whole body with status 200, which every client that sends ranges must
//     understand.

const (
	maxRanges         = 16
	maxBufferedRanges = 64 * kilobyte
)

// A byteRange is the range of bytes from start up to, but not including, end.
type byteRange struct{ start, end int64 }

func (r byteRange) length() int64 { return r.end - r.start }

// A rangeBody contains the methods of hub.Body that limitRanges uses.
type rangeBody interface {
	io.ReadSeeker
	LimitReadAhead(end int64)
}

// limitRanges returns r and body for ServeContent of net/http. It changes the header Range, or the
// order in which body is read, so that the body is read at most once. size is the length of body.
func limitRanges(r *http.Request, body rangeBody, size int64) (*http.Request, io.ReadSeeker) {
	asked := r.Header["Range"]
	if len(asked) == 0 {
		return r, body
	}
	unit, set, _ := strings.Cut(asked[0], "=")
	if r.Method != http.MethodGet || len(asked) > 1 || !strings.EqualFold(unit, "bytes") || strings.Count(set, ",") >= maxRanges {
		return withRange(r, ""), body
	}
	ranges, err := parseRanges(set, size)
	total := int64(0)
	for _, rg := range ranges {
		total += rg.length()
	}
	switch {
	case err != nil:
		return withRange(r, "bytes="+set), body // ServeContent reports any invalid range with the same text
	case len(ranges) < 2, isAscending(ranges):
		return withRange(r, "bytes="+set), &streamedRanges{rangeBody: body, ranges: ranges}
	case total <= min(size, maxBufferedRanges) && r.Header.Get("If-Range") == "":
		return withRange(r, "bytes="+set), &bufferedRanges{rangeBody: body, ranges: mergeRanges(ranges)}
	}
	return withRange(r, ""), body
}

// withRange returns a copy of r whose header Range is value. If value is "", the copy has no such
// header.
func withRange(r *http.Request, value string) *http.Request {
	c := *r
	c.Header = r.Header.Clone()
	if value == "" {
		c.Header.Del("Range")
	} else {
		c.Header.Set("Range", value)
	}
	return &c
}

var errRangeSyntax = errors.New("malformed ranges")

// parseRanges returns the ranges of set that lie within a body of size bytes, in the order of set.
func parseRanges(set string, size int64) ([]byteRange, error) {
	var ranges []byteRange
	for text := range strings.SplitSeq(set, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		first, last, found := strings.Cut(text, "-")
		first, last = strings.TrimSpace(first), strings.TrimSpace(last)
		if !found || first == "" && last == "" {
			return nil, errRangeSyntax
		}
		rg := byteRange{0, size}
		if first == "" {
			n, err := strconv.ParseInt(last, 10, 64)
			if err != nil || n < 0 {
				return nil, errRangeSyntax
			}
			rg.start = max(0, size-n)
		} else {
			var err error
			if rg.start, err = strconv.ParseInt(first, 10, 64); err != nil || rg.start < 0 {
				return nil, errRangeSyntax
			}
			if last != "" {
				n, err := strconv.ParseInt(last, 10, 64)
				if err != nil || n < rg.start {
					return nil, errRangeSyntax
				}
				rg.end = min(size, max(n, n+1)) // for the largest int64, n+1 overflows
			}
			if rg.start >= size {
				continue // RFC 9110: this range is unsatisfiable, but further ranges of the set may be satisfiable
			}
		}
		ranges = append(ranges, rg)
	}
	return ranges, nil
}

func isAscending(ranges []byteRange) bool {
	for i := 1; i < len(ranges); i++ {
		if ranges[i].start < ranges[i-1].end {
			return false
		}
	}
	return true
}

// mergeRanges returns ranges in ascending order, with overlapping ranges merged.
func mergeRanges(ranges []byteRange) []byteRange {
	ranges = slices.Clone(ranges)
	slices.SortFunc(ranges, func(a, b byteRange) int { return cmp.Compare(a.start, b.start) })
	merged := ranges[:1]
	for _, rg := range ranges[1:] {
		if last := &merged[len(merged)-1]; rg.start <= last.end {
			last.end = max(last.end, rg.end)
		} else {
			merged = append(merged, rg)
		}
	}
	return merged
}

// streamedRanges prevents the body from reading ahead beyond the current range.
type streamedRanges struct {
	rangeBody

	ranges []byteRange
}

// Seek implements io.Seeker.
func (b *streamedRanges) Seek(offset int64, whence int) (int64, error) {
	for _, rg := range b.ranges {
		if whence == io.SeekStart && rg.start == offset {
			b.LimitReadAhead(rg.end)
		}
	}
	return b.rangeBody.Seek(offset, whence)
}

// bufferedRanges reads all ranges of a body into memory at the first Read, in ascending order. A
// Read outside the ranges fails.
type bufferedRanges struct {
	rangeBody

	ranges   []byteRange // ranges in ascending order, without overlaps
	buffers  [][]byte    // contents of the ranges; nil until the first Read
	position int64
}

// Seek implements io.Seeker.
func (b *bufferedRanges) Seek(offset int64, whence int) (n int64, err error) {
	if b.buffers != nil && whence == io.SeekStart {
		b.position = offset
		return offset, nil
	}
	b.position, err = b.rangeBody.Seek(offset, whence)
	return b.position, err
}

// Read implements io.Reader.
func (b *bufferedRanges) Read(p []byte) (int, error) {
	if err := b.fill(); err != nil {
		return 0, err
	}
	for i, rg := range b.ranges {
		if rg.start <= b.position && b.position < rg.end {
			n := copy(p, b.buffers[i][b.position-rg.start:])
			b.position += int64(n)
			return n, nil
		}
	}
	return 0, fmt.Errorf("read at %d: outside the ranges", b.position)
}

func (b *bufferedRanges) fill() error {
	if b.buffers != nil {
		return nil
	}
	var buffers [][]byte
	for _, rg := range b.ranges {
		b.LimitReadAhead(rg.end)
		if _, err := b.rangeBody.Seek(rg.start, io.SeekStart); err != nil {
			return err
		}
		buffer := make([]byte, rg.length())
		if _, err := io.ReadFull(b.rangeBody, buffer); err != nil {
			return err
		}
		buffers = append(buffers, buffer)
	}
	b.buffers = buffers
	return nil
}
