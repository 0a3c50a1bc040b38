package embedded

import (
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	metadataPrefix = "x-ms-meta-"
	maxMetadata    = 8 << 10 // maximum total bytes of metadata names and values
	maxHeader      = 1 << 10 // maximum bytes of one property
)

var metadataName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// readMetadata reads the x-ms-meta- headers of a request. Names have the case in which the client sent them, or lower
// case if this case is unknown.
func readMetadata(r *http.Request) (map[string]string, error) {
	sent := sentNames(r.Context())
	var metadata map[string]string
	total := 0
	for header, values := range r.Header {
		name, ok := strings.CutPrefix(strings.ToLower(header), metadataPrefix)
		if !ok {
			continue
		}
		if asSent, ok := sent[metadataPrefix+name]; ok {
			name = asSent[len(metadataPrefix):]
		}
		if !metadataName.MatchString(name) {
			return nil, newBlobError(400, "InvalidMetadata", "the name of metadata %.60q: want letters, digits and _, no digit first", name)
		}
		if metadata == nil {
			metadata = map[string]string{}
		}
		metadata[name] = strings.Join(values, ",")
		if !utf8.ValidString(metadata[name]) { // JSON and XML can represent only UTF-8
			return nil, newBlobError(400, "InvalidMetadata", "the metadata %.60q is not UTF-8", name)
		}
		total += len(name) + len(metadata[name])
	}
	if total > maxMetadata {
		return nil, newBlobError(400, "MetadataTooLarge", "the metadata has %d bytes, more than %d", total, maxMetadata)
	}
	return metadata, nil
}

// storedHeaders are the blob properties that are returned as headers.
var storedHeaders = []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Cache-Control"}

// readProperties reads the blob properties from the headers of a write. If own is true, as for Put Blob, the standard
// headers of the request also set properties.
func readProperties(r *http.Request, own bool) (*version, error) {
	h := r.Header
	v := &version{Headers: map[string]string{}}
	for _, name := range storedHeaders {
		value := h.Get("X-Ms-Blob-" + name)
		if value == "" && own {
			value = h.Get(name)
		}
		if len(value) > maxHeader {
			return nil, newBlobError(400, "InvalidHeaderValue", "header %s has more than %d bytes", name, maxHeader)
		}
		if !utf8.ValidString(value) {
			return nil, newBlobError(400, "InvalidHeaderValue", "header %s is not UTF-8", name)
		}
		if value != "" {
			v.Headers[name] = value
		}
	}
	if v.Headers["Content-Type"] == "" {
		v.Headers["Content-Type"] = "application/octet-stream"
	}
	var err error
	v.Metadata, err = readMetadata(r)
	return v, err
}
