package embedded

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// ErrClosed reports a request that was sent after Close.
var ErrClosed = errors.New("the embedded engine is closed")

// A Transport passes requests to an Engine without a network. It implements policy.Transporter.
type Transport struct {
	engine   *Engine
	endpoint EndpointOptions
}

// Transport returns a Transport that sends requests to this engine.
func (e *Engine) Transport() *Transport { return e.TransportOf(EndpointOptions{}) }

// TransportOf returns a Transport with the options d.
func (e *Engine) TransportOf(d EndpointOptions) *Transport { return &Transport{engine: e, endpoint: d} }

// Do executes req. It starts no goroutine.
//
// If the context of req ends first, Do returns the error of the context. The engine may still execute the request, as a
// remote server would, so the caller must find out whether it did.
func (t *Transport) Do(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !t.engine.beginRequest() {
		return nil, ErrClosed
	}
	defer t.engine.requests.Done()
	answer := t.engine.server.Serve(req, t.endpoint) //nolint:contextcheck // the request carries it
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
		Request:       req, // azcosmos panics if Request is nil
	}, nil
}
