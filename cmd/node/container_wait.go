package node

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// IsContainerFault reports whether Open failed because the account's containers
// differ from those that the hub needs. [WaitForContainers] waits until an
// operator has corrected them.
func IsContainerFault(err error) bool { return client.IsContainerFault(err) }

// containerCheckInterval is the time between two checks of the containers.
const containerCheckInterval = 10 * time.Second

// WaitForContainers serves the addresses of a node with cfg, until the
// containers are as the hub needs them or ctx ends. It then stops listening and
// returns nil, so Open may be called again. It answers /healthz with 200 and
// all other requests with 503. /readyz reports the current fault, initially
// fault. The containers are checked every 10 s, or every
// Options.ReadinessInterval if that is positive.
func WaitForContainers(ctx context.Context, cfg *config.Config, fault error, opts Options) error {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	opts.setConnections(cfg)
	defer opts.network.close()
	w := &containerWait{cfg: cfg, opts: &opts}
	w.setFault(fault)
	stop, err := w.serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	interval := containerCheckInterval
	if opts.ReadinessInterval > 0 {
		interval = opts.ReadinessInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := w.checkContainers(ctx)
		switch {
		case err == nil:
			return nil
		case IsContainerFault(err):
			w.setFault(err)
		case ctx.Err() == nil:
			opts.Logger.Warn("the containers could not be read; the hub tries again", "error", err)
		}
	}
}

// A containerWait is the state of one call of WaitForContainers.
type containerWait struct {
	cfg   *config.Config
	opts  *Options
	fault atomic.Pointer[error]
}

// setFault sets the fault that /readyz reports, and logs it if it is new.
func (w *containerWait) setFault(err error) {
	before := w.fault.Swap(&err)
	if before == nil || (*before).Error() != err.Error() {
		w.opts.Logger.Error("the containers are not as the hub needs them, so it serves nothing; /readyz names the difference",
			"error", err, "remedy", "run messagehub provision; messagehub doctor --online shows all that is wrong")
	}
}

func (w *containerWait) failed() []api.FailedCheck {
	return []api.FailedCheck{{Name: "containers", Reason: reasonOfContainers(*w.fault.Load()), Remedy: remedyOfContainers}}
}

func (w *containerWait) checkContainers(ctx context.Context) error {
	connection, err := accountConnection(w.cfg, w.opts)
	if err != nil {
		return err
	}
	db, err := client.Connect(connection)
	if err != nil {
		return err
	}
	defer db.Close()
	return client.New(db, client.Options{Containers: cosmos.Containers(), Retries: -1, Random: w.opts.Random}).CheckContainers(ctx)
}

// serve serves requests until stop is called.
func (w *containerWait) serve(ctx context.Context) (stop func(), err error) {
	certificate, err := loadCertificate(w.cfg.TLS, w.opts.Logger)
	if err != nil {
		return nil, err
	}
	addresses := map[string]string{"listen": w.cfg.Listen}
	if w.cfg.HasOperatorListener() {
		addresses["admin-listen"] = w.cfg.AdminListen
	}
	var running sync.WaitGroup
	var servers []*http.Server
	stop = func() {
		for _, s := range servers {
			_ = s.Close() // requests in progress may be aborted
		}
		running.Wait()
	}
	for key, address := range addresses {
		l, err := openListener(ctx, address, key)
		if err != nil {
			stop()
			return nil, err
		}
		server := w.server(l)
		servers = append(servers, server)
		running.Go(func() {
			serve := server.Serve
			if certificate != nil {
				server.TLSConfig = certificate.config()
				serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
			}
			if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
				w.opts.Logger.Error("the hub no longer answers", "address", l.Addr().String(), "error", err)
			}
		})
		w.opts.Logger.Info("waiting for the containers", "address", l.Addr().String())
	}
	return stop, nil
}

func (w *containerWait) server(l net.Listener) *http.Server {
	handler := loopback.CheckHost(l.Addr(), api.Unopened(w.failed), "this hub serves this machine only, by the names localhost and 127.0.0.1")
	server := &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(w.opts.Logger.Handler(), slog.LevelWarn)} //nolint:gosec // Harden sets its timeouts
	api.Harden(server)
	return server
}

// reasonOfContainers converts an error about containers to the text of a failed
// check.
func reasonOfContainers(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

const remedyOfContainers = "do what the reason says; messagehub provision --check shows all containers"
