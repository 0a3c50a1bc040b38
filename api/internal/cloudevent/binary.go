package cloudevent

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

const headerPrefix = "Ce-"

// IsBinary reports whether a request contains an event in the binary mode.
func IsBinary(h http.Header) bool { return len(h[headerPrefix+"Specversion"]) > 0 }

// Binary decodes an event in the binary mode: headers contain its attributes, and the body is its
// data.
func Binary(h http.Header, body []byte) (domain.Message, []Fault) {
	b := newBuilder()
	var names []string
	for header := range h {
		if strings.HasPrefix(header, headerPrefix) {
			names = append(names, header)
		}
	}
	slices.Sort(names) // sorted, so that the same request always results in the same faults
	for _, header := range names {
		name := strings.ToLower(strings.TrimPrefix(header, headerPrefix))
		values := h[header]
		text, err := url.PathUnescape(values[0])
		switch {
		case len(values) > 1:
			b.reportFault(name, "its header is there more than once")
		case err != nil:
			b.reportFault(name, "want a header in which % begins an encoded byte, such as %25")
		case name == "datacontenttype":
			b.reportFault(name, "want the header Content-Type in its place")
		default:
			b.setAttribute(name, text)
		}
	}
	if contentType := h.Get("Content-Type"); contentType != "" {
		b.setAttribute("datacontenttype", contentType)
	}
	b.message.Payload = body
	return b.finish()
}
