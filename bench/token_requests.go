package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/service"
	"github.com/messagehub/messagehub/bench/tokens"
	"github.com/messagehub/messagehub/cmd/devissuer"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// measureRememberedToken compares the times in which two nodes refuse a request with an unknown query. The
// work is the same, except that one node identifies the sender by a token. The requests do not use
// a network.
func (b *tokenBench) measureRememberedToken(ctx context.Context) error {
	return b.runInFolder(func(folder string) (err error) {
		handlers := make([]http.Handler, len(sides))
		for i, side := range sides {
			o := b.serviceOf(side)
			o.Folder = filepath.Join(folder, side.name)
			o.WrapHandler = func(next http.Handler) http.Handler {
				handlers[i] = next
				return next
			}
			hub, err := service.Start(ctx, o)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, hub.Stop()) }()
		}
		requests := make([]*http.Request, len(sides))
		for i, side := range sides {
			header, err := b.credentialsOf(side, "actor")
			if err != nil {
				return err
			}
			if requests[i], err = http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/v1/peek?unknown=1", http.NoBody); err != nil {
				return err
			}
			requests[i].RemoteAddr = "127.0.0.1:1"
			requests[i].Header.Set(header[0], header[1])
		}
		rounds, calls := pickSize(b.scenarioRun, 101, 31), 1000
		var took [len(sides)][]float64
		var more []float64 // additional time of the node with tokens, for each round
		for round := range rounds {
			for _, i := range orderOf(round) {
				w := &discarded{}
				began := time.Now()
				for range calls {
					w.header = make(http.Header)
					handlers[i].ServeHTTP(w, requests[i])
				}
				took[i] = append(took[i], float64(time.Since(began).Nanoseconds())/1e3/float64(calls))
				if w.status != http.StatusBadRequest {
					return fmt.Errorf("a request with an unknown query was answered %d, want 400", w.status)
				}
			}
			more = append(more, took[1][round]-took[0][round])
		}
		b.reportFigure("hub", "refusal of an unknown query, without tokens", median(took[0], asIs), "µs", nil)
		b.reportFigure("hub", "refusal of an unknown query, remembered token, additional time", median(more, asIs), "µs", figure.AtMost(5))
		return nil
	})
}

// discarded is a response writer that stores only the status.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d *discarded) WriteHeader(status int)      { d.status = status }

// measureIssuerAway verifies tokens while the issuer is not reachable, for an hour of simulated
// time. Every second it verifies a token that was verified before. Every ten seconds it verifies a
// new token with a known key, and one with an unknown key, for which the hub tries to fetch the
// keys. Each token is valid for five minutes.
func (b *tokenBench) measureIssuerAway(ctx context.Context) (err error) {
	issuer, err := tokens.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, issuer.Stop()) }()
	now := time.Now()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	authenticator := identity.New(identity.Options{
		Issuers: []string{issuer.URL}, Audiences: []string{devissuer.Audience}, Client: client, Clock: func() time.Time { return now },
	})
	authenticate := func(token string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/v1/peek", http.NoBody)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		_, err = authenticator.Authenticate(r)
		return err
	}
	token, err := issuer.Actor("actor", now.Add(tokenLifetime))
	if err == nil {
		err = authenticate(token)
	}
	if err != nil {
		return err
	}
	if err := issuer.Stop(); err != nil {
		return err
	}
	requests, failed, unknown := 0, 0, 0
	for second := range int(time.Hour / time.Second) {
		now = now.Add(time.Second)
		if second%10 == 0 {
			if token, err = issuer.Actor("actor", now.Add(tokenLifetime)); err != nil {
				return err
			}
			forged, err := issuer.Forged("actor", 1)
			if err != nil {
				return err
			}
			if e, ok := errors.AsType[*identity.Error](authenticate(forged[0])); ok && e.Kind == identity.Unavailable {
				unknown++
			}
		}
		requests++
		if authenticate(token) != nil {
			failed++
		}
	}
	b.reportFigure("hub", "issuer unreachable for an hour, requests of a known key", float64(requests), "", nil)
	b.reportFigure("hub", "issuer unreachable for an hour, failed requests of a known key", float64(failed), "", figure.AtMost(0))
	b.reportFigure("hub", "issuer unreachable for an hour, requests of unknown keys answered as unavailable", float64(unknown), "", nil)
	return nil
}

// tokenLifetime is the lifetime of the tokens of measureIssuerAway.
const tokenLifetime = 5 * time.Minute

// The load of measureFullListener.
const (
	publicConnections = 64  // limit of the public listener
	silentClients     = 128 // clients that connect to the public listener, and reconnect when they are disconnected

	reconnectPause = 20 * time.Millisecond
)

// measureFullListener measures requests to /healthz at the listener for operators, while silent
// clients occupy all connections of the public listener. Each request has a new connection.
func (b *tokenBench) measureFullListener(ctx context.Context) error {
	return b.runInFolder(func(folder string) (err error) {
		hub, err := service.Start(ctx, service.Options{Folder: folder, Configure: func(c *config.Config) {
			b.issuer.Trust(c)
			c.AdminListen, c.Limits.Connections = "localhost:0", publicConnections
		}})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, hub.Stop()) }()
		crowding, end := context.WithCancel(ctx)
		var clients sync.WaitGroup
		defer clients.Wait()
		defer end()
		address := strings.TrimPrefix(hub.URL(), "http://")
		for range silentClients {
			clients.Go(func() { stayConnected(crowding, address) })
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		for { // connects until the public listener is full
			status, err := b.sendRequest(ctx, client, http.MethodGet, hub.URL()+"/v1/peek")
			if err != nil || status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
				break // the connection was refused
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		var slowest time.Duration
		refused, probes := 0, pickSize(b.scenarioRun, 200, 50)
		for range probes {
			began := time.Now()
			status, err := b.sendRequest(ctx, client, http.MethodGet, hub.AdminURL()+"/healthz")
			slowest = max(slowest, time.Since(began))
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("/healthz was answered %d", status)
			}
			if err != nil {
				return err
			}
			if status, err = b.sendRequest(ctx, client, http.MethodGet, hub.URL()+"/v1/peek"); err != nil || status != http.StatusUnauthorized {
				refused++
			}
		}
		b.reportFigure("hub", "public listener full, slowest /healthz of operators", inMS(slowest), "ms", figure.AtMost(100))
		b.reportFigure("hub", "public listener full, requests to it that were refused", 100*float64(refused)/float64(probes), "%", nil)
		return nil
	})
}

// stayConnected keeps an idle connection to an address until ctx ends.
func stayConnected(ctx context.Context, address string) {
	pause := time.NewTicker(reconnectPause)
	defer pause.Stop()
	for {
		if conn, err := new(net.Dialer).DialContext(ctx, "tcp", address); err == nil {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			_, _ = io.Copy(io.Discard, conn) // until either side closes the connection
			stop()
			_ = conn.Close()
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}
