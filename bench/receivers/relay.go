package receivers

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/domain"
)

// A Relay accepts batches of events as a hub does, and calls the receivers with the hub's
// client. It stores nothing: events that are not delivered when it ends are lost.
type Relay struct {
	url    string
	server *http.Server
	client *webhook.Client
	calls  chan webhook.Delivery
	life   sync.WaitGroup
}

// StartRelay starts a relay that calls urls for each event, with up to workers concurrent
// calls.
func StartRelay(ctx context.Context, urls []string, workers int) (*Relay, error) {
	signer, err := webhook.ParseSecret(secret)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{
		url: "http://" + listener.Addr().String(), calls: make(chan webhook.Delivery, 1000),
		client: webhook.New(webhook.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true}),
	}
	settings := make([]*domain.Subscription, len(urls))
	for i, url := range urls {
		settings[i] = &domain.Subscription{CallbackURL: url, Method: http.MethodPost, Encoding: domain.JSONEncoding}
	}
	r.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { r.relayEvents(w, req, settings, signer) })}
	r.life.Go(func() { _ = r.server.Serve(listener) }) // Serve returns after Close
	for range workers {
		r.life.Go(func() {
			for d := range r.calls {
				_, _ = r.client.Send(context.WithoutCancel(ctx), &d) // the receiver counts the calls
			}
		})
	}
	return r, nil
}

// URL returns the URL of the relay for senders.
func (r *Relay) URL() string { return r.url }

// Close stops the relay after it has delivered all accepted events.
func (r *Relay) Close(ctx context.Context) error {
	err := r.server.Shutdown(context.WithoutCancel(ctx))
	close(r.calls)
	r.life.Wait()
	r.client.Close()
	return err
}

func (r *Relay) relayEvents(w http.ResponseWriter, req *http.Request, settings []*domain.Subscription, signer webhook.Secret) {
	text, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 8*maxBody))
	var events []cloudEvent
	if err == nil {
		err = json.Unmarshal(text, &events)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, e := range events {
		for _, s := range settings {
			r.calls <- webhook.Delivery{
				ID: e.ID, Subscription: "relay", Settings: s, Secrets: []webhook.Secret{signer},
				Message: &domain.Message{
					ID: e.ID, ContentType: "application/json", Payload: e.Data,
					Attributes: map[string]string{"specversion": e.SpecVersion, "id": e.ID, "source": e.Source, "type": e.Type},
				},
			}
		}
	}
	w.WriteHeader(http.StatusAccepted)
}
