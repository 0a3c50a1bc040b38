package embedded

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// A span is the range of a blob that a client requests.
type span struct {
	from, length int64
	whole        bool // true if the client requests the whole blob
}

// readSpan reads the range from x-ms-range or Range, for a blob of size bytes. As HTTP requires, it ignores an invalid
// Range, so the whole blob is returned.
func readSpan(h http.Header, size int64) (span, error) {
	text := cmp.Or(h.Get("X-Ms-Range"), h.Get("Range"))
	if text == "" {
		return span{length: size, whole: true}, nil
	}
	bounds, isBytes := strings.CutPrefix(text, "bytes=")
	first, last, hasDash := strings.Cut(bounds, "-")
	from, err := strconv.ParseInt(first, 10, 64)
	to := size - 1
	if err == nil && last != "" {
		to, err = strconv.ParseInt(last, 10, 64)
	}
	if err != nil || !isBytes || !hasDash || from < 0 || last != "" && to < from {
		if h.Get("X-Ms-Range") == "" {
			return span{length: size, whole: true}, nil
		}
		return span{}, newBlobError(400, "InvalidHeaderValue", "header x-ms-range %.60q: want bytes=FROM-TO or bytes=FROM-", text)
	}
	if from >= size {
		return span{}, &blobError{
			status: http.StatusRequestedRangeNotSatisfiable, code: "InvalidRange",
			message: fmt.Sprintf("the range begins at %d, and the blob has %d bytes", from, size),
			header:  http.Header{"Content-Range": {fmt.Sprintf("bytes */%d", size)}},
		}
	}
	return span{from: from, length: min(to, size-1) - from + 1}, nil
}

func (s span) contentRange(size int64) string {
	return fmt.Sprintf("bytes %d-%d/%d", s.from, s.from+s.length-1, size)
}
