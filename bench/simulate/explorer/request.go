package explorer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/bench/simulate/steps"
)

// A partyRequest is a pending request of a party.
type partyRequest struct {
	key       string // text that identifies the request
	name      steps.Name
	method    string
	path      string
	header    http.Header
	body      []byte
	partition partition
}

// A partition is a logical partition.
type partition struct{ container, key string }

// A partyAnswer is an answer to a party, in canonical form.
type partyAnswer struct {
	key    string
	status int
	header http.Header
	body   []byte
}

// lost is the answer of a broken connection.
var lost = &partyAnswer{key: "reply lost"}

const (
	partitionHeader    = "X-Ms-Documentdb-Partitionkey"
	continuationHeader = "X-Ms-Continuation"
	etagHeader         = "Etag"
	conditionHeader    = "If-Match"
	anyTag             = "*" // condition that matches every etag, so that the document must exist
)

// volatileHeaders change with each request and do not affect its result.
var volatileHeaders = []string{"Authorization", "X-Ms-Date", "User-Agent", "X-Ms-Client-Request-Id", "X-Ms-Activity-Id", "X-Ms-Cosmos-Correlated-Activityid", "Content-Length"}

// requestOf reads an HTTP request.
func requestOf(req *http.Request) (*partyRequest, error) {
	if err := containers.Check(req); err != nil {
		return nil, err
	}
	r := &partyRequest{name: steps.NameOf(req), method: req.Method, path: req.URL.Path, header: req.Header.Clone()}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		r.body = body
	}
	for _, name := range volatileHeaders {
		r.header.Del(name)
	}
	r.partition.container, _ = containers.NameOf(req)
	r.partition.key = headerOf(r.header, partitionHeader)
	if r.partition.key == "" {
		return nil, fmt.Errorf("%s reads several partitions, which the explorer cannot order", r.name)
	}
	var key strings.Builder
	fmt.Fprintf(&key, "%s %s\n", r.method, r.path)
	for _, name := range slices.Sorted(maps.Keys(r.header)) {
		fmt.Fprintf(&key, "%s: %s\n", name, strings.Join(r.header[name], ","))
	}
	key.Write(r.body)
	r.key = key.String()
	return r, nil
}

// headerOf returns the value of a header. It ignores the case of the header's name.
func headerOf(h http.Header, name string) string {
	for key, values := range h {
		if strings.EqualFold(key, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// newResponse returns the HTTP response that the client sees.
func (a *partyAnswer) newResponse(req *http.Request) *http.Response {
	header := a.header.Clone()
	header.Set("Content-Length", strconv.Itoa(len(a.body)))
	return &http.Response{
		StatusCode: a.status, Status: strconv.Itoa(a.status) + " " + http.StatusText(a.status),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: req,
	}
}

// countDocuments returns the number of documents in the answer to a query.
func countDocuments(body []byte) int {
	var page struct{ Documents []json.RawMessage }
	if json.Unmarshal(body, &page) != nil {
		return 0
	}
	return len(page.Documents)
}

// answerOf makes an answer of the engine canonical. tag returns the canonical form of an etag. answerOf replaces a
// continuation token by the number of documents returned so far; earlier pages returned before documents.
func answerOf(r *engineReply, before int, tag func(string) string) (*partyAnswer, error) {
	a := &partyAnswer{status: r.status, header: http.Header{"Content-Type": {"application/json"}}}
	if etag := headerOf(r.header, etagHeader); etag != "" {
		a.header.Set(etagHeader, tag(etag))
	}
	if sub := headerOf(r.header, "X-Ms-Substatus"); sub != "" {
		a.header["x-ms-substatus"] = []string{sub}
	}
	switch {
	case r.status >= http.StatusBadRequest:
		a.body = []byte(`{"code":"` + strconv.Itoa(r.status) + `","message":""}`)
	case len(r.body) > 0:
		var err error
		if a.body, err = canonicalize(r.body, tag); err != nil {
			return nil, err
		}
	}
	if headerOf(r.header, continuationHeader) != "" {
		a.header.Set(continuationHeader, strconv.Itoa(before+countDocuments(a.body)))
	}
	a.key = fmt.Sprintf("%d %v %s", a.status, a.header, a.body)
	return a, nil
}

// systemFields are the fields that the engine adds to a document.
var systemFields = []string{"_rid", "_self", "_ts", "_attachments"}

// canonicalize removes the system fields and charges from a JSON text, and replaces each etag by the result of tag.
func canonicalize(text []byte, tag func(string) string) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	cleanValue(v, tag)
	return json.Marshal(v)
}

func cleanValue(v any, tag func(string) string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			cleanValue(item, tag)
		}
	case map[string]any:
		for _, name := range systemFields {
			delete(v, name)
		}
		for name, item := range v {
			text, isText := item.(string)
			switch {
			case isText && (name == "_etag" || strings.EqualFold(name, "etag") || strings.EqualFold(name, "ifMatch")):
				v[name] = tag(text)
			case name == "requestCharge":
				v[name] = 1
			default:
				cleanValue(item, tag)
			}
		}
	}
}
