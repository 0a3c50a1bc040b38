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

// A blobAnswer is the answer to a request. Its body, if any, has length bytes; the sender
// closes it.
type blobAnswer struct {
	status int
	header http.Header
	body   io.ReadCloser
	length int64
}

func newAnswer(status int) *blobAnswer { return &blobAnswer{status: status, header: http.Header{}} }

// withXML returns an answer with an XML document as its body.
func withXML(status int, document any) (*blobAnswer, error) {
	text, err := xml.Marshal(document)
	if err != nil {
		return nil, err
	}
	a := newAnswer(status)
	a.header.Set("Content-Type", "application/xml")
	text = append([]byte(xml.Header), text...)
	a.body, a.length = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return a, nil
}

// A blobError is an error with a status and code of Blob Storage.
type blobError struct {
	status  int
	code    string
	message string
	header  http.Header // additional headers, or nil

	authenticationDetail string // why AuthenticationFailed, in an element of its own; or ""
}

func (r *blobError) Error() string { return r.message }

func newBlobError(status int, code, format string, args ...any) error {
	return &blobError{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// notImplemented returns the error of a feature of Azure that this account does not support.
func notImplemented(format string, args ...any) error {
	return newBlobError(http.StatusNotImplemented, "NotImplemented", "the embedded account does not support "+format, args...)
}

// blobErrorOf returns the error to report to the client. Errors of the disk are included,
// because the client of an emulated account is usually its operator.
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

// errorAnswer converts an error to an answer.
func errorAnswer(err error, head bool) *blobAnswer {
	r := blobErrorOf(err)
	type document struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string

		AuthenticationErrorDetail string `xml:",omitempty"`
	}
	a, err := withXML(r.status, document{Code: r.code, Message: r.message, AuthenticationErrorDetail: r.authenticationDetail})
	if err != nil {
		a = newAnswer(http.StatusInternalServerError) // strings can always be encoded
	}
	for name, values := range r.header {
		a.header[name] = values
	}
	a.header.Set("X-Ms-Error-Code", r.code)
	if head || r.status == http.StatusNotModified { // the answer has no body
		a.header.Del("Content-Type")
		a.body, a.length = nil, 0
	}
	return a
}

// setCommonHeaders sets the headers of every answer.
func (a *blobAnswer) setCommonHeaders(r *http.Request, id string) {
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

// A contentPart is a part of a content. Reading it fails when its context ends.
type contentPart struct {
	io.Reader
	io.Closer
}

func newContentPart(ctx context.Context, c blobContent, offset, length int64) io.ReadCloser {
	return contentPart{contextReader{ctx, io.NewSectionReader(c, offset, length)}, c}
}

// A contextReader fails when its context ends.
type contextReader struct {
	ctx context.Context //nolint:containedctx // of the request
	r   io.Reader
}

func (e contextReader) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.r.Read(p)
}
