//go:build unix

package crashsites

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// pushRoom is the limit for the published events that not all receivers have accepted.
const pushRoom = 20

// pushCalls is the limit for the concurrent calls of a receiver.
const pushCalls = 16

// runPushing kills the hub at each of the crash sites while it calls receivers. At the end each receiver must have
// accepted each event.
func (run *crashRun) runPushing(ctx context.Context, sites []crashSite) error {
	run.orders.Push, run.domain.silent = true, true
	receivers := newPushReceivers(2)
	defer receivers.closeAll()
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer down.Close()
	if err := run.restartHub(ctx, crashSite{}); err != nil {
		return err
	}
	subscriptions := make([]string, len(receivers.servers))
	for i, server := range receivers.servers {
		body := fmt.Appendf(nil, `{"topic":"events","callback_url":%q}`, server.URL)
		a, err := run.load.sendRequest(ctx, http.MethodPost, "/v1/subscriptions", pushOwner(i), body)
		if err != nil {
			return fmt.Errorf("subscribe: %w\n%s", err, run.hub.errorOutput())
		}
		var created struct{ UUID string }
		if err := json.Unmarshal(a.body, &created); err != nil {
			return fmt.Errorf("subscribe: %w", err)
		}
		subscriptions[i] = created.UUID
	}
	all, ctx := errgroup.WithContext(ctx)
	stop := make(chan struct{})
	all.Go(func() error { return run.publishEvents(ctx, receivers, stop) })
	all.Go(func() error { return run.churnSubscriptions(ctx, down.URL, stop) })
	all.Go(func() error {
		defer close(stop)
		for _, c := range sites {
			if err := run.killAtSite(ctx, c); err != nil {
				return err
			}
		}
		return run.restartHub(ctx, crashSite{})
	})
	err := all.Wait()
	if err == nil {
		ctx := context.WithoutCancel(ctx)
		err = receivers.awaitAccepted(ctx, run.patience/6, len(run.killed))
		if errors.Is(err, context.DeadlineExceeded) {
			if err = run.replayDeadLetters(ctx, subscriptions); err == nil {
				err = receivers.awaitAccepted(ctx, 2*run.patience, len(run.killed))
			}
		}
	}
	if err != nil {
		run.hub.killProcess()
		return fmt.Errorf("%w\nthe hub was killed at: %v\nthe output of the last one: %s", err, run.killed, run.hub.errorOutput())
	}
	return run.stopAndVerify(context.WithoutCancel(ctx))
}

// publishEvents publishes events, each until it is accepted.
func (run *crashRun) publishEvents(ctx context.Context, r *pushReceivers, stop <-chan struct{}) error {
	for n := 0; r.awaitRoom(ctx, stop); n++ {
		body := fmt.Appendf(nil, `{"specversion":"1.0","id":"%d","source":"/load","type":"made","data":{"n":%d}}`, n, n)
		err := run.load.retryUntilDone(ctx, func() error {
			_, err := run.load.sendRequest(ctx, http.MethodPost, "/v1/events?topic=events", "publisher", body)
			return err
		})
		if err != nil {
			return fmt.Errorf("publish event %d: %w", n, err)
		}
		r.noteAccepted(fmt.Sprint(n))
	}
	return nil
}

func pushOwner(receiver int) string { return fmt.Sprint("owner-", receiver) }

// replayDeadLetters replays the dead letters of subscriptions, as the owners of the subscriptions would. If the hub was
// killed during several calls with the same event, the hub makes the event a dead letter, because it assumes that the
// event caused the crashes.
func (run *crashRun) replayDeadLetters(ctx context.Context, subscriptions []string) error {
	for i, id := range subscriptions {
		a, err := run.load.sendRequest(ctx, http.MethodGet, "/v1/deliveries?state=dead&subscription="+id, pushOwner(i), nil)
		if err != nil {
			return fmt.Errorf("list dead letters: %w", err)
		}
		var found struct{ Deliveries []struct{ ID, Reason string } }
		if err := json.Unmarshal(a.body, &found); err != nil {
			return fmt.Errorf("list dead letters: %w", err)
		}
		for _, d := range found.Deliveries {
			if d.Reason != "every node that called with it ended" {
				return fmt.Errorf("%s is a dead letter: %s", d.ID, d.Reason)
			}
			if _, err := run.load.sendRequest(ctx, http.MethodPost, "/v1/deliveries/"+d.ID+"/replay", pushOwner(i), nil); err != nil {
				return fmt.Errorf("replay a dead letter: %w", err)
			}
		}
	}
	return nil
}

// churnSubscriptions creates subscriptions whose receiver always fails, and deletes them soon after. A subscription is
// not deleted if the hub was killed before it answered the creation.
func (run *crashRun) churnSubscriptions(ctx context.Context, url string, stop <-chan struct{}) error {
	body := fmt.Appendf(nil, `{"topic":"events","callback_url":%q}`, url)
	for n := 0; ctx.Err() == nil; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		owner := fmt.Sprint("visitor-", n%50)
		var created struct{ UUID string }
		a, err := run.load.sendRequest(ctx, http.MethodPost, "/v1/subscriptions", owner, body)
		if err == nil {
			if err := json.Unmarshal(a.body, &created); err != nil || created.UUID == "" {
				return fmt.Errorf("the answer to the creation of a subscription cannot be read: %s", a.body)
			}
			_ = clock.Sleep(ctx, 100*time.Millisecond) // time for a call of the receiver; if ctx has ended, the next request fails
			_, err = run.load.sendRequest(ctx, http.MethodDelete, "/v1/subscriptions/"+created.UUID, owner, nil)
		}
		if refused, ok := errors.AsType[*refusalError](err); ok && !refused.canPass() {
			return fmt.Errorf("create and delete subscriptions: %w", err)
		}
		_ = clock.Sleep(ctx, 20*time.Millisecond) // the loop checks ctx, so the error is ignored
	}
	return nil
}

// pushReceivers are receivers that fail the first call with each event.
type pushReceivers struct {
	servers []*httptest.Server

	mu      sync.Mutex
	events  []string         // accepted events
	calls   []map[string]int // number of calls, by receiver and event
	changed chan struct{}    // closed and replaced on each call
}

func newPushReceivers(n int) *pushReceivers {
	r := &pushReceivers{changed: make(chan struct{})}
	for i := range n {
		r.calls = append(r.calls, make(map[string]int))
		r.servers = append(r.servers, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			var n struct{ Event struct{ ID string } }
			if json.NewDecoder(req.Body).Decode(&n) != nil || n.Event.ID == "" || !r.noteCall(i, n.Event.ID) {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})))
	}
	return r
}

func (r *pushReceivers) closeAll() {
	for _, s := range r.servers {
		s.Close()
	}
}

// noteCall records a call of receiver i, and reports whether the receiver must accept the call.
func (r *pushReceivers) noteCall(i int, event string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[i][event]++
	close(r.changed)
	r.changed = make(chan struct{})
	return r.calls[i][event] > 1
}

func (r *pushReceivers) noteAccepted(event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event)
}

// countUnaccepted returns the number of events that not all receivers have accepted.
func (r *pushReceivers) countUnaccepted() (n int, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		for _, calls := range r.calls {
			if calls[e] < 2 {
				n++
				break
			}
		}
	}
	return n, r.changed
}

// awaitRoom waits until the next event may be published. It returns false if publishing must stop.
func (r *pushReceivers) awaitRoom(ctx context.Context, stop <-chan struct{}) bool {
	for {
		unaccepted, changed := r.countUnaccepted()
		select {
		case <-stop:
			return false
		case <-ctx.Done():
			return false
		default:
		}
		if unaccepted < pushRoom {
			return true
		}
		select {
		case <-changed:
		case <-stop:
		case <-ctx.Done():
		}
	}
}

// awaitAccepted waits until all events are accepted. It returns an error if the number of repeated calls exceeds the
// number of calls that may have been active at the kills.
func (r *pushReceivers) awaitAccepted(ctx context.Context, patience time.Duration, deaths int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		unaccepted, changed := r.countUnaccepted()
		if unaccepted == 0 {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%d events were published, but not delivered: %w", unaccepted, ctx.Err())
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, calls := range r.calls {
		sum := 0
		for _, n := range calls {
			sum += n
		}
		if limit := 2*len(calls) + deaths*pushCalls; sum > limit {
			return fmt.Errorf("receiver %d was called %d times with %d events, want at most %d", i, sum, len(calls), limit)
		}
	}
	return nil
}
