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
	maxBatch      = 256     // requests, as on Azure
	maxBatchBytes = 4 << 20 // of the body, as on Azure
)

// submitBatch executes the requests in the body, one after the other. Each is authorized
// separately, and the answer is a list of their answers. As on Azure, a batch that cannot be read
// is answered with one error in that list.
func (a *Account) submitBatch(c *blobCall) (*blobAnswer, error) {
	if c.container != "" {
		if _, err := a.findContainer(c); err != nil {
			return nil, err
		}
	}
	if c.Header.Get("Content-Type") == "" {
		return nil, newBlobError(400, "InvalidHeaderValue", "header Content-Type: want multipart/mixed with a boundary")
	}
	list := batchAnswer{boundary: "batchresponse_" + strings.ToLower(rand.Text()), version: c.Header.Get("X-Ms-Version")}
	parts, err := readBatch(c)
	if err != nil {
		list.add("", errorAnswer(err, false), c.Request)
	}
	for _, part := range parts {
		answered, err := a.answerBatched(c, part)
		if errors.Is(err, ErrClosed) {
			return nil, err
		}
		if err != nil {
			answered = errorAnswer(err, false)
		}
		list.add(part.id, answered, part.request)
	}
	return list.finish(), nil
}

// A batchedRequest is a request in a batch, with the id that its answer has.
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

// readBoundary returns the boundary of a Content-Type. Unlike the package mime, it permits any
// characters in it, as Azure does.
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

// answerBatched answers a request of the batch c.
func (a *Account) answerBatched(c *blobCall, part batchedRequest) (*blobAnswer, error) {
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
	return a.answerAuthorized(part.request)
}

// A batchAnswer is the list of the answers to the requests of a batch.
type batchAnswer struct {
	boundary string
	version  string // of the API, for all answers
	body     bytes.Buffer
}

// add adds an answer, which it closes.
func (b *batchAnswer) add(id string, answered *blobAnswer, r *http.Request) {
	answered.setCommonHeaders(r, strings.ToLower(rand.Text()))
	if b.version != "" {
		answered.header.Set("X-Ms-Version", b.version)
	}
	fmt.Fprintf(&b.body, "--%s\r\nContent-Type: application/http\r\n", b.boundary)
	if id != "" {
		fmt.Fprintf(&b.body, "Content-ID: %s\r\n", id)
	}
	fmt.Fprintf(&b.body, "\r\nHTTP/1.1 %d %s\r\n", answered.status, http.StatusText(answered.status))
	for name, values := range answered.header {
		for _, value := range values {
			if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-") {
				name = lower
			}
			fmt.Fprintf(&b.body, "%s: %s\r\n", name, value)
		}
	}
	b.body.WriteString("\r\n")
	if answered.body != nil {
		_, _ = b.body.ReadFrom(answered.body) // it is in memory: an error's text
		_ = answered.body.Close()
		b.body.WriteString("\r\n")
	}
}

// finish returns the answer to the batch.
func (b *batchAnswer) finish() *blobAnswer {
	fmt.Fprintf(&b.body, "--%s--\r\n", b.boundary)
	answered := newAnswer(http.StatusAccepted)
	answered.header.Set("Content-Type", "multipart/mixed; boundary="+b.boundary)
	answered.body, answered.length = io.NopCloser(&b.body), int64(b.body.Len())
	return answered
}
