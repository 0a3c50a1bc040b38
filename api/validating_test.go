package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

func init() {
	// Bodies of these types are not validated here: the tests of a check validate each of its
	// lines, a domain produces XML, and package docs tests the pages.
	for _, mediaType := range []string{"application/x-ndjson", "application/xml", "text/html", "text/css"} {
		openapi3filter.RegisterBodyDecoder(mediaType, func(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
			text, err := io.ReadAll(body)
			return string(text), err
		})
	}
}

// document loads openapi.yaml and a router for it. The library validates a document of version 3.1
// according to JSON Schema 2020-12, without settings.
var document = sync.OnceValues(func() (*openapi3.T, routers.Router) {
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		panic(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		panic(err)
	}
	doc.Servers = nil // with servers, the router would accept "/" as a prefix of every path
	// The library refuses null if a schema does not state a type.
	doc.Components.Schemas["Event"].Value.Properties["payload"].Value.Type = &openapi3.Types{"object", "array", "string", "number", "boolean", "null"}
	router, err := legacy.NewRouter(doc) // also validates the document, including its examples
	if err != nil {
		panic(err)
	}
	return doc, router
})

// A validatingTransport fails the test if a request or response does not match openapi.yaml. It
// validates all responses, and all requests that succeeded.
type validatingTransport struct {
	t    *testing.T
	next http.RoundTripper
}

// maxValidated is the maximum size of a body that is validated. Validating 50 MB would take far
// longer than the test itself.
const maxValidated = 1 << 20

func (v *validatingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	asked := req.Clone(context.WithoutCancel(req.Context()))
	if req.GetBody != nil {
		asked.Body, _ = req.GetBody()
	}
	resp, err := v.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = &replayedBody{bytes.NewReader(body), err}
	if err == nil {
		v.validate(asked, resp, body)
	}
	return resp, nil
}

// A replayedBody returns the bytes and the error of a body that was already read.
type replayedBody struct {
	r   io.Reader
	err error
}

func (b *replayedBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err == io.EOF && b.err != nil {
		err = b.err
	}
	return n, err
}

func (b *replayedBody) Close() error { return nil }

func (v *validatingTransport) validate(req *http.Request, resp *http.Response, body []byte) {
	v.t.Helper()
	doc, router := document()
	options := &openapi3filter.Options{
		IncludeResponseStatus: true,
		MultiError:            true,
		ExcludeResponseBody:   len(body) > maxValidated,
		ExcludeRequestBody:    req.ContentLength > maxValidated,
		AuthenticationFunc:    showsToken,
	}
	input := &openapi3filter.RequestValidationInput{Request: req, Options: options}
	var err error
	req = foldPath(req)
	input.Request = req
	if resp.Header.Get("Content-Encoding") == "gzip" && req.Method == "GET" {
		body = gunzipped(v.t, body)
	}
	if input.Route, input.PathParams, err = router.FindRoute(req); err != nil || strings.HasSuffix(req.URL.Path, "/") { // the router ignores a trailing slash
		input.Route = missingRoute(v.t, doc, resp.StatusCode)
	} else if resp.StatusCode < 400 {
		// A request that was accepted must be valid. A refused request need not be valid.
		if err := openapi3filter.ValidateRequest(req.Context(), input); err != nil {
			v.t.Errorf("%s %s: the request was taken, but openapi.yaml forbids it: %v", req.Method, req.URL, err)
		}
	}
	answer := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input,
		Status:                 resp.StatusCode,
		Header:                 resp.Header,
		Options:                options,
	}
	answer.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(req.Context(), answer); err != nil {
		v.t.Errorf("%s %s: the answer is not as openapi.yaml has it: %v\n%s", req.Method, req.URL, err, body)
	}
}

// showsToken returns an error if the request lacks the header or bearer token that its security scheme
// requires. It does not verify the value.
func showsToken(_ context.Context, in *openapi3filter.AuthenticationInput) error {
	if header := in.SecurityScheme.Name; in.SecurityScheme.Type == "apiKey" {
		if in.RequestValidationInput.Request.Header.Get(header) == "" {
			return errors.New("no header " + header)
		}
		return nil
	}
	if scheme, _, _ := strings.Cut(in.RequestValidationInput.Request.Header.Get("Authorization"), " "); !strings.EqualFold(scheme, "Bearer") {
		return errors.New("no bearer token")
	}
	return nil
}

// foldPath returns req with its path spelled as in openapi.yaml. Paths of the original may be in
// upper or lower case.
func foldPath(req *http.Request) *http.Request {
	if path := strings.ToLower(req.URL.Path); strings.HasPrefix(path, "/api/") && !strings.Contains(strings.ToUpper(req.URL.RawPath), "%2F") {
		req = req.Clone(req.Context())
		req.URL.Path, req.URL.RawPath = strings.TrimSuffix(path, "/"), ""
	}
	return req
}

func gunzipped(t *testing.T, body []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return nil
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return plain
}

// missingRoute returns a route that validates the response to a request for an unknown path.
// openapi.yaml describes this response only under components.
func missingRoute(t *testing.T, doc *openapi3.T, status int) *routers.Route {
	t.Helper()
	name := map[int]string{404: "NotListed", 405: "NotListed"}[status]
	if name == "" {
		t.Errorf("status %d from a route that openapi.yaml does not have", status)
		name = "InternalError"
	}
	responses := openapi3.NewResponses(openapi3.WithStatus(status, doc.Components.Responses[name]))
	return &routers.Route{Spec: doc, Operation: &openapi3.Operation{Responses: responses}}
}

// isManifest validates the body of a bundle in content mode manifest. For a Peek, openapi.yaml
// requires only an array.
func isManifest(t *testing.T, body string) {
	t.Helper()
	doc, _ := document()
	var value any
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		t.Fatal(err)
	}
	if err := doc.Components.Schemas["Manifest"].Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
		t.Errorf("no manifest as openapi.yaml has it: %v", err)
	}
}

// The validator itself must find faults. A validator that accepts everything would hide them.
func TestValidator_FindsFaults(t *testing.T) {
	whole := http.Header{"X-Request-Id": {"a"}, "Cache-Control": {"no-store"}, "Content-Length": {"0"}, "Retry-After": {"1"}, "Messagehub-Backlog": {"0"}}
	with := func(name, value string) http.Header {
		h := whole.Clone()
		h.Set(name, value)
		return h
	}
	const busyElsewhere = `{"type":"urn:messagehub:problem:busy","title":"t","status":503,"detail":"d","instance":"urn:messagehub:request:a"}`
	for _, tc := range []struct {
		name, method, path string
		status             int
		header             http.Header
		body               string
		wrong              bool
	}{
		{"an answer as it should be", "DELETE", "/v1/dequeue/" + id(1), 200, whole, "", false},
		{"an unknown status", "DELETE", "/v1/dequeue/" + id(1), 418, whole, "", true},
		{"a header that is missing", "DELETE", "/v1/dequeue/" + id(1), 200, with("X-Request-Id", ""), "", true},
		{"a header with another value", "DELETE", "/v1/dequeue/" + id(1), 200, with("Content-Length", "7"), "", true},
		{"a body with an unknown field", "GET", "/healthz", 200, with("Content-Type", "application/json"), `{"status":"ok","more":1}`, true},
		{"a problem of another status", "GET", "/readyz", 503, with("Content-Type", "application/problem+json"), busyElsewhere, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tc.method, "http://hub"+tc.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, router := document()
			input := &openapi3filter.RequestValidationInput{Request: req}
			if input.Route, input.PathParams, err = router.FindRoute(req); err != nil {
				t.Fatal(err)
			}
			answer := &openapi3filter.ResponseValidationInput{
				RequestValidationInput: input,
				Status:                 tc.status,
				Header:                 tc.header,
				Options:                &openapi3filter.Options{IncludeResponseStatus: true},
			}
			answer.SetBodyBytes([]byte(tc.body))
			if err := openapi3filter.ValidateResponse(t.Context(), answer); (err != nil) != tc.wrong {
				t.Errorf("validation: %v, want an error: %t", err, tc.wrong)
			}
		})
	}
}
