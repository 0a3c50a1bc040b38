package embedded

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A blobCall is a parsed request.
type blobCall struct {
	*http.Request
	query      url.Values
	container  string
	blob       string // "" for the container itself
	conditions conditions
}

// urlScheme returns the scheme of the URL that the client used.
func (c *blobCall) urlScheme() string {
	if c.TLS != nil {
		return "https"
	}
	return "http"
}

// handleRequest answers a request, with 503 if limit requests are running. It fails only if the
// account is closed.
func (a *Account) handleRequest(r *http.Request, limit int) (*blobAnswer, error) {
	id := strings.ToLower(rand.Text())
	answered, err := a.answerRequest(r, limit)
	if errors.Is(err, ErrClosed) {
		return nil, err
	}
	if err != nil {
		if r := blobErrorOf(err); r.status == http.StatusInternalServerError {
			a.options.Logger.Error("blob storage cannot serve a request", "request", id, "error", err)
		}
		answered = errorAnswer(err, r.Method == http.MethodHead)
	}
	answered.setCommonHeaders(r, id)
	return answered, nil
}

func (a *Account) answerRequest(r *http.Request, limit int) (*blobAnswer, error) {
	if err := a.beginRequest(limit); err != nil {
		return nil, err
	}
	defer a.endRequest()
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, newBlobError(400, "InvalidUri", "the query cannot be read")
	}
	var set http.Header // headers that a service SAS sets in the answer
	if query.Has("sig") && r.Header.Get("Authorization") == "" {
		set, err = a.authorizeLink(r, query)
	} else {
		err = a.checkAuthorization(r, query)
	}
	if err != nil {
		return nil, err
	}
	c, err := a.parseRequest(r, query)
	if err != nil {
		return nil, err
	}
	do, err := a.operationOf(c)
	if err != nil {
		return nil, err
	}
	answered, err := do(c)
	if err != nil {
		return nil, err
	}
	for name := range set {
		answered.header.Set(name, set.Get(name))
	}
	return answered, nil
}

// parseRequest parses the parts that all requests have.
func (a *Account) parseRequest(r *http.Request, query url.Values) (*blobCall, error) {
	c := &blobCall{Request: r, query: query}
	account, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if account != a.options.Account {
		return nil, newBlobError(404, "ResourceNotFound", "the path begins with the account %.30q, and this is %s", account, a.options.Account)
	}
	var named bool
	if c.container, c.blob, named = strings.Cut(rest, "/"); named {
		if err := checkBlob(c.blob); err != nil {
			return nil, err
		}
	}
	for name := range query {
		if !slices.Contains(knownParameters, name) {
			return nil, newBlobError(400, "UnsupportedQueryParameter", "the embedded account does not support the query parameter %.40q", name)
		}
	}
	for name := range r.Header {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, "x-ms-") && !strings.HasPrefix(lower, metadataPrefix) && !slices.Contains(knownHeaders, lower) {
			return nil, newBlobError(400, "UnsupportedHeader", "the embedded account does not support the header %.60s", name)
		}
	}
	var err error
	c.conditions, err = readConditions(r.Header, "")
	return c, err
}

var knownParameters = []string{
	"restype", "comp", "timeout", "prefix", "marker", "maxresults", "include", "blockid", "blocklisttype",
}

// knownHeaders are the headers that are implemented, and those that may be ignored.
var knownHeaders = []string{
	"x-ms-date", "x-ms-version", "x-ms-client-request-id", "x-ms-return-client-request-id", "x-ms-useragent",
	"x-ms-correlation-request-id", "x-ms-request-id", "x-ms-request-root-id",
	"x-ms-blob-type", "x-ms-range", "x-ms-delete-snapshots", "x-ms-blob-content-md5",
	"x-ms-blob-content-type", "x-ms-blob-content-encoding", "x-ms-blob-content-language",
	"x-ms-blob-content-disposition", "x-ms-blob-cache-control",
}

// operationOf returns the operation of a call.
func (a *Account) operationOf(c *blobCall) (func(*blobCall) (*blobAnswer, error), error) {
	restype, comp := c.query.Get("restype"), c.query.Get("comp")
	switch {
	case c.container == "":
		return nil, notImplemented("operations on the account itself (%s, comp %q)", c.Method, comp)
	case c.blob == "" && restype == "container":
		return a.containerOperation(c, comp)
	case c.blob == "" || restype != "":
		return nil, notImplemented("%s of a path without a blob's name, or with restype %q", c.Method, restype)
	}
	switch c.Method + " " + comp {
	case "PUT ":
		return a.putBlob, nil
	case "PUT block":
		return a.putBlock, nil
	case "PUT blocklist":
		return a.putBlockList, nil
	case "GET blocklist":
		return a.getBlockList, nil
	case "GET ", "HEAD ":
		return a.getBlob, nil
	case "DELETE ":
		return a.deleteBlob, nil
	}
	return nil, notImplemented("%s of a blob with comp %q", c.Method, comp)
}

func (a *Account) containerOperation(c *blobCall, comp string) (func(*blobCall) (*blobAnswer, error), error) {
	switch c.Method + " " + comp {
	case "PUT ":
		return a.createContainer, nil
	case "GET ", "HEAD ":
		return a.getContainer, nil
	case "GET list":
		return a.listBlobs, nil
	}
	return nil, notImplemented("%s of a container with comp %q", c.Method, comp)
}

// findContainer returns the container that a call names.
func (a *Account) findContainer(c *blobCall) (*blobContainer, error) {
	if err := checkContainer(c.container); err != nil {
		return nil, err
	}
	found, ok := a.index.findContainer(c.container)
	if !ok {
		return nil, containerNotFound()
	}
	return found, nil
}
