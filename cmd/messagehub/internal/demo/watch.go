package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cosmos/embedded/httpserve"
)

// watchingActor is an actor that has one bundle, and watches it.
const watchingActor = "5790000000005"

// watchBundle lets an actor watch a bundle and then dequeue it, and waits until
// the hub has called the watch's callback.
func (d *Demo) watchBundle(ctx context.Context, hub *hubclient.Client, url string) (err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	notified, served := make(chan notification, 1), make(chan error, 1)
	go func() {
		served <- httpserve.Serve(serving, listener, httpserve.Options{
			Handler: watchHandler(notified), Logger: slog.New(slog.DiscardHandler), Server: "the receiver of the watch", MaxConnections: 16,
		})
	}()
	defer func() {
		stop()
		err = errors.Join(err, <-served)
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, d.patience, errNotCalled)
	defer cancel()

	bundle := uuid.NewString()
	event := `[{"id":"` + uuid.NewString() + `","recipient":"` + watchingActor + `","origin":"MarketRoles","contentType":"Roles",` +
		`"documentType":"D18","supportsBundling":true,"weight":1}]`
	if _, err := hub.SendEvents(ctx, []byte(event)); err != nil {
		return err
	}
	if _, _, err := hub.Peek(ctx, watchingActor, hubclient.PeekOptions{BundleID: bundle}); err != nil {
		return err
	}
	resource := url + "/v1/bundles/" + bundle
	if _, err := hub.CreateWatch(ctx, watchingActor, resource, "http://"+listener.Addr().String()+"/", false); err != nil {
		return err
	}
	if err := hub.As(watchingActor).Dequeue(ctx, watchingActor, bundle); err != nil {
		return err
	}
	began := time.Now()
	select {
	case n := <-notified:
		if n.Resource != resource || n.Event != "updated" {
			return fmt.Errorf("the watch was notified that %s is %s", n.Resource, n.Event)
		}
		_, err := fmt.Fprintf(d.Out, "\nA watch: the hub has called the watch of a bundle %s after its Dequeue was answered.\n", time.Since(began).Round(time.Millisecond))
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A notification is the body of the call with which the hub notifies a watcher.
type notification struct{ Resource, Event string }

// watchHandler answers 200 to each notification, and sends it to notified.
func watchHandler(notified chan<- notification) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n notification
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&n); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case notified <- n:
		default: // a notification is already pending
		}
	})
}
