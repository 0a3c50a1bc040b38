package demo

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cosmos/embedded/httpserve"
	"github.com/messagehub/messagehub/domain"
)

// A calledActor does not poll. The hub calls it when data is available; then it
// fetches the data.
type calledActor struct {
	*actorClient
	name         string
	verifier     webhook.Verifier
	subscription domain.SubscriptionID

	listener net.Listener
	called   chan struct{} // contains a value if the hub has called since the last fetch began
	isAway   atomic.Bool   // isAway means that the receiver answers 503
	accepted atomic.Int64  // accepted calls
	refused  atomic.Int64  // number of calls that the receiver answered with 503
	invalid  atomic.Int64  // number of calls with an invalid signature
}

// callTimeout is the timeout of the hub's calls in the demo.
const callTimeout = 5 * time.Second

// callDelays lists the pauses before the attempts of a delivery. They are
// short, because with the default pauses a dead letter takes days.
var callDelays = []time.Duration{0, 500 * time.Millisecond, time.Second}

// subscribeToCalls opens a loopback port and subscribes with its URL, so that
// the hub calls the actor.
func (a *calledActor) subscribeToCalls(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	a.listener, a.called = listener, make(chan struct{}, 1)
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // rand.Read never fails
	text := "whsec_" + base64.StdEncoding.EncodeToString(secret)
	key, err := webhook.ParseVerifyKey(text)
	if err != nil {
		return err
	}
	a.verifier.Keys = []webhook.VerifyKey{key}
	_, _ = rand.Read(a.subscription[:])
	_, _, err = a.hub.PutSubscription(ctx, a.actor, a.subscription, &domain.Subscription{
		Topic: domain.DataTopic, CallbackURL: "http://" + listener.Addr().String() + "/", Method: http.MethodPost, Encoding: domain.JSONEncoding,
	}, hubclient.Hidden{Secret: &text})
	return err
}

// serveCalls answers the hub's calls until ctx ends.
func (a *calledActor) serveCalls(ctx context.Context) error {
	return httpserve.Serve(ctx, a.listener, httpserve.Options{
		Handler: a, Logger: slog.New(slog.DiscardHandler), Server: "the receiver of " + a.name, MaxConnections: 16,
	})
}

// ServeHTTP answers a call of the hub.
func (a *calledActor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err == nil {
		_, err = a.verifier.Verify(r.Header, body, time.Now())
	}
	switch {
	case err != nil:
		a.invalid.Add(1)
		http.Error(w, err.Error(), http.StatusUnauthorized)
	case a.isAway.Load():
		a.refused.Add(1)
		http.Error(w, "away", http.StatusServiceUnavailable)
	default:
		a.accepted.Add(1)
		select {
		case a.called <- struct{}{}:
		default: // a fetch is already pending, and will return the data of this call too
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// errNotCalled means that an actor did not fetch all of its data, because the
// hub did not call it.
var errNotCalled = errors.New("the hub has not called this actor")

// fetchWhenCalled drains after each call until isDone returns true. It fails
// with errNotCalled if isDone is still false limit after sent is closed.
func (a *calledActor) fetchWhenCalled(ctx context.Context, sent <-chan struct{}, limit time.Duration, isDone func() bool) error {
	var late <-chan time.Time
	for {
		select {
		case <-a.called:
			if err := a.drainGroup(ctx, ""); err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
		case <-sent:
			timer := time.NewTimer(limit)
			defer timer.Stop()
			sent, late = nil, timer.C
		case <-late:
			return fmt.Errorf("%s: %w", a.name, errNotCalled)
		case <-ctx.Done():
			return ctx.Err()
		}
		if sent == nil && isDone() {
			return nil
		}
	}
}
