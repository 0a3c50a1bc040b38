package embedded

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// ErrClosed reports a request after Close.
var ErrClosed = errors.New("the embedded engine is closed")

// A Transport carries requests to an Engine by a call, without a network. It
// is what azcore calls a policy.Transporter.
type Transport struct {
	engine *Engine
	door   Door
}

// Transport returns the way to this engine.
func (e *Engine) Transport() *Transport { return e.TransportOf(Door{}) }

// TransportOf returns a way to this engine through a door of its own.
func (e *Engine) TransportOf(d Door) *Transport { return &Transport{engine: e, door: d} }

// Do answers req. It starts no goroutine.
//
// If the context of req ends before the answer is there, Do returns its error
// although the engine may still do what was asked, as with a network. Whether
// it did is for the caller to find out.
func (t *Transport) Do(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !t.engine.beginRequest() {
		return nil, ErrClosed
	}
	defer t.engine.requests.Done()
	answer := t.engine.server.Serve(req, t.door) //nolint:contextcheck // the request carries it
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	answer.Header["Content-Length"] = []string{strconv.Itoa(len(answer.Body))}
	return &http.Response{
		Status:        strconv.Itoa(answer.Status) + " " + http.StatusText(answer.Status),
		StatusCode:    answer.Status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        answer.Header,
		Body:          io.NopCloser(bytes.NewReader(answer.Body)),
		ContentLength: int64(len(answer.Body)),
		Request:       req, // the client panics without it
	}, nil
}
