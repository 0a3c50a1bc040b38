package api

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// sendBundle responds with the body of a bundle, or with the requested parts of it. net/http
// evaluates conditions and ranges. sendBundle holds slot while it reads the store, but not while
// the client reads.
func (s *Server) sendBundle(w http.ResponseWriter, r *http.Request, peeked *hub.PeekedBundle, slot *storeSlot) error {
	ctx := r.Context()
	rec := recordOf(ctx)
	compress := acceptsGzip(r.Header)
	cost := costOf(&peeked.Bundle, compress)
	if r.Method == http.MethodGet {
		if err := slot.reserve(ctx, cost.reading); err != nil {
			return err
		}
		p := paceOf(ctx)
		p.hold = slot.memory
		defer func() { p.hold = nil }()
	}
	body, err := openSlotted(ctx, peeked, slot, cost.sending)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // if reading failed, that error was already returned
	r, content := limitRanges(r, body, peeked.Body.Length)
	d := newDownload(w, &peeked.Bundle, r.Header.Get("Range") == "" && compress)
	s.setBacklogHeaders(d.header, peeked.Behind)
	http.ServeContent(d, r, "", time.Time{}, content)
	if err := d.finishAnswer(r, cmp.Or(body.Err(), d.err)); err != nil {
		if !d.begun {
			return err
		}
		// The status was already sent. The connection is aborted, so that the client does not
		// mistake the body for a complete one.
		rec.err = fmt.Errorf("the body broke off: %w", err)
		panic(http.ErrAbortHandler)
	}
	if r.Method == http.MethodGet && d.status == http.StatusOK {
		s.metrics.peeked.Add(float64(peeked.Count))
	}
	return nil
}

// A download is a response whose header is sent together with the first byte of its body. Until
// then, a problem can be sent instead.
type download struct {
	to     http.ResponseWriter
	length string      // length of the whole body, as text
	header http.Header // headers that are sent with the first byte of the body
	status int
	begun  bool
	gzip   *gzip.Writer // compresses the body; nil if the body is not compressed
	err    error        // error of the last failed Write
}

func newDownload(w http.ResponseWriter, b *domain.Bundle, compress bool) *download {
	d := &download{to: w, length: strconv.FormatInt(b.Body.Length, 10), header: make(http.Header)}
	tag := hex.EncodeToString(b.Body.Digest[:])
	if compress {
		d.gzip = compressors.Get().(*gzip.Writer)
		d.gzip.Reset(w)
		d.header.Set("Content-Encoding", "gzip")
		tag += "-gzip" // the compressed body is a different representation, so it needs its own tag
	}
	d.header.Set("ETag", `"`+tag+`"`)
	d.header.Set("Vary", "Accept-Encoding")
	d.header.Set("Content-Type", mediaType(b))
	d.header.Set("Cache-Control", "no-store")
	// These two names are spelled as in the original, for clients that compare header names
	// case-sensitively.
	d.header["MessageId"] = []string{b.ID.String()}
	d.header["MessageType"] = []string{b.MessageType()}
	return d
}

// mediaType returns the media type of a bundle's body: JSON if the hub produces the body, otherwise
// the format that the actor has requested from the domain.
func mediaType(b *domain.Bundle) string {
	if b.Content == domain.Request && b.Format == domain.XML {
		return "application/xml"
	}
	return "application/json"
}

// compressors pools gzip.Writers, which take several hundred KB each.
var compressors = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // NewWriterLevel fails only for an invalid level
	return w
}}

// Header implements http.ResponseWriter.
func (d *download) Header() http.Header { return d.header }

// WriteHeader implements http.ResponseWriter. For a range of the last 0 bytes, net/http responds
// with an empty part. WriteHeader changes the status to 416, because RFC 9110 calls this range
// unsatisfiable.
func (d *download) WriteHeader(status int) {
	d.status = status
	if status == http.StatusPartialContent && d.header.Get("Content-Length") == "0" {
		d.status = http.StatusRequestedRangeNotSatisfiable
	}
}

func (d *download) Write(p []byte) (n int, err error) {
	if d.isRefused() {
		return len(p), nil // ignores the body of net/http, because the client receives a problem instead
	}
	d.beginAnswer()
	if d.gzip != nil {
		n, err = d.gzip.Write(p)
	} else {
		n, err = d.to.Write(p)
	}
	if err != nil {
		d.err = err
	}
	return n, err
}

// pieces pools the buffers through which bodies are copied.
var pieces = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// ReadFrom implements io.ReaderFrom.
func (d *download) ReadFrom(r io.Reader) (int64, error) {
	piece := pieces.Get().(*[64 << 10]byte)
	defer pieces.Put(piece)
	return io.CopyBuffer(struct{ io.Writer }{d}, r, piece[:])
}

func (d *download) isRefused() bool { return d.status >= http.StatusBadRequest }

func (d *download) beginAnswer() {
	if d.begun {
		return
	}
	d.begun = true
	d.status = cmp.Or(d.status, http.StatusOK)
	maps.Copy(d.to.Header(), d.header)
	d.to.WriteHeader(d.status)
}

// finishAnswer completes the response. It returns an error if the client must receive a problem
// instead of the response.
func (d *download) finishAnswer(r *http.Request, err error) error {
	if d.gzip != nil {
		defer func() { d.gzip.Reset(nil); compressors.Put(d.gzip) }()
	}
	switch {
	case err != nil:
		return err
	case d.status == http.StatusPreconditionFailed:
		return errPrecondition
	case d.status == http.StatusRequestedRangeNotSatisfiable:
		return d.noSuchRange()
	case d.isRefused():
		return fmt.Errorf("serve the body: status %d", d.status)
	}
	d.beginAnswer()
	if d.gzip != nil && r.Method == http.MethodGet && d.status == http.StatusOK {
		return d.gzip.Close()
	}
	return nil
}

var errPrecondition = &problemError{
	problem: preconditionFailed,
	detail:  "The bundle that is open is not the one that If-Match names. Peek again without the header.",
	cause:   errors.New("the condition of If-Match is not met"),
}

func (d *download) noSuchRange() error {
	d.to.Header().Set("Content-Range", "bytes */"+d.length)
	return refuse(noRange, "The body has %s bytes, and the header Range selects none of its bytes. Repeat the request with another range, or without one.", d.length)
}
