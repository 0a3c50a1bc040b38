package webhook

import (
	"fmt"
	"net/http"
)

// maxRedirects is the maximum number of redirects that a call to a watch follows.
const maxRedirects = 5

// isRedirect reports whether an HTTP status is a redirect.
func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// roundTrip sends a request. It follows at most limit redirects, always with the same method and
// body. Each target must pass the same checks as the first URL, and each address must pass the
// guard.
func (c *Client) roundTrip(req *http.Request, limit int) (*http.Response, error) {
	setTrace(req.Context(), req.Header)
	visited := map[string]bool{req.URL.String(): true}
	for hops := 0; ; hops++ {
		resp, err := c.transport.RoundTrip(req)
		if err != nil || limit == 0 || !isRedirect(resp.StatusCode) {
			return resp, err
		}
		_ = resp.Body.Close() // the body is not needed
		if hops == limit {
			return nil, &prepareError{fmt.Sprintf("the receiver redirects more than %d times", limit)}
		}
		if req, err = c.redirectRequest(req, resp); err != nil {
			return nil, err
		}
		target := req.URL.String()
		if visited[target] {
			return nil, &prepareError{"the receiver redirects in a circle"}
		}
		visited[target] = true
	}
}

// redirectRequest returns the request to the target of a redirect.
func (c *Client) redirectRequest(req *http.Request, resp *http.Response) (*http.Request, error) {
	target, err := resp.Location()
	if err != nil {
		return nil, &prepareError{fmt.Sprintf("the receiver answers %d without a Location that is a URL", resp.StatusCode)}
	}
	target.Fragment, target.RawFragment = "", "" // a fragment is not sent
	if err := c.checkCall(target.String()); err != nil {
		return nil, &prepareError{"the receiver redirects to a URL that may not be called"}
	}
	next := req.Clone(req.Context())
	next.URL, next.Host = target, target.Host
	if next.Body, err = req.GetBody(); err != nil {
		return nil, &prepareError{"the call could not be repeated at another URL"}
	}
	return next, nil
}
