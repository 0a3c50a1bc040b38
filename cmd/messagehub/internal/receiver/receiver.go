package receiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
	"github.com/messagehub/messagehub/cosmos/embedded/connlimit"
	"github.com/messagehub/messagehub/cosmos/embedded/httpserve"
)

// Options configure a Receiver.
type Options struct {
	Verifier webhook.Verifier // verifies calls; if it has no keys, every call is accepted

	Status     int           // status of the answer to an accepted call; default 200
	Failures   int           // number of calls with the same id that are answered with Status; later calls are answered with 200; 0: no limit
	RetryAfter time.Duration // Retry-After header of answers other than 2xx; 0: none
	Delay      time.Duration // pause before each answer

	MaxBody  int64    // maximum size of a body, in bytes; default 4 MB
	ShowBody int      // maximum number of bytes of a body to print; default 1,000; negative: none
	Headers  bool     // print all headers
	Hidden   []string // header values to hide in addition to HTTP credentials
	JSON     bool     // print each call as one JSON object per line

	Out    io.Writer
	Logger *slog.Logger // server log; default: none

	Clock func() time.Time // default time.Now
}

// Limits of a Receiver.
const (
	maxConnections = 256
	maxCalls       = 32 // maximum number of concurrent calls; each may have a body in memory
	readTimeout    = 30 * time.Second
	maxIDs         = 10_000 // maximum number of stored ids, by which the receiver recognizes repetitions
)

// A Receiver handles a hub's calls. It is an http.Handler, and safe for
// concurrent use.
type Receiver struct {
	opts  Options
	slots chan struct{}

	mu     sync.Mutex
	counts Counts
	seen   map[string]int // number of calls by id
	ids    []string       // keys of the map seen, oldest first
}

// Counts contains the numbers of calls received so far.
type Counts struct {
	Calls    int
	Verified int
	Refused  int // calls that could not be verified or read
	Repeated int // calls with the id of an earlier call
}

// New returns a Receiver with these options.
func New(opts Options) *Receiver {
	opts.Status = cmp.Or(opts.Status, http.StatusOK)
	opts.MaxBody = cmp.Or(opts.MaxBody, 4<<20)
	opts.ShowBody = cmp.Or(opts.ShowBody, 1000)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	return &Receiver{opts: opts, slots: make(chan struct{}, maxCalls), seen: make(map[string]int)}
}

// Serve answers calls on listener until ctx ends.
func (r *Receiver) Serve(ctx context.Context, listener net.Listener) error {
	return httpserve.Serve(ctx, listener, httpserve.Options{Handler: r, Logger: r.opts.Logger, Server: "the receiver", MaxConnections: maxConnections})
}

// Counts returns the numbers of calls so far.
func (r *Receiver) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// String returns the counts as text.
func (c Counts) String() string {
	return fmt.Sprintf("%s, %d verified, %d refused, %d repeated", terminal.CountOf(int64(c.Calls), "call"), c.Verified, c.Refused, c.Repeated)
}

// A call is a received call and its result.
type call struct {
	time    time.Time
	request *http.Request
	number  int // number of calls so far with this id
	body    []byte

	schemes []webhook.Scheme // signature schemes that verified the call
	problem error            // why the call could not be read or verified
	status  int              // status of the answer
}

func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if connlimit.OverLimit(req.Context()) {
		refuseBusy(w)
		return
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	default:
		refuseBusy(w)
		return
	}
	c := &call{time: r.opts.Clock(), request: req, status: r.opts.Status}
	if err := r.readBody(w, c); err != nil {
		c.problem = err
	} else if r.opts.Verifier.HasKeys() {
		c.schemes, c.problem = r.opts.Verifier.Verify(req.Header, c.body, c.time)
		if c.problem != nil {
			c.status = http.StatusUnauthorized
		}
	}
	r.record(c)
	if clock.Sleep(req.Context(), r.opts.Delay) != nil {
		return // no answer, because the caller has disconnected
	}
	if r.opts.RetryAfter > 0 && c.status/100 != 2 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64(math.Ceil(r.opts.RetryAfter.Seconds())), 10))
	}
	if c.problem != nil {
		http.Error(w, c.problem.Error(), c.status)
		return
	}
	w.WriteHeader(c.status)
}

func refuseBusy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many calls at a time; try again", http.StatusServiceUnavailable)
}

// readBody reads the body of a call. If it fails, it sets the status with which
// the call is answered.
func (r *Receiver) readBody(w http.ResponseWriter, c *call) error {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(readTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		c.status = http.StatusInternalServerError
		return err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, c.request.Body, r.opts.MaxBody))
	c.body = body
	if _, isLong := errors.AsType[*http.MaxBytesError](err); isLong {
		c.status = http.StatusRequestEntityTooLarge
		return fmt.Errorf("its body has more than %d bytes", r.opts.MaxBody)
	}
	if err != nil {
		c.status = http.StatusRequestTimeout
		return fmt.Errorf("its body is not complete: %w", err)
	}
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		c.status = http.StatusInternalServerError
		return err
	}
	return nil
}

// record counts a call and prints it.
func (r *Receiver) record(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Calls++
	switch {
	case c.problem != nil:
		r.counts.Refused++
	case len(c.schemes) > 0:
		r.counts.Verified++
	}
	if id := c.request.Header.Get("Webhook-Id"); id != "" && c.problem == nil {
		c.number = r.countCall(id)
		if c.number > 1 {
			r.counts.Repeated++
		}
		if r.opts.Failures > 0 && c.number > r.opts.Failures {
			c.status = http.StatusOK
		}
	}
	if r.opts.JSON {
		r.printJSON(c)
		return
	}
	r.printText(c)
}

// countCall counts a call with this id, and returns how many there were so far.
func (r *Receiver) countCall(id string) int {
	if r.seen[id] == 0 {
		if len(r.ids) >= maxIDs {
			delete(r.seen, r.ids[0])
			r.ids = r.ids[1:]
		}
		r.ids = append(r.ids, id)
	}
	r.seen[id]++
	return r.seen[id]
}
