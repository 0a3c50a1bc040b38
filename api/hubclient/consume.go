package hubclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// A Handler handles a bundle. It must store the data durably before it returns nil, because the
// bundle is then dequeued. If the Handler returns an error or panics, the bundle stays open and is
// delivered again. The whole body was received only if reading it has ended with io.EOF.
//
// A Handler may get the same bundle more than once: if its process ends before the bundle is
// dequeued, or if several processes consume the bundles of the actor.
type Handler func(ctx context.Context, b *Bundle) error

// A PanicError means that a [Handler] has panicked.
type PanicError struct {
	Value any
	Stack []byte
}

// Error describes the panic, with its value.
func (e *PanicError) Error() string {
	return fmt.Sprintf("hubclient: the handler panicked: %v", e.Value)
}

// Consume runs a [Consumer] with default settings for all groups of an actor.
func (c *Client) Consume(ctx context.Context, actor string, handle Handler) error {
	return (&Consumer{Client: c, Actor: actor}).Run(ctx, handle)
}

// A Consumer fetches the bundles of an actor one after another.
//
// Several consumers of one actor may run, even in several processes. They do not share the work,
// because an actor has one open bundle in each group. A consumer handles the open bundle even if
// another consumer opened it, because that consumer may have ended. So two consumers may handle the
// same bundle at the same time, and the second one gets an error when it dequeues the bundle. A
// second consumer is thus only a standby. For more throughput, run one consumer for each group.
type Consumer struct {
	Client *Client // required
	Actor  string  // id of the actor; "" means the actor of the token
	Group  string  // group of domains; "" means all groups
	Format string  // format of content that a domain produces: json or xml; "" means json

	// Wait is how long a request waits for data, up to 1 minute. Default: 30 seconds.
	Wait time.Duration
	// MaxPause limits the pauses after failed attempts. A longer Retry-After from the hub is
	// nevertheless respected. Default: 1 minute.
	MaxPause time.Duration
	// Patience is how long all attempts may fail before Run returns the last error. Default: no
	// limit.
	Patience time.Duration

	// Dequeued, if not nil, is called for each bundle after it was dequeued.
	Dequeued func(b *Bundle)

	Logger *slog.Logger // logs failed attempts; default: no log
}

const (
	defaultWait      = 30 * time.Second
	defaultMaxPause  = time.Minute
	maxConsumerPause = 10 * time.Minute // limits all pauses, even a Retry-After from the hub
	dequeueGrace     = 10 * time.Second // time limit for dequeuing a bundle that was being handled when ctx ended
)

// Run fetches bundles and passes them to handle until ctx ends, and then returns nil. If a bundle
// is being handled when ctx ends, Run dequeues it first. All goroutines that Run starts end before
// it returns.
//
// Run repeats a failed attempt after growing pauses if the hub is busy or cannot be reached, or if
// the handler has failed. It returns an error if the hub refuses the request permanently, for
// example for a missing right, if Patience is exhausted, or if Options.OnRetry returns false.
func (c *Consumer) Run(ctx context.Context, handle Handler) error {
	r := &consumerRun{Consumer: *c, handle: handle, client: c.Client}
	r.Wait = cmp.Or(r.Wait, defaultWait)
	r.Logger = cmp.Or(r.Logger, slog.New(slog.DiscardHandler))
	r.pauses = backoff{client: c.Client, limit: cmp.Or(c.MaxPause, defaultMaxPause)}
	r.idle = backoff{client: c.Client, limit: maxPause}
	r.clock = c.Client.opts.Clock
	r.recordSuccess()
	for ctx.Err() == nil {
		if err := r.consumeNext(ctx); err == nil {
			r.recordSuccess()
		} else if err := r.waitForRetry(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// A consumerRun is the state of one call to Run.
type consumerRun struct {
	Consumer

	client *Client
	clock  Clock
	handle Handler

	id       string        // id for the next bundle; "" if a new id is needed
	pauses   backoff       // pauses after failures
	idle     backoff       // pauses after responses without data, if the hub did not wait
	lastGood time.Duration // time of the last success
}

func (r *consumerRun) recordSuccess() {
	r.pauses.reset()
	r.lastGood = r.clock.Elapsed()
}

// waitForRetry waits before an attempt that failed with err is repeated. If the attempt must not be
// repeated, it returns an error.
func (r *consumerRun) waitForRetry(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // Run sees that ctx has ended
	}
	if !isRepeated(err) {
		return err
	}
	pause := min(r.pauses.nextPause(err), maxConsumerPause)
	if failing := r.clock.Elapsed() - r.lastGood; r.Patience > 0 && failing+pause > r.Patience {
		return fmt.Errorf("hubclient: consume: attempts have failed for %s: %w", failing.Round(time.Millisecond), err)
	}
	if onRetry := r.client.opts.OnRetry; onRetry != nil && !onRetry(err, pause) {
		return err
	}
	attributes := []any{"actor", r.Actor, "bundle", r.id, "pause_ms", pause.Milliseconds(), "error", err}
	if p, ok := errors.AsType[*PanicError](err); ok {
		attributes = append(attributes, "stack", string(p.Stack))
	}
	r.Logger.WarnContext(ctx, "an attempt to consume a bundle failed; it is repeated", attributes...)
	_ = r.clock.Sleep(ctx, pause) // the caller checks whether ctx has ended
	return nil
}

// A redeliveryError is the reason why the hub delivers a fetched bundle again.
type redeliveryError struct {
	bundle string
	err    error
}

func (e *redeliveryError) Error() string {
	return fmt.Sprintf("hubclient: bundle %s is delivered again: %v", e.bundle, e.err)
}
func (e *redeliveryError) Unwrap() error { return e.err }

// isRepeated reports whether an attempt that failed with err is repeated. A failure of the
// TokenSource is, because the TokenSource may succeed later.
func isRepeated(err error) bool {
	_, isDeliveredAgain := errors.AsType[*redeliveryError](err)
	_, isOfToken := errors.AsType[*tokenError](err)
	return isDeliveredAgain || isOfToken || isTemporary(err)
}

// consumeNext fetches, handles and dequeues one bundle. It returns nil if no data waits.
func (r *consumerRun) consumeNext(ctx context.Context) error {
	began := r.clock.Elapsed()
	b, err := r.peekBundle(ctx)
	switch {
	case errors.Is(err, ErrNoData):
		if waited := r.clock.Elapsed() - began; waited >= r.Wait/2 {
			r.idle.reset()
		} else { // the hub is about to stop, or another consumer has dequeued the open bundle
			_ = r.clock.Sleep(ctx, r.idle.nextPause(nil)) // the caller checks whether ctx has ended
		}
		return nil
	case err != nil:
		return err
	}
	err = r.consumeBundle(ctx, b)
	if e, ok := errors.AsType[*NotOpenError](err); ok {
		r.Logger.InfoContext(ctx, "the bundle was dequeued by another consumer of the actor, or closed by an operator", "actor", r.Actor, "bundle", e.BundleID)
		err = nil
	}
	return err
}

// peekBundle returns the next bundle. It requests a new bundle with the id r.id, so that after a
// lost response it can request the same bundle again.
func (r *consumerRun) peekBundle(ctx context.Context) (*Bundle, error) {
	if r.id == "" {
		r.id = r.client.opts.NewID()
	}
	opts := PeekOptions{Group: r.Group, Format: r.Format, BundleID: r.id, Wait: r.Wait}
	b, err := r.client.peekOnce(ctx, r.Actor, opts.path(), r.Wait)
	if p, ok := errors.AsType[*Problem](err); ok && p.Status == http.StatusConflict {
		// A bundle with a different id is open, or the bundle with this id was already dequeued.
		r.id = r.client.opts.NewID()
		opts.BundleID, opts.Wait = "", 0
		b, err = r.client.peekOnce(ctx, r.Actor, opts.path(), 0)
	}
	if b != nil {
		r.id = b.ID
	}
	return b, err
}

// consumeBundle handles and dequeues a bundle.
func (r *consumerRun) consumeBundle(ctx context.Context, b *Bundle) error {
	defer func() { _ = b.Close() }() // Close never fails
	err := callHandler(ctx, r.handle, b)
	if err == nil {
		_, err = io.Copy(io.Discard, b)
	}
	if p, ok := errors.AsType[*Problem](b.err); ok && p.isGone() {
		return &NotOpenError{BundleID: b.ID, Problem: p}
	}
	if err != nil {
		return &redeliveryError{b.ID, err}
	}
	err = r.dequeueBundle(ctx, b)
	if p, ok := errors.AsType[*Problem](err); ok && p.Status == http.StatusConflict {
		return &redeliveryError{b.ID, p} // the content was deleted and produced again after the bundle was fetched
	}
	if err != nil {
		return err
	}
	r.id = ""
	if r.Dequeued != nil {
		r.Dequeued(b)
	}
	return nil
}

// dequeueBundle dequeues a handled bundle, even if ctx has ended. It retries for as long as Run
// would, so that the bundle is not handled again.
func (r *consumerRun) dequeueBundle(ctx context.Context, b *Bundle) error {
	closing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = r.clock.Sleep(closing, dequeueGrace) // this Sleep ends early once the bundle is dequeued
		cancel()
	})
	defer func() {
		cancel()
		if !stop() {
			<-ended
		}
	}()
	for {
		err := b.Dequeue(closing)
		if err == nil || ctx.Err() != nil || !isRepeated(err) {
			return err
		}
		if err := r.waitForRetry(ctx, err); err != nil {
			return &finalError{err}
		}
	}
}

// callHandler calls a handler. It returns the error of the handler, or a panic as an error.
func callHandler(ctx context.Context, handle Handler, b *Bundle) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{value, debug.Stack()}
		}
	}()
	return handle(ctx, b)
}
