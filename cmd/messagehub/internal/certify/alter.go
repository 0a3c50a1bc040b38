package certify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"time"
)

// The functions of this file change requests that are already signed.

// bodyOf returns the body of a request without consuming it.
func bodyOf(r *http.Request) []byte {
	if r.GetBody == nil {
		return nil
	}
	copied, err := r.GetBody()
	if err != nil {
		return nil
	}
	body, err := io.ReadAll(copied)
	if err != nil {
		return nil
	}
	return body
}

func setBody(r *http.Request, body []byte) {
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body = io.NopCloser(bytes.NewReader(body))
}

// tamperBody replaces a word of the body by another word of the same length, so
// that the JSON remains valid.
func tamperBody(r *http.Request) {
	setBody(r, bytes.ReplaceAll(bodyOf(r), []byte(original), []byte(tampered)))
}

// renewDigest sets the Digest header to the digest of the changed body, as an
// attacker could.
func renewDigest(r *http.Request) {
	digest := sha256.Sum256(bodyOf(r))
	r.Header.Set("Digest", "SHA-256="+base64.StdEncoding.EncodeToString(digest[:]))
}

func removeSignatures(r *http.Request) {
	r.Header.Del("Webhook-Signature")
	r.Header.Del("Authorization")
}

func breakSignatures(r *http.Request) {
	r.Header.Set("Webhook-Signature", "v1,*** v1a v1,,, ,")
	r.Header.Set("Authorization", `Signature keyId="`)
}

// errBroken is the read error with which breakBody aborts a request.
var errBroken = errors.New("the caller interrupts the body")

// breakBody makes the client send half of the body and then close the
// connection.
func breakBody(r *http.Request) {
	body := bodyOf(r)
	r.GetBody = nil
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:len(body)/2]), brokenReader{}))
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

// slowBody makes the client send the body in parts, with a pause before each
// part.
func slowBody(parts int, pause time.Duration, wait func(context.Context, time.Duration) error) func(*http.Request) {
	return func(r *http.Request) {
		body := bodyOf(r)
		r.GetBody = nil
		r.Body = io.NopCloser(&slowReader{ctx: r.Context(), rest: body, part: len(body)/parts + 1, pause: pause, wait: wait})
	}
}

type slowReader struct {
	ctx   context.Context
	rest  []byte
	part  int // bytes
	pause time.Duration
	wait  func(context.Context, time.Duration) error
}

func (s *slowReader) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	if err := s.wait(s.ctx, s.pause); err != nil {
		return 0, err
	}
	n := copy(p, s.rest[:min(s.part, len(s.rest))])
	s.rest = s.rest[n:]
	return n, nil
}
