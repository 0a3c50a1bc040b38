package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// maxResponse is the maximum number of bytes read from a response.
const maxResponse = 64 << 10

// A client sends spans to the OTLP receiver. It implements otlptrace.Client,
// whose exporter converts spans to OTLP. It never returns an error, because the
// SDK would print it; instead it counts and logs errors.
type client struct {
	settings *settings
	http     *http.Client
	metrics  *exporterMetrics
	logger   *slog.Logger
	clock    func() time.Time
	sleep    func(ctx context.Context, d time.Duration)
	random   func() float64 // returns a random number in [0, 1)

	life context.Context //nolint:containedctx // ends when the time for the last spans is over
	end  context.CancelFunc

	mu       sync.Mutex
	failures int // consecutive failures
}

// Start implements otlptrace.Client. It does nothing, because the first request
// connects.
func (c *client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. It always returns nil.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	n := countSpans(spans)
	// TracesData has the same wire format as ExportTraceServiceRequest, but
	// importing the latter would link gRPC.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err == nil && c.settings.gzip {
		body, err = compressBody(body)
	}
	if err != nil {
		c.recordDrop(ctx, rejected, n, err)
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)() //nolint:contextcheck // it is the client's
	for try := 0; ; try++ {
		refused, err := c.postSpans(ctx, body)
		switch failure, isFailure := errors.AsType[*responseError](err); {
		case err == nil:
			c.recordSuccess(ctx, n, refused)
			return nil
		case isFailure && !failure.isTransient():
			c.recordDrop(ctx, rejected, n, err)
			return nil
		case ctx.Err() != nil || !c.waitBeforeRetry(ctx, try, failure):
			c.recordDrop(ctx, unavailable, n, err)
			return nil
		}
	}
}

func countSpans(spans []*tracepb.ResourceSpans) (n int) {
	for _, resource := range spans {
		for _, scope := range resource.GetScopeSpans() {
			n += len(scope.GetSpans())
		}
	}
	return n
}

func compressBody(body []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	err := w.Close()
	return b.Bytes(), err
}

// waitBeforeRetry waits as long as the receiver requested, or otherwise twice
// as long as after the previous attempt. It returns false if no time remains
// for another attempt.
func (c *client) waitBeforeRetry(ctx context.Context, try int, failure *responseError) bool {
	const first, longest = time.Second, 30 * time.Second
	d := min(first<<min(try, 10), longest)
	d = time.Duration(float64(d) * (0.75 + c.random()/2))
	if failure != nil && failure.retryAfter > 0 {
		d = failure.retryAfter
	}
	if deadline, ok := ctx.Deadline(); ok && c.clock().Add(d).After(deadline) {
		return false
	}
	c.sleep(ctx, d)
	return ctx.Err() == nil
}

// postSpans makes one request. It returns the number of spans that the receiver
// rejected.
func (c *client) postSpans(ctx context.Context, body []byte) (refused int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.settings.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.settings.endpoint.String(), bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	for name, value := range c.settings.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "messagehub")
	if c.settings.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := c.http.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // unlike err, failed.Err does not contain the URL
		}
		return 0, err
	}
	defer answer.Body.Close()
	text, readErr := io.ReadAll(io.LimitReader(answer.Body, maxResponse))
	if answer.StatusCode/100 != 2 {
		return 0, &responseError{answer.StatusCode, c.retryAfter(answer.Header.Get("Retry-After"))}
	}
	if readErr != nil { // not an error: the receiver has already accepted the spans
		return 0, nil // because a retry would duplicate the spans
	}
	return refusedSpans(text), nil
}

// retryAfter parses a Retry-After header. It returns how long the receiver asks
// the client to wait, or 0.
func (c *client) retryAfter(text string) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 16); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(c.clock()))
	}
	return 0
}

// A responseError means that a response has a status other than 2xx. It does not
// contain the response's body, which may quote request headers.
type responseError struct {
	status     int
	retryAfter time.Duration
}

func (e *responseError) Error() string {
	return fmt.Sprintf("the receiver has answered %d %s", e.status, http.StatusText(e.status))
}

// isTransient reports whether a retry may succeed.
func (e *responseError) isTransient() bool {
	switch e.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// refusedSpans returns the number of rejected spans in an
// ExportTraceServiceResponse: field 1 of the partial success, which is field 1
// of the response.
func refusedSpans(answer []byte) int64 {
	var refused int64
	eachField(answer, func(n protowire.Number, kind protowire.Type, value []byte) {
		if n != 1 || kind != protowire.BytesType {
			return
		}
		partial, _ := protowire.ConsumeBytes(value)
		eachField(partial, func(n protowire.Number, kind protowire.Type, value []byte) {
			if n == 1 && kind == protowire.VarintType {
				v, _ := protowire.ConsumeVarint(value)
				refused = max(0, int64(v)) //nolint:gosec // as protobuf has it
			}
		})
	})
	return refused
}

// eachField calls f for each field of a protobuf message. It stops at a field
// that cannot be decoded.
func eachField(message []byte, f func(protowire.Number, protowire.Type, []byte)) {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return
		}
		n := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if n < 0 {
			return
		}
		f(number, kind, message[tag:tag+n])
		message = message[tag+n:]
	}
}

func (c *client) recordSuccess(ctx context.Context, n int, refused int64) {
	bad := int(min(refused, int64(n)))
	c.metrics.sent.Add(float64(n - bad))
	if bad > 0 {
		c.recordDrop(ctx, rejected, bad, errors.New("the receiver has accepted the others"))
		return
	}
	c.mu.Lock()
	failures := c.failures
	c.failures = 0
	c.mu.Unlock()
	if failures > 0 {
		c.logger.LogAttrs(ctx, slog.LevelInfo, "the OTLP receiver takes spans again", slog.Int("failures", failures))
	}
}

// recordDrop counts n dropped spans. Of consecutive failures, it logs only the
// 1st, 2nd, 4th, 8th and so on, so that a long outage does not fill the disk.
func (c *client) recordDrop(ctx context.Context, reason string, n int, err error) {
	c.metrics.countDropped(reason, n)
	c.mu.Lock()
	c.failures++
	failures := c.failures
	c.mu.Unlock()
	if failures&(failures-1) == 0 {
		c.logger.LogAttrs(ctx, slog.LevelWarn, "spans were dropped; see whether the OTLP receiver is up, can be reached, and accepts the headers",
			slog.String("reason", reason), slog.Int("spans", n), slog.Int("failures", failures),
			slog.String("receiver", c.settings.endpoint.Host), slog.String("error", err.Error()))
	}
}
