package embedded

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// A blobCall is a parsed request.
type blobCall struct {
	*http.Request
	query      url.Values
	container  string
	blob       string // name of the blob; "" if the request is for the container
	conditions conditions
	access     *sharedAccess // nil unless the request uses a shared access signature
}

// urlScheme returns the scheme of the URL that the client used.
func (c *blobCall) urlScheme() string {
	if c.TLS != nil {
		return "https"
	}
	return "http"
}

// handleRequest returns the response to a request. If limit requests are running, it is 503. It returns an error only
// if the account is closed.
func (a *Account) handleRequest(r *http.Request, limit int) (*blobResponse, error) {
	id := strings.ToLower(rand.Text())
	resp, err := a.executeRequest(r, limit)
	if errors.Is(err, ErrClosed) {
		return nil, err
	}
	if err != nil {
		if r := blobErrorOf(err); r.status == http.StatusInternalServerError {
			a.options.Logger.Error("blob storage cannot serve a request", "request", id, "error", err)
		}
		resp = newErrorResponse(err, r.Method == http.MethodHead)
	}
	resp.setCommonHeaders(r, id)
	a.setCORS(resp, r)
	return resp, nil
}

func (a *Account) executeRequest(r *http.Request, limit int) (*blobResponse, error) {
	if err := a.beginRequest(limit); err != nil {
		return nil, err
	}
	defer a.endRequest()
	return a.authorizeAndExecute(r)
}

// authorizeAndExecute authorizes and executes a request.
func (a *Account) authorizeAndExecute(r *http.Request) (*blobResponse, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, newBlobError(400, "InvalidUri", "the query cannot be read")
	}
	path, isSecondary := a.toPrimary(r.URL.Path)
	if err := a.checkAccountName(path); err != nil {
		return nil, err // checked first, because Azure reports this error before signature errors
	}
	if isSecondary {
		if err := checkSecondary(r); err != nil {
			return nil, err
		}
	}
	if r.Method == http.MethodOptions {
		return a.respondToPreflight(r)
	}
	var access *sharedAccess // access stays nil without a shared access signature
	if hasSharedAccess(query) && r.Header.Get("Authorization") == "" {
		access, err = a.readSharedAccess(path, r.TLS != nil, r.RemoteAddr, query)
	} else {
		err = a.checkAuthorization(r, query)
	}
	if err != nil {
		return nil, err
	}
	c, err := a.parseRequest(r, path, query)
	if err != nil {
		return nil, err
	}
	do, err := a.operationOf(c)
	if err != nil {
		return nil, err
	}
	if c.access = access; access != nil {
		if err := access.checkOperation(do); err != nil {
			return nil, err
		}
		c.conditions.isCreateOnly = !access.canOverwrite()
	}
	resp, err := do.run(c)
	if err != nil {
		return nil, err
	}
	if access != nil {
		for name := range access.set {
			resp.header.Set(name, access.set.Get(name))
		}
	}
	return resp, nil
}

// checkAccountName returns an error if the path names a different account.
func (a *Account) checkAccountName(path string) error {
	if account, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); account != a.options.Account {
		return newBlobError(404, "ResourceNotFound", "the path begins with the account %.30q, and this is %s", account, a.options.Account)
	}
	return nil
}

// parseRequest parses the parts that all requests have. path must be a path on the primary endpoint.
func (a *Account) parseRequest(r *http.Request, path string, query url.Values) (*blobCall, error) {
	c := &blobCall{Request: r, query: query}
	var named bool
	if c.container, c.blob, named = splitPath(path); named {
		if err := checkBlob(c.blob); err != nil {
			return nil, err
		}
	}
	if query.Get("comp") == "userdelegationkey" && !hasToken(r) {
		return nil, forbiddenError("Only authentication scheme Bearer is supported")
	}
	if err := checkPart(query.Get("comp")); err != nil {
		return nil, err // checked before the headers, because this error describes the feature better
	}
	for name := range query {
		if err := checkParameter(name); err != nil {
			return nil, err
		}
	}
	for name := range r.Header {
		if err := checkHeader(strings.ToLower(name)); err != nil {
			return nil, err
		}
	}
	var err error
	c.conditions, err = readConditions(r.Header, "")
	return c, err
}

// splitPath returns the container and blob names in a path. As on Azure, it replaces backslashes in a blob name with
// slashes.
func splitPath(path string) (container, blob string, isBlob bool) {
	_, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	container, blob, isBlob = strings.Cut(rest, "/")
	return container, strings.ReplaceAll(blob, `\`, "/"), isBlob
}

// findContainer returns the container that a call names.
func (a *Account) findContainer(c *blobCall) (*blobContainer, error) {
	if isSystemContainer(c.container) {
		return nil, containerNotFound()
	}
	if err := checkContainer(c.container); err != nil {
		return nil, err
	}
	found, ok := a.index.findContainer(c.container)
	if !ok {
		return nil, containerNotFound()
	}
	return found, nil
}
