package embedded

import (
	"io"
	"net/http"
	"strconv"
)

// A Transport passes requests to an Account without a network. It implements policy.Transporter
// of azcore.
type Transport struct{ account *Account }

// Transport returns a Transport that sends requests to this account.
func (a *Account) Transport() *Transport { return &Transport{account: a} }

// Do executes req. It starts no goroutine.
//
// If the context of req ends first, Do returns the error of the context. The account may still execute the request, as
// a remote server would.
func (t *Transport) Do(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	resp, err := t.account.handleRequest(asReceived(req), t.account.options.MaxRequests)
	if err != nil {
		return nil, err
	}
	body := resp.body
	if body == nil {
		body = http.NoBody
	}
	if err := ctx.Err(); err != nil {
		_ = body.Close()
		return nil, err
	}
	length := resp.length
	if req.Method == http.MethodHead {
		length, _ = strconv.ParseInt(resp.header.Get("Content-Length"), 10, 64)
	}
	return &http.Response{
		Status:        strconv.Itoa(resp.status) + " " + http.StatusText(resp.status),
		StatusCode:    resp.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        canonicalHeader(resp.header),
		Body:          body,
		ContentLength: length,
		Request:       req, // azblob panics if Request is nil
	}, nil
}

// asReceived returns req as a server would receive it: with canonical header names, and with a body of at most
// req.ContentLength bytes.
func asReceived(req *http.Request) *http.Request {
	names := make([]string, 0, len(req.Header))
	for name := range req.Header {
		names = append(names, name)
	}
	r := req.Clone(withSentNames(req.Context(), names))
	r.Header = canonicalHeader(req.Header)
	r.Host, r.RemoteAddr = req.URL.Host, "127.0.0.1"
	if req.Body == nil {
		r.Body = http.NoBody
	} else if req.ContentLength >= 0 {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(req.Body, req.ContentLength), req.Body}
	}
	return r
}

// canonicalHeader returns a copy of h with canonical header names.
func canonicalHeader(h http.Header) http.Header {
	delivered := make(http.Header, len(h))
	for name, values := range h {
		for _, value := range values {
			delivered.Add(name, value)
		}
	}
	return delivered
}
