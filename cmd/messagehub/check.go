package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/checkreport"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// A checkCommand contains the flags of messagehub check.
type checkCommand struct {
	p       *process
	url     string // URL of the hub that runs the check; "" if this process runs it
	actor   string
	resume  string // file in which the check's position is stored; "" if it is not stored
	repair  bool
	json    bool
	verbose bool
}

func (p *process) checkCommand() *cobra.Command {
	c := &checkCommand{p: p}
	var file string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check all stored data, and repair what can be repaired",
		Long: "Read all stored data and check the hub's guarantees: nothing lost, each event stored once, in order, and\n" +
			"every pointer correct; and for each object, that its state follows from the events about it. A damaged\n" +
			"mailbox or object is reported, and the check continues with the next. With --repair, correct pointers and\n" +
			"roll back unfinished Saves; events, objects and acknowledgements are never changed.\n\n" +
			"If no hub runs, the command reads the data itself, with the settings of serve (from a file, the environment,\n" +
			"or the flags here). If a hub runs, name it with --url: the check then runs inside the hub, which continues to work.\n" +
			"The hub's token for operators comes from " + tokenVariable + ", or from the file admin.token in the data folder.\n\n" +
			"The exit status is 0 if nothing is wrong or everything was repaired, 1 if something is wrong or could not be\n" +
			"checked because a newer version has stored it, and 2 for a wrong command line or setting.",
		Example: "  messagehub check --data /var/lib/messagehub\n" +
			"  messagehub check --url http://127.0.0.1:8081 --repair\n" +
			"  messagehub check --url http://127.0.0.1:8081 --resume check.state --json > report.json",
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&c.url, "url", "", "`URL` at which a running hub serves operators (its setting admin-listen); the check then runs inside the hub")
	flags.BoolVar(&c.repair, "repair", false, "correct pointers, and roll back unfinished Saves")
	flags.BoolVar(&c.json, "json", false, "print the report as JSON")
	flags.BoolVar(&c.verbose, "verbose", false, "list every finding")
	flags.StringVar(&c.actor, "actor", "", "check the actor with this `ID` only")
	flags.StringVar(&c.resume, "resume", "", "store the position of the check in `FILE`, and resume from there after an interruption")
	flags.StringVar(&file, "config", "", "`FILE` with settings in YAML")
	storeKeys := []string{"data", "cosmos.endpoint", "cosmos.database", "cosmos.consistency"}
	config.AddFlags(flags, storeKeys...)
	p.addAccess(flags)
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		opts, err := c.options()
		if err != nil {
			return p.usage("%w", err)
		}
		if c.url == "" {
			cfg, err := config.Load(config.Inputs{File: file, Environ: p.environ, Flags: flags})
			if err != nil {
				return err
			}
			return c.checkLocally(ctx, cfg, opts)
		}
		for _, name := range []string{"cosmos-endpoint", "cosmos-database", "cosmos-consistency"} {
			if flags.Changed(name) {
				return p.usage("--%s: with --url the hub knows where its data is; remove one of the two", name)
			}
		}
		if _, err := hubclient.New(c.url); err != nil {
			return p.usage("%w", err)
		}
		remote, err := p.newOperator(config.Inputs{File: file, Flags: flags}, c.url)
		if err != nil {
			return err
		}
		defer remote.Close()
		return c.run(ctx, "the hub at "+remote.Base, opts, remote.Check)
	})
	return cmd
}

func (c *checkCommand) options() (opts hub.CheckOptions, err error) {
	opts.Repair = c.repair
	if c.actor == "" {
		return opts, nil
	}
	if c.resume != "" {
		return opts, errors.New("--resume: a check of one actor is not resumed; remove it, or --actor")
	}
	if opts.Actor, err = domain.ParseActorID(c.actor); err != nil {
		return opts, fmt.Errorf("--actor: %w", err)
	}
	return opts, nil
}

// checkLocally checks the configured store in this process.
func (c *checkCommand) checkLocally(ctx context.Context, cfg config.Config, opts hub.CheckOptions) error {
	if cfg.InMemory {
		return errors.New("in-memory = true: such a hub stores nothing; name a running one with --url to check inside it")
	}
	of := cfg.Cosmos.Endpoint
	if cfg.Embedded() {
		folder, err := filepath.Abs(cfg.Data)
		if err != nil {
			return err
		}
		of = folder
	}
	logger := slog.New(slog.NewTextHandler(c.p.err, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: redactLogError}))
	err := c.run(ctx, of, opts, func(ctx context.Context, opts hub.CheckOptions) (hub.CheckReport, error) {
		return node.Check(ctx, cfg, opts, logger)
	})
	if used, ok := errors.AsType[*node.InUseError](err); ok {
		return fmt.Errorf("data folder %s: a hub, or another check, uses it; check inside the hub with messagehub check --url URL, such as %s", used.Folder, hubclient.DefaultAdminURL)
	}
	return err
}

// run executes a check, and prints its report. of names the store that is
// checked.
func (c *checkCommand) run(ctx context.Context, of string, opts hub.CheckOptions, check hub.Checker) error {
	ctx, stop := terminal.UntilSignal(ctx)
	defer stop()
	kept := &checkState{file: c.resume, Of: of, Repair: c.repair}
	if err := kept.readFile(); err != nil {
		return err
	}
	progress := checkreport.NewProgress(c.p.err)
	if opts.Resume = kept.Report.Resume; opts.Resume != "" {
		progress.Printf("resuming after %s", terminal.CountOf(kept.Report.Recipients, "recipient"))
	}
	before := kept.Report
	var failed error
	opts.Progress = func(report hub.CheckReport) {
		total := before.Plus(&report)
		progress.Report(&total)
		if err := kept.saveReport(&total); err != nil && failed == nil {
			failed = err
			stop()
		}
	}
	report, err := check(ctx, opts)
	progress.Clear()
	total := before.Plus(&report)
	switch {
	case failed != nil:
		return failed
	case err != nil && kept.Report.Resume != "" && domain.KindOf(err) != domain.Invalid:
		return fmt.Errorf("%w; the same command resumes after %s", checkFault(ctx, err), terminal.CountOf(kept.Report.Recipients, "recipient"))
	case err != nil:
		return checkFault(ctx, err)
	}
	if err := kept.removeFile(); err != nil {
		return err
	}
	total.Resume = ""
	isUnknown := c.actor != "" && total.Clean() && total.Cabinets == 0
	if !isUnknown || c.json {
		if err := c.print(&total); err != nil {
			return err
		}
	}
	switch {
	case !total.Clean():
		return exitError(exitFailed)
	case isUnknown:
		return fmt.Errorf("nothing is stored for actor %s; messagehub queue list shows the actors for whom something is", c.actor)
	}
	return nil
}

// checkFault returns err. If ctx has ended, it returns an error that says that
// the check was stopped.
func checkFault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("stopped before the end; the rest was not checked")
	}
	return err
}

func (c *checkCommand) print(report *hub.CheckReport) error {
	if c.json {
		text, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.p.out, "%s\n", text)
		return err
	}
	_, err := fmt.Fprint(c.p.out, checkreport.Text(report, c.verbose))
	return err
}
