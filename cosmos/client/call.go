package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/domain"
)

// A Call is one call of a port, or one maintenance task. Its requests share one budget of retries, and
// metrics count them by the name of the call. It is safe for concurrent use.
type Call struct {
	client *Client
	name   string
	paced  bool // see SetBackground

	retried prometheus.Counter

	mu      sync.Mutex
	retries int     // number of remaining retries
	doubt   bool    // see InDoubt
	units   float64 // see Units
}

// Timeout and backoff of the requests of a call.
const (
	callTimeout = 5 * time.Second // timeout of one request; Cosmos itself has a timeout of 5 s
	minBackoff  = 4 * time.Millisecond
	maxBackoff  = time.Second
)

// SetBackground makes c wait before its requests, so that all background calls together stay below
// [Options.BackgroundUnits].
func (c *Call) SetBackground() { c.paced = c.client.pacer != nil }

// Renew returns a call with the same name and a full budget. It is in the background if c is.
func (c *Call) Renew() *Call {
	next := c.client.Begin(c.name)
	next.paced = c.paced
	return next
}

// BatchSize returns the number of operations for a batch of c, up to limit, if each operation costs
// price request units. A batch in the background costs up to half a second of the permitted request
// units.
func (c *Call) BatchSize(price float64, limit int) int {
	if !c.paced {
		return limit
	}
	return c.client.pacer.batchSize(price, limit)
}

// AddRetries adds retries to the budget of a call that needs many requests. It does nothing if the
// client has no retries.
func (c *Call) AddRetries(retries int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client.opts.Retries > 0 {
		c.retries += retries
	}
}

// Pause takes one retry from the budget and waits for the backoff with full jitter, but at least for
// the duration after. It returns false immediately if the budget is used up, or if the deadline of ctx
// is before the end of after. It also returns false if ctx ends during the wait.
func (c *Call) Pause(ctx context.Context, after time.Duration) bool {
	c.mu.Lock()
	used := max(c.client.opts.Retries-c.retries, 0)
	c.retries--
	left := c.retries
	c.mu.Unlock()
	if end, ok := ctx.Deadline(); left < 0 || ok && time.Until(end) < after {
		return false
	}
	c.retried.Inc()
	backoff := min(minBackoff<<min(used, 10), maxBackoff)
	return Sleep(ctx, after+c.client.Jitter(backoff))
}

// Sleep waits for d. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ErrStale reports that a document has changed since the call read it. [Call.Retry] then starts again
// with fresh reads.
var ErrStale = errors.New("a document has changed since it was read")

// ErrNotYetVisible reports that a document was not found although another document refers to it. It
// counts as a stale read, and after [MaxMissing] consecutive misses as damage.
var ErrNotYetVisible = fmt.Errorf("a required document is missing: %w", ErrStale)

// MaxMissing consecutive misses turn a stale read into damage.
const MaxMissing = 8

// Units returns the cost of the requests of the call so far, in request units.
func (c *Call) Units() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.units
}

func (c *Call) addUnits(charge float32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.units += float64(charge)
}

// InDoubt reports whether the outcome of a write of the call is unknown.
func (c *Call) InDoubt() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doubt
}

// Outcome returns the result of [Classify] for the call. If a write of the call may have been applied, it
// returns Uncertain instead of the kinds of error that would mean that no write was applied.
func (c *Call) Outcome(what string, err error) error {
	err = Classify(what, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch domain.KindOf(err) {
	case domain.Busy, domain.Unavailable, domain.Unknown, domain.NewerFormat:
		if err != nil && c.doubt {
			return domain.Errorf(domain.Uncertain, "%w", err)
		}
	default:
	}
	return err
}

// Retry calls try until try returns nil or an error other than [ErrStale]. It fails with Busy if the
// budget is used up, with Damaged after [MaxMissing] consecutive [ErrNotYetVisible], and with
// Unavailable if a container has changed.
func (c *Call) Retry(ctx context.Context, try func() error) error {
	missing := 0 // number of consecutive misses
	for {
		err := try()
		if !errors.Is(err, ErrStale) {
			return err
		}
		missing++
		if !errors.Is(err, ErrNotYetVisible) {
			missing = 0
		}
		if !c.Pause(ctx, 0) {
			if ctx.Err() != nil {
				return domain.Errorf(domain.Unavailable, "%s: %w", c.name, ctx.Err())
			}
			if fault := c.client.suspectContainers(ctx); fault != nil {
				return domain.Errorf(domain.Unavailable, "%s: %w", c.name, fault)
			}
			if missing >= MaxMissing {
				return domain.Errorf(domain.Damaged, "%s: %w, in %d consecutive attempts", c.name, err, missing)
			}
			return domain.Errorf(domain.Busy, "%s: gave up after %d retries against other writers or stale reads: %w", c.name, c.client.opts.Retries, err)
		}
	}
}

// SuspectContainers checks the containers after a failure that a changed container would explain. It
// returns the known fault of the containers.
func (c *Call) SuspectContainers(ctx context.Context) error {
	if fault := c.client.suspectContainers(ctx); fault != nil {
		return domain.Errorf(domain.Unavailable, "%s: %w", c.name, fault)
	}
	return nil
}

// sendRequest sends a request until it succeeds, fails permanently, or the budget is used up. A write
// whose final outcome is unknown fails with Uncertain. request returns the charge.
func (c *Call) sendRequest(ctx context.Context, container *azcosmos.ContainerClient, write bool, request func(context.Context) (float32, error)) error {
	uncertain := false
	for {
		if c.paced && !c.client.pacer.wait(ctx) {
			return domain.Errorf(domain.Unavailable, "%s: %w", c.name, context.Cause(ctx))
		}
		attempt, cancel := context.WithTimeout(ctx, callTimeout)
		began := time.Now()
		charge, err := request(withoutDiagnostics(attempt))
		cancel()
		charge = c.client.metrics.addRequest(ctx, c.name, container.ID(), err, charge, time.Since(began))
		c.addUnits(charge)
		if c.paced {
			c.client.pacer.addCharge(charge)
		}
		if err == nil {
			return nil
		}
		f := FailureOf(err)
		if f.status == http.StatusTooManyRequests && c.client.pacer != nil {
			c.client.pacer.noteThrottled()
		}
		if write && f.mayBeApplied() {
			uncertain = true
			c.mu.Lock()
			c.doubt = true
			c.mu.Unlock()
		}
		if f.isRetriable() && ctx.Err() == nil && c.Pause(ctx, f.after) {
			continue
		}
		switch {
		case !f.isRetriable():
			if f.mayBeContainers() {
				if fault := c.client.suspectContainers(ctx); fault != nil {
					return domain.Errorf(domain.Unavailable, "%s: %w (%v)", c.name, fault, f)
				}
			}
			return err // the caller interprets the status
		case uncertain:
			return domain.Errorf(domain.Uncertain, "%s: the outcome of a write to %s is unknown: %w", c.name, container.ID(), f)
		case ctx.Err() != nil:
			return domain.Errorf(domain.Unavailable, "%s: %w", c.name, context.Cause(ctx))
		}
		return domain.Errorf(f.domainKind(), "%s: gave up on %s: %w", c.name, container.ID(), f)
	}
}
