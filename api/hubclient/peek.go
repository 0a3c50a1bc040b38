package hubclient

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// PeekOptions select the bundle that Peek returns. The zero value selects the next bundle of any
// group.
type PeekOptions struct {
	Group    string        // group of domains, such as timeseries; "" means all groups
	BundleID string        // id for a newly opened bundle, a UUID that the actor has never used; "" means that the hub chooses
	Format   string        // format of content that a domain produces: json or xml; "" means json
	Version  string        // version of the format; "" means 1.0
	Wait     time.Duration // time for which the hub waits for data, up to 1 minute
}

// path returns the path and the query of a Peek request.
func (o *PeekOptions) path() string {
	path, query := "/v1/peek", make(url.Values)
	if o.Group != "" {
		path += "/" + url.PathEscape(o.Group)
	}
	for name, value := range map[string]string{"bundleId": o.BundleID, "format": o.Format, "version": o.Version} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if o.Wait > 0 {
		query.Set("wait", o.Wait.String())
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

// ErrNoData means that no data waits for an actor.
var ErrNoData = errors.New("hubclient: no data waits for the actor")

// Peek returns the open bundle of an actor. If no bundle is open, it opens the next one. It fails
// with [ErrNoData] if the actor has no data. Until the bundle is dequeued, Peek returns it again.
//
// The caller must close the bundle. ctx also applies to reading the body: if ctx ends before the
// whole body is read, Read fails.
//
// Peek fails with a [*Problem] of status 409 if the open bundle has a different id than
// PeekOptions.BundleID, or a different format.
func (c *Client) Peek(ctx context.Context, actor string, opts PeekOptions) (b *Bundle, err error) {
	path, wait := opts.path(), opts.Wait
	err = c.repeatUntilDone(ctx, c.opts.Budget, func() error {
		b, err = c.peekOnce(ctx, actor, path, wait)
		return err
	})
	return b, err
}

// peekOnce sends the request of a Peek once.
func (c *Client) peekOnce(ctx context.Context, actor, path string, wait time.Duration) (*Bundle, error) {
	conn, err := c.startRequest(ctx, http.MethodGet, path, actor, nil, identityCoding(), wait)
	if err != nil {
		return nil, err
	}
	if conn.StatusCode == http.StatusNoContent {
		conn.close()
		return nil, &finalError{ErrNoData}
	}
	return newBundle(ctx, conn, actor)
}

// Download returns the open bundle of an actor with the given id. It never opens a bundle. It fails
// with a [*Problem] of status 404 if the bundle is not open. The caller must close the bundle.
func (c *Client) Download(ctx context.Context, actor, id string) (b *Bundle, err error) {
	err = c.repeatUntilDone(ctx, c.opts.Budget, func() error {
		conn, err := c.startRequest(ctx, http.MethodGet, bundlePath(id), actor, nil, identityCoding(), 0)
		if err != nil {
			return err
		}
		b, err = newBundle(ctx, conn, actor)
		return err
	})
	return b, err
}

func bundlePath(id string) string { return "/v1/bundles/" + url.PathEscape(id) }

// identityCoding returns a header that requests an uncompressed body, so that a download can be
// resumed at a byte position.
func identityCoding() http.Header { return http.Header{"Accept-Encoding": {"identity"}} }
