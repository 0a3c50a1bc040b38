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

const (
	watchesPath = "/v1/_notifications/watch"
	// watchedDocuments is the number of documents that are changed. Each document has a permanent watch.
	watchedDocuments = 2
	// changeRoom is the limit for the changes of a document that its watch has not accepted.
	changeRoom = 10
)

// runWatching kills the hub at each of the crash sites while watched documents change. At the end each watch must have
// accepted each change and counted the change once.
func (run *crashRun) runWatching(ctx context.Context, sites []crashSite) error {
	run.orders.Push, run.domain.silent = true, true
	receiver := newWatchReceiver()
	defer receiver.server.Close()
	if err := run.restartHub(ctx, crashSite{}); err != nil {
		return err
	}
	documents := make([]*watchedDocument, watchedDocuments)
	for i := range documents {
		documents[i] = &watchedDocument{run: run, receiver: receiver, name: fmt.Sprint("document-", i), owner: fmt.Sprint("owner-", i)}
		if err := documents[i].createWatch(ctx, documents[i].owner, receiver.server.URL+"/"+documents[i].name); err != nil {
			return fmt.Errorf("watch %s: %w\n%s", documents[i].name, err, run.hub.errorOutput())
		}
	}
	all, ctx := errgroup.WithContext(ctx)
	stop := make(chan struct{})
	for _, d := range documents {
		all.Go(func() error { return d.changeUntil(ctx, stop) })
		all.Go(func() error { return d.churnWatches(ctx, stop) })
	}
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
	for _, d := range documents {
		if err == nil {
			err = d.awaitAccepted(context.WithoutCancel(ctx), 2*run.patience)
		}
	}
	if err != nil {
		run.hub.killProcess()
		return fmt.Errorf("%w\nthe hub was killed at: %v\nthe output of the last one: %s", err, run.killed, run.hub.errorOutput())
	}
	return run.stopAndVerify(context.WithoutCancel(ctx))
}

// A watchedDocument is a document, its only writer and its permanent watch.
type watchedDocument struct {
	run         *crashRun
	receiver    *watchReceiver
	name, owner string
	changes     int // committed changes
}

func (d *watchedDocument) documentURI() string { return d.run.load.url + "/v1/resources/" + d.name }

func (d *watchedDocument) createWatch(ctx context.Context, owner, callback string) error {
	body := fmt.Appendf(nil, `{"resource":%q,"callback":%q}`, d.documentURI(), callback)
	_, err := d.run.load.sendRequest(ctx, http.MethodPost, watchesPath+"?absent=allow", owner, body)
	return err
}

// changeUntil changes the document until stop is closed, and then once more, so that the running hub publishes the
// earlier changes too. The request with each version is repeated until the version is stored. The first version
// creates the document; a creation does not count as a change.
func (d *watchedDocument) changeUntil(ctx context.Context, stop <-chan struct{}) error {
	n := 0
	for isLast := false; !isLast; n++ {
		isLast = !d.receiver.awaitRoom(ctx, d.name, n, stop)
		err := d.run.load.retryUntilDone(ctx, func() error { return d.putVersion(ctx, n) })
		if err != nil {
			return fmt.Errorf("put version %d of %s: %w", n, d.name, err)
		}
		d.changes = n
	}
	return nil
}

// putVersion stores a version, unless an earlier attempt has stored it.
func (d *watchedDocument) putVersion(ctx context.Context, n int) error {
	path, body := "/v1/resources/"+d.name, fmt.Appendf(nil, `{"version":%d}`, n)
	found, err := d.run.load.sendRequest(ctx, http.MethodGet, path, d.owner, nil)
	refused, isRefused := errors.AsType[*refusalError](err)
	switch {
	case isRefused && refused.status == http.StatusNotFound && n == 0:
	case err != nil:
		return err
	case string(found.body) == string(body):
		return nil
	}
	_, err = d.run.load.sendRequest(ctx, http.MethodPut, path, d.owner, body)
	return err
}

// churnWatches creates watches whose receiver always fails, and deletes them soon after. It also deletes watches whose
// creation a killed hub did not answer.
func (d *watchedDocument) churnWatches(ctx context.Context, stop <-chan struct{}) error {
	visitor := "visitor-of-" + d.name
	for ctx.Err() == nil {
		select {
		case <-stop:
			return nil
		default:
		}
		err := d.createWatch(ctx, visitor, d.receiver.server.URL+failingPath)
		_ = clock.Sleep(ctx, 100*time.Millisecond) // time for a call of the receiver; if ctx has ended, the next request fails
		var found watchList
		if err == nil {
			found, err = d.listWatches(ctx, visitor)
		}
		for _, one := range found.Items {
			if err == nil {
				_, err = d.run.load.sendRequest(ctx, http.MethodDelete, watchesPath+"/"+one.ID, visitor, nil)
			}
		}
		if refused, ok := errors.AsType[*refusalError](err); ok && !refused.canPass() && refused.status != http.StatusNotFound {
			return fmt.Errorf("create and delete watches: %w", err)
		}
		_ = clock.Sleep(ctx, 20*time.Millisecond) // the loop checks ctx, so the error is ignored
	}
	return nil
}

// A watchList is the response to a request for the watches of an actor.
type watchList struct {
	Items []struct {
		ID        string `json:"id"`
		Triggered int    `json:"count_triggered"`
		Delivered int    `json:"count_delivered"`
		Errored   int    `json:"count_errored"`
	} `json:"items"`
}

func (d *watchedDocument) listWatches(ctx context.Context, owner string) (found watchList, err error) {
	a, err := d.run.load.sendRequest(ctx, http.MethodGet, watchesPath, owner, nil)
	if err == nil {
		err = json.Unmarshal(a.body, &found)
	}
	return found, err
}

// awaitAccepted waits until the watch has accepted all changes, and returns an error unless the counters of the watch
// match the number of changes.
func (d *watchedDocument) awaitAccepted(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !d.receiver.awaitAccepted(ctx, d.name, d.changes) {
		return fmt.Errorf("the receiver of the watch of %s has accepted %d of %d changes", d.name, d.receiver.countTaken(d.name), d.changes)
	}
	for {
		found, err := d.listWatches(ctx, d.owner)
		switch {
		case err != nil:
			return fmt.Errorf("read the watch of %s: %w", d.name, err)
		case len(found.Items) != 1:
			return fmt.Errorf("%s has %d watches, want 1", d.owner, len(found.Items))
		}
		c := found.Items[0]
		if c.Delivered == d.changes && c.Triggered == d.changes && c.Errored == 0 {
			return d.receiver.checkCalls(d.name, d.changes, len(d.run.killed))
		}
		if c.Triggered != d.changes || c.Delivered > d.changes || c.Errored > 0 {
			return fmt.Errorf("%d changes of %s were committed, but its watch counts %+v", d.changes, d.name, c)
		}
		if err := clock.Sleep(ctx, 20*time.Millisecond); err != nil { // time for the hub to settle the last calls
			return fmt.Errorf("%d changes of %s were committed, but its watch counts %+v: %w", d.changes, d.name, c, err)
		}
	}
}

// failingPath is the path of receivers that always fail.
const failingPath = "/fails"

// A watchReceiver receives the calls of watches, on a path for each document. It fails the first call of every fourth
// notification.
type watchReceiver struct {
	server *httptest.Server

	mu       sync.Mutex
	calls    map[string]map[string]int  // number of calls, by document and notification
	accepted map[string]map[string]bool // accepted notifications, by document
	changed  chan struct{}              // closed and replaced on each call
}

func newWatchReceiver() *watchReceiver {
	r := &watchReceiver{calls: make(map[string]map[string]int), accepted: make(map[string]map[string]bool), changed: make(chan struct{})}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == failingPath || !r.noteCall(req.URL.Path[1:], req.Header.Get("Webhook-Id")) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	return r
}

// noteCall records a call, and reports whether the receiver accepts it.
func (r *watchReceiver) noteCall(document, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls[document] == nil {
		r.calls[document], r.accepted[document] = make(map[string]int), make(map[string]bool)
	}
	isFirst := r.calls[document][id] == 0
	r.calls[document][id]++
	if isFirst && len(r.calls[document])%4 == 0 {
		return false
	}
	r.accepted[document][id] = true
	close(r.changed)
	r.changed = make(chan struct{})
	return true
}

func (r *watchReceiver) countTaken(document string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.accepted[document])
}

// awaitRoom waits until a document may be changed for the nth time. It returns false if this change is the last one,
// because stop is closed or ctx has ended.
func (r *watchReceiver) awaitRoom(ctx context.Context, document string, n int, stop <-chan struct{}) bool {
	for {
		r.mu.Lock()
		isFree, changed := n-len(r.accepted[document]) < changeRoom, r.changed
		r.mu.Unlock()
		select {
		case <-stop:
			return false
		case <-ctx.Done():
			return false
		default:
		}
		if isFree {
			return true
		}
		select {
		case <-changed:
		case <-stop:
		case <-ctx.Done():
		}
	}
}

// awaitAccepted waits until n changes of a document were accepted. It returns false if ctx ends first.
func (r *watchReceiver) awaitAccepted(ctx context.Context, document string, n int) bool {
	for {
		r.mu.Lock()
		accepted, changed := len(r.accepted[document]), r.changed
		r.mu.Unlock()
		if accepted >= n {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// checkCalls returns an error unless there was a call for each change. The number of repeated calls must not exceed the
// number of calls that may have been active at the kills.
func (r *watchReceiver) checkCalls(document string, changes, deaths int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := 0
	for _, n := range r.calls[document] {
		sum += n
	}
	limit := changes + changes/4 + deaths*pushCalls
	if len(r.calls[document]) != changes || sum > limit {
		return fmt.Errorf("%s was changed %d times, and its watch was called %d times with %d notifications, want at most %d calls", document, changes, sum, len(r.calls[document]), limit)
	}
	return nil
}
