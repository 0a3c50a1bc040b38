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

// An answer is what a request comes to. Its body, if there is one, yields length
// bytes, and whoever sends it closes it.
type blobAnswer struct {
	status int
	header http.Header
	body   io.ReadCloser
	length int64
}

func newAnswer(status int) *blobAnswer { return &blobAnswer{status: status, header: http.Header{}} }

// withXML returns an answer with a document for a body.
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

// A refusal is an answer that says why not, in the codes of Blob Storage.
type blobError struct {
	status  int
	code    string
	message string
	header  http.Header // more to say, or nil
}

func (r *blobError) Error() string { return r.message }

func newBlobError(status int, code, format string, args ...any) error {
	return &blobError{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// notImplemented refuses what Azure has and this account does not.
func notImplemented(format string, args ...any) error {
	return newBlobError(http.StatusNotImplemented, "NotImplemented", "the embedded account does not have "+format, args...)
}

// blobErrorOf says how an error is told to the client. What is wrong with the disk
// is told as well, for on an account like this client and operator are near.
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

// errorAnswer turns an error into an answer.
func errorAnswer(err error, head bool) *blobAnswer {
	r := blobErrorOf(err)
	type document struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}
	a, err := withXML(r.status, document{Code: r.code, Message: r.message})
	if err != nil {
		a = newAnswer(http.StatusInternalServerError) // two strings always can be written
	}
	for name, values := range r.header {
		a.header[name] = values
	}
	a.header.Set("X-Ms-Error-Code", r.code)
	if head || r.status == http.StatusNotModified { // has no body
		a.header.Del("Content-Type")
		a.body, a.length = nil, 0
	}
	return a
}

// setCommonHeaders sets the headers that every answer has.
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

// A piece is a part of a content. It ends with the context it is read for.
type contentPart struct {
	io.Reader
	io.Closer
}

func newContentPart(ctx context.Context, c blobContent, offset, length int64) io.ReadCloser {
	return contentPart{contextReader{ctx, io.NewSectionReader(c, offset, length)}, c}
}

// An ended reader stops when its context does.
type contextReader struct {
	ctx context.Context //nolint:containedctx // that of the request whose body is read or answered
	r   io.Reader
}

func (e contextReader) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.r.Read(p)
}
