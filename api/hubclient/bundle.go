package hubclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Bundle is a bundle of an actor, with a stream of its body. Only one goroutine may use it.
type Bundle struct {
	ID          string
	Type        string // type of the messages in the bundle
	ContentType string // media type of the body
	Size        int64  // size of the body in bytes
	// Backlog is the number of events that wait behind this bundle. BacklogAge is the age of the
	// oldest such event, rounded up to seconds. A negative value means unknown.
	Backlog    int64
	BacklogAge time.Duration

	// Interrupted, if not nil, is called before each attempt to fetch the rest of the body, which
	// follows an interruption or a failed attempt.
	Interrupted func(err error, received int64)

	client *Client
	ctx    context.Context //nolint:containedctx // the stream ends with it, as that of http.Response does
	actor  string
	tag    string      // ETag of the body, with which the rest is requested
	conn   *connection // connection that delivers the body; nil if the rest of the body must be requested
	got    int64       // bytes received
	err    error       // error that all further reads return

	mayBeDequeued bool // whether a dequeue request without a response may have dequeued the bundle
}

// newBundle returns the bundle in a response. It fails if the response does not come from a hub.
func newBundle(ctx context.Context, conn *connection, actor string) (*Bundle, error) {
	h := conn.Header
	b := &Bundle{
		ID: h.Get("MessageId"), Type: h.Get("MessageType"), ContentType: h.Get("Content-Type"), Size: conn.ContentLength,
		Backlog: parseNumber(h.Get("MessageHub-Backlog")), BacklogAge: time.Duration(parseNumber(h.Get("MessageHub-Backlog-Age"))),
		client: conn.client, ctx: ctx, actor: actor, tag: h.Get("ETag"), conn: conn,
	}
	if b.BacklogAge > 0 {
		b.BacklogAge *= time.Second
	}
	var err error
	switch {
	case b.ID == "" || conn.StatusCode != http.StatusOK || h.Get("Content-Encoding") != "":
		err = errors.New("hubclient: the answer is not a bundle; is this a hub?")
	case b.Size < 0:
		err = errors.New("hubclient: the answer has no Content-Length, so it could be cut off; does a proxy remove it?")
	case b.Size > conn.client.opts.MaxBundle:
		err = fmt.Errorf("hubclient: bundle %s has %d bytes, want up to %d; raise Options.MaxBundle", b.ID, b.Size, conn.client.opts.MaxBundle)
	}
	if err != nil {
		conn.close()
		return nil, &finalError{err}
	}
	return b, nil
}

func parseNumber(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > int64(maxRetryAfter)*1000 {
		return -1
	}
	return n
}

// Read reads the body. If the connection is lost, Read fetches the rest of the body. It returns
// io.EOF only after the whole body, and an [*IncompleteBodyError] if the rest cannot be fetched.
func (b *Bundle) Read(p []byte) (n int, err error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	if b.got < b.Size {
		if n, err = b.readSome(p[:min(int64(len(p)), b.Size-b.got)]); n > 0 {
			return n, nil
		}
		if err != nil {
			b.endStream(err)
			return 0, b.err
		}
	}
	if b.conn != nil {
		_, _ = b.conn.Read(p[:1]) // reads the end of the response, so that the connection can be reused
	}
	b.endStream(io.EOF)
	return 0, b.err
}

// readSome reads at least one byte, or returns an error.
func (b *Bundle) readSome(p []byte) (n int, err error) {
	err = b.client.repeatUntilDone(b.ctx, b.client.opts.Resume, func() error {
		n, err = b.readOnce(p)
		if err != nil && isTemporary(err) && b.Interrupted != nil {
			b.Interrupted(err, b.got)
		}
		return err
	})
	return n, err
}

// readOnce reads at least one byte from the connection. If none exists, it opens a new
// connection. After an error it closes the connection.
func (b *Bundle) readOnce(p []byte) (n int, err error) {
	if b.conn == nil {
		if b.conn, err = b.resumeBody(); err != nil {
			return 0, err
		}
	}
	for n == 0 && err == nil {
		n, err = b.conn.Read(p)
	}
	if b.got += int64(n); n > 0 {
		return n, nil // the next read returns the error again
	}
	b.closeConnection()
	if err == io.EOF { //nolint:errorlint // a Reader returns it itself
		err = io.ErrUnexpectedEOF
	}
	if b.tag == "" {
		err = &finalError{err} // the rest of the response may belong to a different body
	}
	return 0, err
}

// resumeBody requests the rest of the body.
func (b *Bundle) resumeBody() (*connection, error) {
	header := identityCoding()
	header.Set("Range", fmt.Sprintf("bytes=%d-", b.got))
	header.Set("If-Range", b.tag)
	conn, err := b.client.startRequest(b.ctx, http.MethodGet, bundlePath(b.ID), b.actor, nil, header, 0)
	if err != nil {
		return nil, err
	}
	size := b.Size - b.got
	switch from := conn.Header.Get("Content-Range"); {
	case conn.Header.Get("ETag") != b.tag || conn.Header.Get("Content-Encoding") != "":
		err = errors.New("the hub answered with another body, or another form of it")
	case conn.StatusCode == http.StatusOK:
		size = b.Size
	case conn.StatusCode != http.StatusPartialContent || !strings.HasPrefix(from, fmt.Sprintf("bytes %d-", b.got)):
		err = fmt.Errorf("the hub answered with %q, not with what follows byte %d", from, b.got)
	}
	if err == nil && conn.ContentLength != size {
		err = fmt.Errorf("the hub answered with %d bytes, want %d", conn.ContentLength, size)
	}
	if err != nil {
		conn.close()
		return nil, &finalError{err}
	}
	if conn.StatusCode == http.StatusOK { // the response contains the whole body instead of the rest
		if _, err := io.CopyN(io.Discard, conn, b.got); err != nil {
			conn.close()
			return nil, err
		}
	}
	return conn, nil
}

// endStream ends the stream; Read then returns err.
func (b *Bundle) endStream(err error) {
	b.closeConnection()
	if b.err = err; err != io.EOF { //nolint:errorlint // it is set here
		b.err = &IncompleteBodyError{b.ID, b.got, b.Size, err}
	}
}

// An IncompleteBodyError means that only a part of a bundle's body was received.
type IncompleteBodyError struct {
	BundleID       string
	Received, Size int64 // bytes
	Err            error
}

// Error returns the reason in one line.
func (e *IncompleteBodyError) Error() string {
	return fmt.Sprintf("hubclient: bundle %s broke off after %d of %d bytes: %v", e.BundleID, e.Received, e.Size, e.Err)
}

// Unwrap returns the error that interrupted the body.
func (e *IncompleteBodyError) Unwrap() error { return e.Err }

func (b *Bundle) closeConnection() {
	if b.conn != nil {
		b.conn.close()
		b.conn = nil
	}
}

// Close ends the stream. The bundle stays open in the hub until it is dequeued.
func (b *Bundle) Close() error {
	b.closeConnection()
	if b.err == nil {
		b.err = errClosed
	}
	return nil
}

var errClosed = errors.New("hubclient: the bundle was closed before its body was read to the end")
