// Package etag converts versions of documents to and from the headers ETag and
// If-Match (RFC 9110).
package etag

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// Of returns the ETag of a version.
func Of(version string) string {
	return `"` + base64.RawURLEncoding.EncodeToString([]byte(version)) + `"`
}

// Match returns the versions in the header If-Match of a request. exists is true if the header is
// *, which matches any existing version. A tag that is not a version matches no document. Without
// the header, Match returns false and nil.
func Match(r *http.Request) (exists bool, versions []string) {
	for _, line := range r.Header.Values("If-Match") {
		for tag := range strings.SplitSeq(line, ",") { // the split is safe, because versions contain no comma
			tag = strings.TrimSpace(tag)
			if tag == "*" {
				return true, nil
			}
			version, err := base64.RawURLEncoding.DecodeString(strings.Trim(tag, `"`))
			if err != nil || len(tag) < 2 || tag[0] != '"' || tag[len(tag)-1] != '"' {
				version = []byte("none")
			}
			versions = append(versions, string(version))
		}
	}
	return false, versions
}
