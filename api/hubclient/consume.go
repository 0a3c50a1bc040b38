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

// A Handler handles a bundle. When it returns nil, the data must be stored
// safely; the bundle is dequeued then. If it fails or panics, the bundle stays
// open and is delivered again. Only io.EOF means that the whole body was
// received.
//
// A handler may get a bundle more than once: if its process ends before the
// bundle is dequeued, and if the actor has more than one process that consumes.
type Handler func(ctx context.Context, b *Bundle) error

// A PanicError is the panic of a [Handler].
type PanicError struct {
	Value any
	Stack []byte
}

// Error returns the value of the panic.
func (e *PanicError) Error() string {
	return fmt.Sprintf("hubclient: the handler panicked: %v", e.Value)
}

// Consume runs a [Consumer] of all groups of an actor with its default
// settings.
func (c *Client) Consume(ctx context.Context, actor string, handle Handler) error {
	return (&Consumer{Client: c, Actor: actor}).Run(ctx, handle)
}

// A Consumer fetches the bundles of an actor one after another.
//
// Any number of consumers of one actor may run, also in other processes. They
// do not share the data: an actor has one open bundle in each group, and a
// consumer that finds one that it has not opened takes it, because the other
// consumer may have ended. So the same bundle may be handled twice at the same
// time, and the second consumer notices that when it dequeues the bundle. One
// is the standby of the other; for more throughput, run one consumer for each
// group.
type Consumer struct {
	Client *Client // required
	Actor  string  // "": the actor of the token
	Group  string  // group of domains; "": all groups
	Format string  // format of content that a domain makes: json or xml; "": json

	// Wait is how long a request waits for data, up to a minute. Default: 30 seconds.
	Wait time.Duration
	// MaxPause limits the pauses after failed attempts without Retry-After.
	// Default: 1 minute.
	MaxPause time.Duration
	// Patience is how long attempts may fail without a success before Run
	// returns the last error. Default: no limit.
	Patience time.Duration

	// Dequeued, if it is set, is called for each dequeued bundle, whose body
	// was read.
	Dequeued func(b *Bundle)

	Logger *slog.Logger // log of failed attempts; default: discards
}

const (
	defaultWait      = 30 * time.Second
	defaultMaxPause  = time.Minute
	maxConsumerPause = 10 * time.Minute // even if the hub asks for more, so that the consumer does not sleep too long
	dequeueGrace     = 10 * time.Second // time to dequeue a bundle that was handled when ctx ended
)

// Run fetches bundles and passes them to handle until ctx ends, and returns nil
// then. No goroutine that it starts outlives it. A bundle that was handled when
// ctx ends is dequeued first.
//
// A failed attempt is repeated after pauses that grow: if the hub is busy or
// cannot be reached, or the handler failed. Run fails if the hub refuses the
// request permanently, such as for a missing right, if Patience is exhausted,
// or if Options.OnRetry returns false.
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

// A consumerRun is one call of Run.
type consumerRun struct {
	Consumer

	client *Client
	clock  Clock
	handle Handler

	id       string        // id that the next bundle must have; "": a new one
	pauses   backoff       // pauses between failures
	idle     backoff       // pauses after answers without data that came too early
	lastGood time.Duration // time of the last success
}

func (r *consumerRun) recordSuccess() {
	r.pauses.reset()
	r.lastGood = r.clock.Elapsed()
}

// waitForRetry waits before the attempt that failed with err is repeated. It
// returns an error if the attempt is not repeated.
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
	_ = r.clock.Sleep(ctx, pause) // Run checks whether ctx has ended
	return nil
}

// A redeliveryError is the reason why a fetched bundle is delivered again.
type redeliveryError struct {
	bundle string
	err    error
}

func (e *redeliveryError) Error() string {
	return fmt.Sprintf("hubclient: bundle %s is delivered again: %v", e.bundle, e.err)
}
func (e *redeliveryError) Unwrap() error { return e.err }

// isRepeated reports whether an attempt that failed with err is repeated. A
// failed TokenSource may succeed later.
func isRepeated(err error) bool {
	_, isDeliveredAgain := errors.AsType[*redeliveryError](err)
	_, isOfToken := errors.AsType[*tokenError](err)
	return isDeliveredAgain || isOfToken || isTemporary(err)
}

// consumeNext fetches, handles and dequeues a bundle. It returns nil if there
// was no data.
func (r *consumerRun) consumeNext(ctx context.Context) error {
	began := r.clock.Elapsed()
	b, err := r.peekBundle(ctx)
	switch {
	case errors.Is(err, ErrNoData):
		if waited := r.clock.Elapsed() - began; waited >= r.Wait/2 {
			r.idle.reset()
		} else { // the hub is about to stop, or another consumer has dequeued the open bundle
			_ = r.clock.Sleep(ctx, r.idle.nextPause(nil)) // Run checks whether ctx has ended
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

// peekBundle returns the next bundle. It sends a new bundle id, so that an attempt whose answer
// is lost is repeated for the same bundle.
func (r *consumerRun) peekBundle(ctx context.Context) (*Bundle, error) {
	if r.id == "" {
		r.id = r.client.opts.NewID()
	}
	opts := PeekOptions{Group: r.Group, Format: r.Format, BundleID: r.id, Wait: r.Wait}
	b, err := r.client.peekOnce(ctx, r.Actor, opts.path(), r.Wait)
	if p, ok := errors.AsType[*Problem](err); ok && p.Status == http.StatusConflict {
		// Another bundle is open, or the bundle with this id was dequeued
		// meanwhile.
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
		return &redeliveryError{b.ID, p} // its content was deleted and made again since it was fetched
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

// dequeueBundle dequeues a handled bundle, even if ctx has ended. It repeats
// failed attempts as long as Run would, so that the bundle is not handled
// again.
func (r *consumerRun) dequeueBundle(ctx context.Context, b *Bundle) error {
	closing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = r.clock.Sleep(closing, dequeueGrace) // ends early once the bundle is dequeued
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

// callHandler returns the error or the panic of a handler.
func callHandler(ctx context.Context, handle Handler, b *Bundle) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{value, debug.Stack()}
		}
	}()
	return handle(ctx, b)
}
