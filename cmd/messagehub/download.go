package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// A download is the body of a bundle on its way to out. When the line breaks, the
// rest is fetched by byte range, of that bundle and no other.
type download struct {
	hub    *hubclient.Client
	actor  string
	out    io.Writer
	say    func(format string, args ...any)
	bundle string // its MessageId
	tag    string // the ETag of its body; "" if the hub knows of no ranges
	got    int64  // bytes
}

// errLine marks what a repetition may mend.
var errLine = errors.New("the line broke")

// run copies the body of resp, and then what is missing, until ctx ends.
func (d *download) run(ctx context.Context, resp *http.Response) error {
	d.bundle, d.tag = resp.Header.Get("MessageId"), resp.Header.Get("ETag")
	err := d.take(resp)
	for pause := hubclient.MinPause; errors.Is(err, errLine) && d.tag != ""; pause = min(2*pause, hubclient.MaxPause) {
		d.say("%v after %d bytes; fetching the rest", err, d.got)
		if clock.Sleep(ctx, rand.N(pause)) != nil {
			break
		}
		before := d.got
		if err = d.rest(ctx); d.got > before {
			pause = hubclient.MinPause
		}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("the body broke off, so what was written is not the whole bundle; peek again, the hub repeats it (%w)", unmarked(err))
}

// rest fetches what is missing.
func (d *download) rest(ctx context.Context) error {
	req, err := d.hub.Request(ctx, http.MethodGet, "/v1/bundles/"+d.bundle, d.actor, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.got))
	req.Header.Set("If-Range", d.tag)
	resp, err := d.hub.Send(req)
	refused, isProblem := errors.AsType[*hubclient.Problem](err)
	switch {
	case isProblem && refused.IsTemporary():
		if clock.Sleep(ctx, max(0, refused.RetryAfter)) != nil {
			return err
		}
		return line(err)
	case isProblem:
		return err
	case err != nil:
		return line(err)
	}
	return d.take(resp)
}

// take copies the body of resp, which it closes, as far as it is new.
func (d *download) take(resp *http.Response) error {
	defer resp.Body.Close()
	body := &lineReader{r: resp.Body}
	switch {
	case resp.Header.Get("ETag") != d.tag:
		return errors.New("the hub answered with another body")
	case resp.StatusCode == http.StatusPartialContent:
		if from := resp.Header.Get("Content-Range"); !strings.HasPrefix(from, fmt.Sprintf("bytes %d-", d.got)) {
			return fmt.Errorf("the hub answered with %q, not with what follows byte %d", from, d.got)
		}
	default: // the whole once more
		if _, err := io.CopyN(io.Discard, body, d.got); err != nil {
			return err
		}
	}
	n, err := io.Copy(d.out, body)
	d.got += n
	return err
}

// A lineReader marks its errors, to tell them from those of the writer.
type lineReader struct{ r io.Reader }

func (l *lineReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // a Reader returns it itself
		err = line(err)
	}
	return n, err
}

// A brokenLineError is an error of which Is(err, errLine) is true.
type brokenLineError struct{ err error }

func line(err error) error { return &brokenLineError{err} }

func (e *brokenLineError) Error() string        { return errLine.Error() + ": " + e.err.Error() }
func (e *brokenLineError) Unwrap() error        { return e.err }
func (e *brokenLineError) Is(target error) bool { return target == errLine }

// unmarked returns the error that was marked.
func unmarked(err error) error {
	if marked, ok := errors.AsType[*brokenLineError](err); ok {
		return marked.err
	}
	return err
}
