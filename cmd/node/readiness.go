package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/messagehub/messagehub/api"
)

// A readinessCheck tests one dependency of the hub. run returns nil, an
// *unreadyError, or another error, whose text clients never see.
type readinessCheck struct {
	name string // one word for programs; never changes between releases
	run  func(context.Context) error
}

// An unreadyError is a check's error that anonymous clients may read. Its
// reason and remedy contain no secrets. Its cause is only logged.
type unreadyError struct {
	reason string // what is wrong, for clients
	remedy string // how to repair the fault, for clients
	cause  error  // cause is only logged, and may be nil
}

func (e *unreadyError) Error() string {
	if e.cause == nil {
		return e.reason
	}
	return e.reason + ": " + e.cause.Error()
}

func (e *unreadyError) Unwrap() error { return e.cause }

const (
	readinessInterval = 5 * time.Second
	readinessTimeout  = 5 * time.Second // time limit of a check

	// maxMissedRuns is the number of intervals without a result after which a
	// check counts as failed, because it hangs.
	maxMissedRuns = 6
)

// A readiness runs checks in the background and caches their results, so that a
// request to /readyz causes no further requests. It is safe for concurrent use.
type readiness struct {
	checks   []readinessCheck
	interval time.Duration
	now      func() time.Time
	logger   *slog.Logger
	passed   *prometheus.GaugeVec // by check

	mu      sync.Mutex
	results map[string]readinessResult // results by check name; a check that has not run yet has none
}

// A readinessResult is the result of a check's last run.
type readinessResult struct {
	at     time.Time
	failed *api.FailedCheck // failed is nil if the check passed
}

// newReadiness returns a readiness that runs checks at this interval; 0 selects
// readinessInterval. If interval is negative, it runs no checks and is always
// ready.
func newReadiness(checks []readinessCheck, interval time.Duration, logger *slog.Logger, metrics prometheus.Registerer) *readiness {
	interval = cmp.Or(interval, readinessInterval)
	if interval < 0 {
		checks = nil
	}
	return &readiness{
		checks: checks, interval: interval, now: time.Now, logger: logger,
		passed: promauto.With(metrics).NewGaugeVec(prometheus.GaugeOpts{
			Name: "messagehub_readiness_check_passed",
			Help: "Whether the last run of a readiness check passed (1) or failed (0), by check.",
		}, []string{"check"}),
		results: make(map[string]readinessResult),
	}
}

// Run runs each check every interval until ctx ends.
func (r *readiness) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	for _, c := range r.checks {
		loops.Go(func() { // each check runs in its own loop, so that one that hangs does not delay the rest
			ticker := time.NewTicker(r.interval)
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
					r.runCheck(ctx, c)
				}
			}
		})
	}
	loops.Wait()
	return nil
}

// runChecks runs all checks once, concurrently.
func (r *readiness) runChecks(ctx context.Context) {
	var runs sync.WaitGroup
	for _, c := range r.checks {
		runs.Go(func() { r.runCheck(ctx, c) })
	}
	runs.Wait()
}

// runCheck runs c and caches the result. If the result has changed, it logs the
// change.
func (r *readiness) runCheck(ctx context.Context, c readinessCheck) {
	attempt, cancel := context.WithTimeout(ctx, readinessTimeout)
	defer cancel()
	err := c.run(attempt)
	if ctx.Err() != nil {
		return // the node is stopping, which would make every check fail
	}
	result := readinessResult{at: r.now()}
	if err != nil {
		result.failed = failedCheck(c.name, err)
	}
	r.mu.Lock()
	before := r.results[c.name]
	r.results[c.name] = result
	r.mu.Unlock()

	if err == nil {
		r.passed.WithLabelValues(c.name).Set(1)
		if before.failed != nil {
			r.logger.Info("readiness check passes again", "check", c.name)
		}
		return
	}
	r.passed.WithLabelValues(c.name).Set(0)
	if before.failed == nil || before.failed.Reason != result.failed.Reason {
		r.logger.Warn("readiness check failed; /readyz answers 503",
			"check", c.name, "reason", result.failed.Reason, "remedy", result.failed.Remedy, "error", err)
	}
}

// failedCheck converts a check's error to a text that clients may read.
func failedCheck(name string, err error) *api.FailedCheck {
	if e, ok := errors.AsType[*unreadyError](err); ok {
		return &api.FailedCheck{Name: name, Reason: e.reason, Remedy: e.remedy}
	}
	return &api.FailedCheck{Name: name, Reason: "the check failed", Remedy: "see the log of the hub"}
}

// Ready returns nil if the last runs of all checks passed. Otherwise it returns
// an *api.NotReadyError. It reads only cached results.
func (r *readiness) Ready(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var failed []api.FailedCheck
	for _, c := range r.checks {
		result, hasRun := r.results[c.name]
		switch age := r.now().Sub(result.at); {
		case !hasRun:
			failed = append(failed, api.FailedCheck{Name: c.name, Reason: "the check has not run yet", Remedy: "repeat the request in a few seconds"})
		case age > maxMissedRuns*r.interval+readinessTimeout:
			failed = append(failed, api.FailedCheck{
				Name: c.name, Reason: fmt.Sprintf("the check has not finished for %s", age.Round(time.Second)),
				Remedy: "check whether the disk or the network of the hub hangs",
			})
		case result.failed != nil:
			failed = append(failed, *result.failed)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return &api.NotReadyError{Checks: failed}
}
