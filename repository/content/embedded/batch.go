package embedded

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
)

const (
	maxBatch      = 256     // maximum number of requests in a batch, as on Azure
	maxBatchBytes = 4 << 20 // maximum size of the body of a batch, as on Azure
)

// submitBatch executes the requests of a batch one after the other, and authorizes each of them. The response lists
// their responses. As on Azure, an unreadable batch gets a list with a single error.
func (a *Account) submitBatch(c *blobCall) (*blobResponse, error) {
	if c.container != "" {
		if _, err := a.findContainer(c); err != nil {
			return nil, err
		}
	}
	if c.Header.Get("Content-Type") == "" {
		return nil, newBlobError(400, "InvalidHeaderValue", "header Content-Type: want multipart/mixed with a boundary")
	}
	list := batchResponse{boundary: "batchresponse_" + strings.ToLower(rand.Text()), version: c.Header.Get("X-Ms-Version")}
	parts, err := readBatch(c)
	if err != nil {
		list.add("", newErrorResponse(err, false), c.Request)
	}
	for _, part := range parts {
		resp, err := a.executeBatched(c, part)
		if errors.Is(err, ErrClosed) {
			return nil, err
		}
		if err != nil {
			resp = newErrorResponse(err, false)
		}
		list.add(part.id, resp, part.request)
	}
	return list.finish(), nil
}

// A batchedRequest is one request of a batch. Its id is the Content-ID of the request and of the response.
type batchedRequest struct {
	id      string
	request *http.Request
}

// readBatch reads the requests of a batch.
func readBatch(c *blobCall) (parts []batchedRequest, err error) {
	boundary, err := readBoundary(c.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	if c.ContentLength > maxBatchBytes {
		return nil, newBlobError(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "the batch has more than %d bytes", maxBatchBytes)
	}
	reader := multipart.NewReader(io.LimitReader(contextReader{c.Context(), c.Body}, maxBatchBytes), boundary)
	for {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) && len(parts) > 0 {
			return parts, nil
		}
		if err != nil {
			return nil, newBlobError(400, "InvalidInput", "the batch cannot be read: %s", err)
		}
		if len(parts) == maxBatch {
			return nil, newBlobError(400, "ExceedsMaxBatchRequestCount", "the batch has more than %d requests", maxBatch)
		}
		end := strings.NewReader("\r\n\r\n") // some clients omit the empty line after the headers
		r, err := http.ReadRequest(bufio.NewReader(io.MultiReader(part, end)))
		if err != nil {
			return nil, newBlobError(400, "InvalidInput", "request %d of the batch cannot be read", len(parts)+1)
		}
		r = r.WithContext(c.Context())
		r.Body, r.ContentLength, r.TLS, r.RemoteAddr, r.Host = http.NoBody, 0, c.TLS, c.RemoteAddr, c.Host
		parts = append(parts, batchedRequest{part.Header.Get("Content-Id"), r})
	}
}

// readBoundary returns the boundary of a multipart Content-Type. As on Azure, it may contain characters that package
// mime does not permit.
func readBoundary(contentType string) (string, error) {
	kind, parameters, _ := strings.Cut(contentType, ";")
	boundary := ""
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "boundary") {
			continue
		}
		if boundary != "" {
			return "", newBlobError(400, "InvalidInput", "header Content-Type has two boundaries")
		}
		boundary = strings.Trim(strings.TrimSpace(value), `"`)
	}
	if !strings.EqualFold(strings.TrimSpace(kind), "multipart/mixed") || boundary == "" {
		return "", newBlobError(400, "InvalidHeaderValue", "header Content-Type: want multipart/mixed with a boundary")
	}
	return boundary, nil
}

// executeBatched returns the response to one request of the batch c.
func (a *Account) executeBatched(c *blobCall, part batchedRequest) (*blobResponse, error) {
	isDeletion := part.request.Method == http.MethodDelete && !part.request.URL.Query().Has("comp")
	isTier := part.request.Method == http.MethodPut && part.request.URL.Query().Get("comp") == "tier"
	if !isDeletion && !isTier {
		return nil, newBlobError(400, "InvalidInput", "a batch deletes blobs or sets their tiers")
	}
	within := "/" + a.options.Account + "/"
	if c.container != "" {
		within += c.container + "/"
	}
	if !strings.HasPrefix(part.request.URL.Path, within) || part.request.URL.Query().Has("restype") {
		return nil, newBlobError(400, "InvalidInput", "the requests of this batch are for blobs below %s", within)
	}
	return a.authorizeAndExecute(part.request)
}

// A batchResponse lists the responses to the requests of a batch.
type batchResponse struct {
	boundary string
	version  string // API version in the header of each response
	body     bytes.Buffer
}

// add adds a response, and closes its body.
func (b *batchResponse) add(id string, resp *blobResponse, r *http.Request) {
	resp.setCommonHeaders(r, strings.ToLower(rand.Text()))
	if b.version != "" {
		resp.header.Set("X-Ms-Version", b.version)
	}
	fmt.Fprintf(&b.body, "--%s\r\nContent-Type: application/http\r\n", b.boundary)
	if id != "" {
		fmt.Fprintf(&b.body, "Content-ID: %s\r\n", id)
	}
	fmt.Fprintf(&b.body, "\r\nHTTP/1.1 %d %s\r\n", resp.status, http.StatusText(resp.status))
	for name, values := range resp.header {
		for _, value := range values {
			if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-") {
				name = lower
			}
			fmt.Fprintf(&b.body, "%s: %s\r\n", name, value)
		}
	}
	b.body.WriteString("\r\n")
	if resp.body != nil {
		_, _ = b.body.ReadFrom(resp.body) // cannot fail, because the body is text in memory
		_ = resp.body.Close()
		b.body.WriteString("\r\n")
	}
}

// finish returns the response to the batch.
func (b *batchResponse) finish() *blobResponse {
	fmt.Fprintf(&b.body, "--%s--\r\n", b.boundary)
	resp := newResponse(http.StatusAccepted)
	resp.header.Set("Content-Type", "multipart/mixed; boundary="+b.boundary)
	resp.body, resp.length = io.NopCloser(&b.body), int64(b.body.Len())
	return resp
}
