package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/api/loglevel"
	"github.com/messagehub/messagehub/cmd/devissuer"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/doctor"
	"github.com/messagehub/messagehub/cmd/node/otlp"
	"github.com/messagehub/messagehub/cmd/terminal"
)

func (p *process) serveCommand() *cobra.Command {
	var file, devIssuer string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the hub",
		Long: "Run the hub. Without settings for Azure, everything is embedded and stored in one folder.\n\n" +
			"Operators need a token: the setting admin.token or, without it, one that the hub generates and stores\n" +
			"in the file admin.token in the data folder, even with --in-memory and with settings for Azure.\n" +
			"With --in-memory, MESSAGEHUB_DATA can name another folder; --data is refused.\n\n" +
			"Every setting can be in a YAML file, in the environment as MESSAGEHUB_..., or a flag here. A flag overrides\n" +
			"the environment, which overrides the file. SIGTERM and Ctrl-C complete the requests under way and stop;\n" +
			"a second signal stops immediately.",
		Example: "  messagehub serve\n" +
			"  messagehub serve --listen 127.0.0.1:0 --in-memory\n" +
			"  MESSAGEHUB_DATA=/var/lib/messagehub messagehub serve --log-format json",
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&file, "config", "", "`FILE` with settings in YAML")
	cmd.Flags().StringVar(&devIssuer, "dev-issuer", "", "accept only requests with tokens, and run their issuer at `HOST:PORT` of this machine; messagehub token creates tokens")
	cmd.Flags().Lookup("dev-issuer").NoOptDefVal = devissuer.DefaultAddress
	config.AddFlags(cmd.Flags())
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		inputs := config.Inputs{File: file, Environ: p.environ, Flags: cmd.Flags()}
		if devIssuer != "" {
			if err := devissuer.CheckAddress(devIssuer); err != nil {
				return p.usage("%w", err)
			}
			inputs.Check = p.checkDevIssuer
		}
		cfg, err := config.Load(inputs)
		if err != nil {
			return err
		}
		if devIssuer != "" {
			return p.serveWithIssuer(ctx, cfg, devIssuer)
		}
		return p.serve(ctx, cfg, func() error { return nil })
	})
	return cmd
}

// checkDevIssuer rejects settings that are not allowed with a development
// issuer.
func (p *process) checkDevIssuer(cfg *config.Config) error {
	if cfg.OIDC.IsOn() {
		return p.usage("--dev-issuer: oidc.issuer names another issuer; remove one of the two")
	}
	for _, l := range [...]struct{ name, address string }{{"listen", cfg.Listen}, {"admin-listen", cfg.AdminListen}} {
		reason := fmt.Sprintf("%s = %q: the development issuer is for this machine alone, so a hub that trusts it must not be reached from outside, not even with --insecure", l.name, l.address)
		if err := config.RequireLoopback(l.address, reason, "set oidc.issuer in place of --dev-issuer"); err != nil {
			return p.usage("%w", err)
		}
	}
	return nil
}

// serveWithIssuer runs a hub, and a development issuer that listens at address.
func (p *process) serveWithIssuer(ctx context.Context, cfg config.Config, address string) error {
	issuer, err := devissuer.Listen(ctx, address)
	if err != nil {
		return err
	}
	cfg.OIDC.Issuers, cfg.OIDC.Audiences = []string{issuer.URL}, []string{devissuer.Audience}
	p.hasDevIssuer = true
	issuing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { _ = issuer.Serve(issuing) }) // if the issuer fails, the hub logs that it is unreachable
	defer running.Wait()
	defer stop()
	return p.serve(ctx, cfg, func() error { return issuer.Keep(cfg.Data) })
}

// flushTime is the time limit for sending the last spans after the hub has
// stopped. Together with the 25 s for requests in progress, it is less than the
// 35 s after which deployments kill a process.
const flushTime = 3 * time.Second

// serve runs a hub until ctx ends. It calls onOpen before it logs "ready".
func (p *process) serve(ctx context.Context, cfg config.Config, onOpen func() error) error {
	signal.Ignore(syscall.SIGPIPE) // the hub continues even if the reader of its log has exited
	ctx, stop := terminal.UntilSignal(ctx)
	defer stop()
	level := loglevel.New(cfg.Log.Level, time.Now)
	logger := newLogger(cfg.Log.Format, level, p.err)
	node.LogAzure(ctx, logger)
	logStartChecks(ctx, logger, &cfg)
	dropped := prometheus.NewRegistry()
	traces, err := otlp.Open(ctx, otlp.Options{Environ: p.environ, Version: version, Logger: logger, Registerer: dropped})
	if err != nil {
		return err
	}
	defer traces.Close(ctx, flushTime)
	n, err := openNode(ctx, cfg, node.Options{Logger: logger, LogLevel: level, Version: version, Revision: revision, Traces: traces.Provider()}, dropped)
	if n == nil {
		return withDoctor(err, &cfg)
	}
	if err := onOpen(); err != nil {
		return errors.Join(err, n.Close()) //nolint:contextcheck // it waits for nothing
	}
	stopReloading := reloadActors(n)
	defer stopReloading()
	logger.Info("starting", "version", version, "address", n.Addr().String(), "config", cfg)
	p.greet(n, &cfg)
	_ = logReady(ctx, logger, n) // the hub continues even if the log cannot be written
	return n.Run(ctx)
}

// withDoctor adds, to the error of a hub on Azure, the command that lists all
// faults.
func withDoctor(err error, cfg *config.Config) error {
	if err == nil || cfg.Embedded() && cfg.EmbeddedBlob() && cfg.EmbeddedBus() {
		return err
	}
	return fmt.Errorf("%w; messagehub doctor --online lists all faults", err)
}

// openNode opens a node whose registry also contains these metrics. If the
// account's containers differ from those that the node needs, openNode answers
// probes until they are corrected. If ctx ends meanwhile, it returns neither a
// node nor an error.
func openNode(ctx context.Context, cfg config.Config, opts node.Options, metrics prometheus.Collector) (*node.Node, error) {
	for {
		opts.Registry = node.NewRegistry() // new for each attempt, because a failed Open has already registered metrics
		opts.Registry.MustRegister(metrics)
		n, err := node.Open(ctx, cfg, opts)
		if !node.IsContainerFault(err) {
			return n, err
		}
		if err := node.WaitForContainers(ctx, &cfg, err, opts); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			opts.Logger.Info("stopped")
			return nil, nil //nolint:nilerr // the fault was logged, and a hub that was stopped has none
		}
	}
}

// logStartChecks runs the cheap checks of messagehub doctor, and logs warnings
// and faults.
func logStartChecks(ctx context.Context, logger *slog.Logger, cfg *config.Config) {
	report := node.Diagnose(ctx, cfg, node.DoctorOptions{Start: true}, node.Options{})
	for i := range report.Findings {
		if f := &report.Findings[i]; f.State == doctor.Warning || f.State == doctor.Fault {
			logger.Warn("a check of messagehub doctor has found something", "check", f.Check, "what", f.Text, "remedy", f.Remedy)
		}
	}
}

// reloadActors reloads the registry of actors after each SIGHUP, until stop is
// called.
func reloadActors(n *node.Node) (stop func()) {
	hangups, stopped := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	var reloading sync.WaitGroup
	reloading.Go(func() {
		for {
			select {
			case <-hangups:
				n.ReloadActors()
			case <-stopped:
				return
			}
		}
	})
	return func() {
		signal.Stop(hangups)
		close(stopped)
		reloading.Wait()
	}
}

// newLogger returns a logger for a format: text, json or auto. auto is text on
// a terminal, otherwise json.
func newLogger(format string, level slog.Leveler, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: redactLogError}
	if format == "text" || format == "auto" && terminal.IsTerminal(w) {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}

// redactLogError removes secrets from the attribute error. An error may quote a
// URL or a setting.
func redactLogError(_ []string, a slog.Attr) slog.Attr {
	if a.Key != "error" {
		return a
	}
	text := a.Value.String()
	if err, ok := a.Value.Any().(error); ok && err != nil {
		text = err.Error()
	}
	if shown, has := config.Redact(text); has {
		return slog.String(a.Key, shown)
	}
	return a
}
