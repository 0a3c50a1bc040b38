package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/api/loglevel"
	"github.com/messagehub/messagehub/cmd/devissuer"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/energymarket"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
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
		Long: "Run the hub. Without Azure settings everything is embedded and kept in one folder.\n\n" +
			"Operators need a token: that of the setting admin.token or, without it, one that the hub makes and keeps\n" +
			"in the data folder, in the file admin.token. With --in-memory and with Azure settings that file is made too.\n\n" +
			"Every setting can stand in a YAML file, in the environment as MESSAGEHUB_..., or here;\n" +
			"here wins, then the environment. SIGTERM and Ctrl-C finish what has begun and stop;\n" +
			"a second one stops at once.",
		Example: "  messagehub serve\n" +
			"  messagehub serve --listen 127.0.0.1:0 --in-memory\n" +
			"  MESSAGEHUB_DATA=/var/lib/messagehub messagehub serve --log-format json",
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&file, "config", "", "`FILE` with settings in YAML")
	cmd.Flags().StringVar(&devIssuer, "dev-issuer", "", "accept tokens only, and run an issuer of them at `HOST:PORT` of this machine; messagehub token makes them")
	cmd.Flags().Lookup("dev-issuer").NoOptDefVal = devissuer.DefaultAddress
	config.AddFlags(cmd.Flags())
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		inputs := config.Inputs{File: file, Environ: p.environ, Flags: cmd.Flags()}
		if devIssuer != "" {
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

// checkDevIssuer refuses settings that a hub with a development issuer must not have.
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

// serveWithIssuer serves with a development issuer at an address.
func (p *process) serveWithIssuer(ctx context.Context, cfg config.Config, address string) error {
	issuer, err := devissuer.Listen(ctx, address)
	if err != nil {
		return err
	}
	cfg.OIDC.Issuers, cfg.OIDC.Audiences = []string{issuer.URL}, []string{devissuer.Audience}
	p.hasDevIssuer = true
	issuing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { _ = issuer.Serve(issuing) }) // without it, the hub says that it cannot reach the issuer
	defer running.Wait()
	defer stop()
	return p.serve(ctx, cfg, func() error { return issuer.Keep(cfg.Data) })
}

// flushTime bounds the sending of the last spans, after the hub has stopped. With the 25 s that requests under way
// have, it stays below the 35 s after which deployments kill a process.
const flushTime = 3 * time.Second

// serve serves until ctx ends. It calls onOpen before it says that it is ready.
func (p *process) serve(ctx context.Context, cfg config.Config, onOpen func() error) error {
	signal.Ignore(syscall.SIGPIPE) // whoever read the log may leave; the hub stays
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
	fmt.Fprintln(p.err, "ready")
	return n.Run(ctx)
}

// withDoctor adds to an error of a hub on Azure what shows the rest of what is in the way.
func withDoctor(err error, cfg *config.Config) error {
	if err == nil || cfg.Embedded() && cfg.EmbeddedBlob() && cfg.EmbeddedBus() {
		return err
	}
	return fmt.Errorf("%w; messagehub doctor --online shows all that is in the way", err)
}

// openNode opens a node, whose metrics include those given. While the containers of its account are not as it needs them, it answers probes and waits.
// It returns neither a node nor an error if ctx has ended meanwhile.
func openNode(ctx context.Context, cfg config.Config, opts node.Options, metrics prometheus.Collector) (*node.Node, error) {
	for {
		opts.Registry = node.NewRegistry() // a node that could not be opened has left its metrics in the former one
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

// logStartChecks logs what those checks of messagehub doctor find that cost nothing.
func logStartChecks(ctx context.Context, logger *slog.Logger, cfg *config.Config) {
	report := node.Diagnose(ctx, cfg, node.DoctorOptions{Start: true}, node.Options{})
	for i := range report.Findings {
		if f := &report.Findings[i]; f.State == doctor.Warning || f.State == doctor.Fault {
			logger.Warn("a check of messagehub doctor has found something", "check", f.Check, "what", f.Text, "remedy", f.Remedy)
		}
	}
}

// reloadActors reads the registry of actors again at each SIGHUP, until the function that it returns is
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

// greet says where the hub listens, and gives three commands that work as they
// are, from any folder: their actor is new, so nothing that is stored already
// comes between.
func (p *process) greet(n *node.Node, cfg *config.Config) {
	url := n.URL()
	keeps := "keeps its data in " + node.AbsolutePath(cfg.Data)
	if state := n.FolderState(); state != "" {
		keeps += " (" + state + ")"
	}
	switch {
	case cfg.InMemory:
		keeps = "keeps its data in memory, until it stops"
	case !cfg.Embedded():
		payloads := cfg.Data
		if !cfg.EmbeddedBlob() {
			payloads = cfg.Blob.Endpoint
		}
		keeps = "keeps its events in " + cfg.Cosmos.Endpoint + " and their payloads in " + payloads
	}
	at := ""
	if url != hubclient.DefaultURL {
		at = " --url " + url
	}
	program, actor, bundle := programName(p.args[0]), energymarket.NewGLN(energymarket.RandomDigits()), uuid.NewString()
	fmt.Fprintf(p.out, "MessageHub %s listens on %s and %s.\n", version, url, keeps)
	if n.AdminAddr() != nil {
		fmt.Fprintf(p.out, "Operators and their tools use %s.\n", n.AdminURL())
	}
	fmt.Fprintf(p.out, "Its console is at %s/console/.\n", n.AdminURL())
	if door := n.BusAddr(); door != nil {
		fmt.Fprintf(p.out, "Domains reach it over Service Bus at %s", door)
		if door := n.BlobAddr(); door != nil {
			fmt.Fprintf(p.out, " and leave content at %s", door)
		}
		fmt.Fprintf(p.out, "; %s domain --help tells more.\n", programName(p.args[0]))
	}
	if file := n.AdminTokenFile(); file != "" {
		fmt.Fprintf(p.out, "The token of its operators is in %s.\n", file)
	}
	origin, mode, exists := sampleOrigin(cfg)
	if !exists {
		fmt.Fprintf(p.out, "Every domain makes its content on request: try it with %s domain.\n\n", program)
		return
	}
	switch {
	case p.hasDevIssuer:
		fmt.Fprintf(p.out, "It accepts tokens only. Try it, in another terminal: make a token, send an event, fetch it, confirm it.\n\n")
		fmt.Fprintf(p.out, "  export %s=$(%s token --actor %s --domain %s%s)\n", ownTokenVariable, program, actor, origin, ofFolder(cfg))
	case cfg.OIDC.IsOn():
		fmt.Fprintf(p.out, "It accepts tokens of %s only. Try it, in another terminal, with a token of that issuer in %s:\n"+
			"send an event, fetch it, confirm it.\n\n", strings.Join(cfg.OIDC.Issuers, ", "), ownTokenVariable)
	default:
		fmt.Fprintf(p.out, "Try it, in another terminal: send an event, fetch it, confirm it.\n\n")
	}
	fmt.Fprintf(p.out, "  echo '%s' | %s send%s -\n", sampleEvent(actor, origin, mode), program, at)
	fmt.Fprintf(p.out, "  %s peek%s --actor %s --bundle-id %s\n", program, at, actor, bundle)
	fmt.Fprintf(p.out, "  %s dequeue%s --actor %s %s\n\n", program, at, actor, bundle)
}

// ofFolder returns the flag with the data folder, if that is not the usual one.
func ofFolder(cfg *config.Config) string {
	if cfg.IsDefault("data") {
		return ""
	}
	return " --data " + terminal.ShellWord(cfg.Data)
}

// newLogger logs text for a terminal and JSON for everything else, unless the
// configuration knows better.
func newLogger(format string, level slog.Leveler, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: redactLogError}
	if format == "text" || format == "auto" && terminal.IsTerminal(w) {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}

// redactLogError hides secrets in errors, which may quote an address or a setting.
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
