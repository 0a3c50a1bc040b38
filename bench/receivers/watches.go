package receivers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/domain"
)

// WatchURL returns the URL of the n-th receiver of watches, which responds with 200 immediately.
func (s *Server) WatchURL(n int) string { return s.url + "/watch/" + strconv.Itoa(n) }

// countNotification counts the first call of a receiver for a resource, as receive does for an event.
func (s *Server) countNotification(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	var n struct {
		Resource string `json:"resource"`
	}
	if err = errors.Join(err, json.Unmarshal(body, &n)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.noteCall(eventCall{req.PathValue("receiver"), n.Resource})
}

// CallWatches makes the calls of a hub for a change of a resource to n receivers of s, with a
// number of workers. It stores nothing.
func CallWatches(ctx context.Context, s *Server, resource string, n, workers int) error {
	client := webhook.New(webhook.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true})
	defer client.Close()
	numbers := make(chan int)
	var calls sync.WaitGroup
	for range workers {
		calls.Go(func() {
			for i := range numbers {
				_, _ = client.CallWatch(ctx, &webhook.WatchCall{ // the receiver counts the calls
					ID: strconv.Itoa(i), Resource: resource, CallbackURL: s.WatchURL(i), Event: domain.ResourceUpdated, Changed: time.Now(),
				})
			}
		})
	}
	for i := range n {
		select {
		case numbers <- i:
		case <-ctx.Done():
		}
	}
	close(numbers)
	calls.Wait()
	return ctx.Err()
}

// A Watcher is an actor that changes and watches resources of a hub.
type Watcher struct {
	Client *http.Client
	URL    string // URL of the hub
	Actor  string
}

// Put stores a document, and returns its URI.
func (w *Watcher) Put(ctx context.Context, name, text string) (uri string, err error) {
	uri = w.URL + "/v1/resources/" + name
	body, err := json.Marshal(map[string]string{"text": text})
	if err == nil {
		err = w.doRequest(ctx, http.MethodPut, uri, body)
	}
	return uri, err
}

// Watch creates a watch of a resource.
func (w *Watcher) Watch(ctx context.Context, resource, callback string) error {
	body, err := json.Marshal(map[string]string{"resource": resource, "callback": callback})
	if err == nil {
		err = w.doRequest(ctx, http.MethodPost, w.URL+"/v1/_notifications/watch", body)
	}
	return err
}

// OpenBundle sends an event to the actor, peeks as the actor, and returns the URI of the
// bundle.
func (w *Watcher) OpenBundle(ctx context.Context, event, bundle string) (uri string, err error) {
	body, err := json.Marshal([]map[string]any{{
		"id": event, "recipient": w.Actor, "origin": "TimeSeries", "contentType": "measured-data", "documentType": "D18",
		"supportsBundling": true, "weight": 1, "payload": map[string]int{"kwh": 1},
	}})
	if err == nil {
		err = w.doRequest(ctx, http.MethodPost, w.URL+"/v1/data-available", body)
	}
	if err == nil {
		err = w.doRequest(ctx, http.MethodGet, w.URL+"/v1/peek?bundleId="+bundle, nil)
	}
	return w.URL + "/v1/bundles/" + bundle, err
}

// Dequeue confirms the bundle of the actor.
func (w *Watcher) Dequeue(ctx context.Context, bundle string) error {
	return w.doRequest(ctx, http.MethodDelete, w.URL+"/v1/dequeue/"+bundle, nil)
}

// doRequest sends a request that must succeed. It does not follow redirects.
func (w *Watcher) doRequest(ctx context.Context, method, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Actor-Id", w.Actor)
	resp, err := w.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, answer)
	}
	return err
}
