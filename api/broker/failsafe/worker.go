package failsafe

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A Hub lists and re-triggers jobs.
type Hub interface {
	// Overdue returns a page of the jobs that have been overdue for at least delay. page is "" for
	// the first page, and otherwise Next of the previous page. It fails with Invalid if there is no
	// such page.
	Overdue(ctx context.Context, delay time.Duration, page string) (Page, error)

	// Retrigger makes a node take over a job. It fails with NotFound or Conflict if the job needs
	// no re-trigger.
	Retrigger(ctx context.Context, job Job) error
}

// A Page is a page of a list of overdue jobs. An empty page need not be the last one.
type Page struct {
	Jobs []Job
	Next string // argument for the next page; "" on the last page
}

// A Job is the delivery of a message to a consumer.
type Job struct{ Channel, Message, Consumer string }

// A WaitError is a failure after which the hub requests a pause.
type WaitError struct {
	Err error
	For time.Duration
}

func (e *WaitError) Error() string { return e.Err.Error() }

func (e *WaitError) Unwrap() error { return e.Err }

// Options are the options of a Worker. The zero value is valid.
type Options struct {
	Delay    time.Duration // minimum time for which a job must be overdue; default 2 s
	Interval time.Duration // pause between rounds, randomly varied by a fifth; default: Delay, but at least 1 s

	Clock  func() time.Time                       // default time.Now
	After  func(d time.Duration) <-chan time.Time // default time.After
	Random func() uint64                          // source of random numbers; default: rand.Uint64
	Logger *slog.Logger                           // default: none
}

const (
	maxRequests    = 64               // maximum number of requests in a round
	retriggerEvery = 15 * time.Second // minimum time between re-triggers of the same job
	minInterval    = time.Second
	maxPause       = time.Minute      // maximum pause after failures, unless the hub requests a longer one
	maxWait        = 10 * time.Minute // maximum pause that the hub can request
)

// A Worker re-triggers overdue jobs. Only one goroutine may call its methods.
type Worker struct {
	hub  Hub
	opts Options

	page     string            // page with which the next round starts
	recent   map[Job]time.Time // times of the re-triggers within the last retriggerEvery; at most maxRequests entries
	requests int               // number of requests in the current round
	count    int               // number of successful re-triggers in the current round
}

// New returns a Worker, which starts when Run is called.
func New(hub Hub, opts Options) *Worker {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.After == nil {
		opts.After = time.After
	}
	if opts.Random == nil {
		opts.Random = rand.Uint64
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.Delay = cmp.Or(opts.Delay, 2*time.Second)
	opts.Interval = cmp.Or(opts.Interval, max(opts.Delay, minInterval))
	return &Worker{hub: hub, opts: opts, recent: make(map[Job]time.Time)}
}

// Run executes rounds until ctx ends.
func (w *Worker) Run(ctx context.Context) {
	failures, pause := 0, w.varyPause(w.opts.Interval)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.opts.After(pause):
		}
		err := w.runRound(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failures++
			pause = w.pauseAfter(failures, err)
			if bits.OnesCount(uint(failures)) == 1 { // consecutive failures 1, 2, 4, 8 and so on are logged
				w.opts.Logger.WarnContext(ctx, "overdue jobs of the broker cannot be re-triggered", "error", err, "failures", failures)
			}
		default:
			if failures > 0 {
				w.opts.Logger.InfoContext(ctx, "overdue jobs of the broker can be re-triggered again", "failures", failures)
			}
			failures, pause = 0, w.varyPause(w.opts.Interval)
		}
		if w.count > 0 {
			w.opts.Logger.InfoContext(ctx, "re-triggered overdue jobs of the broker", "count", w.count)
		}
	}
}

// varyPause returns a random duration that differs from d by up to a fifth.
func (w *Worker) varyPause(d time.Duration) time.Duration {
	return d*4/5 + w.randomBelow(d*2/5)
}

// randomBelow returns a random duration below d, which must be positive.
func (w *Worker) randomBelow(d time.Duration) time.Duration {
	return time.Duration(w.opts.Random() % uint64(max(d, 1))) //nolint:gosec // below d
}

// pauseAfter returns the pause after the given number of consecutive failures. The pause doubles
// with each failure up to maxPause, and is shortened at random. It is never shorter than the pause
// that the hub requests.
func (w *Worker) pauseAfter(failures int, err error) time.Duration {
	d := min(max(w.opts.Interval, minInterval)<<min(failures, 10), maxPause)
	d = d/2 + w.randomBelow(d/2)
	if wait, ok := errors.AsType[*WaitError](err); ok {
		d = max(d, min(wait.For, maxWait)+w.randomBelow(time.Second))
	}
	return d
}

// runRound re-triggers overdue jobs, starting where the previous round ended. It limits the number
// of its requests.
func (w *Worker) runRound(ctx context.Context) error {
	w.requests, w.count = 0, 0
	now := w.opts.Clock()
	for job, at := range w.recent {
		if d := now.Sub(at); d >= retriggerEvery || d < 0 { // d is negative if the clock was set back
			delete(w.recent, job)
		}
	}
	for w.mayRequest() {
		page, err := w.hub.Overdue(ctx, w.opts.Delay, w.page)
		if err != nil {
			if domain.KindOf(err) == domain.Invalid {
				w.page = "" // the next round starts with the first page
			}
			return err
		}
		if isDone, err := w.retriggerJobs(ctx, page.Jobs); !isDone || err != nil {
			return err // the next round requests this page again
		}
		if w.page = page.Next; w.page == "" {
			return nil
		}
	}
	return nil
}

// mayRequest counts a request. It returns false if the round has reached its limit.
func (w *Worker) mayRequest() bool {
	w.requests++
	return w.requests <= maxRequests
}

// retriggerJobs re-triggers jobs. It returns false if the round reaches its limit before the last
// of them.
func (w *Worker) retriggerJobs(ctx context.Context, jobs []Job) (isDone bool, err error) {
	for _, job := range jobs {
		if _, isRecent := w.recent[job]; isRecent {
			continue
		}
		if !w.mayRequest() {
			return false, nil
		}
		err := w.hub.Retrigger(ctx, job)
		w.recent[job] = w.opts.Clock() // recorded even after a failure, so that a failing job does not delay the remaining jobs
		kind := domain.KindOf(err)
		switch {
		case err == nil:
			w.count++
		case kind == domain.NotFound, kind == domain.Conflict: // the job has already ended
		default:
			return false, err
		}
	}
	return true, nil
}
