package embedded

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// A blobResponse is the response to a request. Its body is nil or has length bytes; the sender of the response closes
// the body.
type blobResponse struct {
	status int
	header http.Header
	body   io.ReadCloser
	length int64
}

func newResponse(status int) *blobResponse {
	return &blobResponse{status: status, header: http.Header{}}
}

// newXMLResponse returns a response whose body is an XML document.
func newXMLResponse(status int, document any) (*blobResponse, error) {
	text, err := xml.Marshal(document)
	if err != nil {
		return nil, err
	}
	a := newResponse(status)
	a.header.Set("Content-Type", "application/xml")
	text = append([]byte(xml.Header), text...)
	a.body, a.length = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return a, nil
}

// A blobError is an error with the HTTP status and error code of Blob Storage.
type blobError struct {
	status  int
	code    string
	message string
	header  http.Header // additional headers, or nil

	authenticationDetail string // content of the XML element AuthenticationErrorDetail, which is omitted if empty
}

func (r *blobError) Error() string { return r.message }

func newBlobError(status int, code, format string, args ...any) error {
	return &blobError{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// notImplemented returns the error for a feature of Azure that this account does not support.
func notImplemented(format string, args ...any) error {
	return newBlobError(http.StatusNotImplemented, "NotImplemented", "the embedded account does not support "+format, args...)
}

// blobErrorOf returns the error to send to the client. It includes the text of disk errors, because a client of an
// embedded account is usually also its operator.
func blobErrorOf(err error) *blobError {
	if r, ok := errors.AsType[*blobError](err); ok {
		return r
	}
	r := &blobError{status: http.StatusInternalServerError, code: "InternalError", message: err.Error()}
	if errors.Is(err, ErrClosed) {
		r.status, r.code = http.StatusServiceUnavailable, "ServerBusy"
	}
	return r
}

// newErrorResponse returns the response for an error. head tells whether the request is a HEAD request.
func newErrorResponse(err error, head bool) *blobResponse {
	r := blobErrorOf(err)
	type document struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string

		AuthenticationErrorDetail string `xml:",omitempty"`
	}
	a, err := newXMLResponse(r.status, document{Code: r.code, Message: r.message, AuthenticationErrorDetail: r.authenticationDetail})
	if err != nil {
		a = newResponse(http.StatusInternalServerError) // cannot happen, because strings can always be encoded
	}
	for name, values := range r.header {
		a.header[name] = values
	}
	a.header.Set("X-Ms-Error-Code", r.code)
	if head || r.status == http.StatusNotModified { // such a response must have no body
		a.header.Del("Content-Type")
		a.body, a.length = nil, 0
	}
	return a
}

// setCommonHeaders sets the headers that every response has.
func (a *blobResponse) setCommonHeaders(r *http.Request, id string) {
	a.header.Set("Server", "MessageHub-Blob/1.0")
	a.header.Set("X-Ms-Request-Id", id)
	a.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	if v := r.Header.Get("X-Ms-Version"); v != "" {
		a.header.Set("X-Ms-Version", v)
	}
	if v := r.Header.Get("X-Ms-Client-Request-Id"); v != "" {
		a.header.Set("X-Ms-Client-Request-Id", v)
	}
	if a.header.Get("Content-Length") == "" {
		a.header.Set("Content-Length", strconv.FormatInt(a.length, 10))
	}
}

// A contentPart reads a part of a blob's content. It fails if the context ends.
type contentPart struct {
	io.Reader
	io.Closer
}

func newContentPart(ctx context.Context, c blobContent, offset, length int64) io.ReadCloser {
	return contentPart{contextReader{ctx, io.NewSectionReader(c, offset, length)}, c}
}

// A contextReader is a reader that fails if its context ends.
type contextReader struct {
	ctx context.Context //nolint:containedctx // context of the request
	r   io.Reader
}

func (e contextReader) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.r.Read(p)
}
