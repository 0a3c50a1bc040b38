package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/bench"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/level"
)

// A process is the world around a command.
type process struct {
	args     []string // args[0] is how the program was called
	environ  []string
	in       io.Reader
	out, err io.Writer

	isWatched bool // a person sees what goes to out
	// scenarios finds those of the bench; nil: the bench does.
	scenarios func(names ...string) ([]bench.Scenario, error)

	levels level.Table // of stores, for upgrade; nil: those of this version

	access       access // of the command to a hub
	hasDevIssuer bool   // serve runs an issuer

	running bool // a command has begun: its errors are not about the command line
}

// The exit statuses besides 0.
const (
	exitFailed = 1
	exitUsage  = 2
	exitNoData = 3
)

// An exitError says all there is to say by its status.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// run carries out the command line and returns the exit status. An error is one
// line on stderr or, if it is several errors, a line each.
func run(ctx context.Context, p *process) int {
	root := p.root() //nolint:contextcheck // cobra hands the context to the command
	root.SetArgs(p.args[1:])
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[exitError](err); ok {
		return int(status)
	}
	text, _ := config.Redact(err.Error()) // an argument may be a connection string that was meant for another
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			fmt.Fprintf(p.err, "messagehub: %s\n", line)
		}
	}
	if hint := p.explainUnauthorized(cmd, err); hint != "" {
		fmt.Fprintf(p.err, "messagehub: %s\n", hint)
	}
	if p.running && !isWrongValue(err) {
		return exitFailed
	}
	fmt.Fprintf(p.err, "messagehub: see %s --help\n", cmd.CommandPath())
	return exitUsage
}

func (p *process) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "messagehub",
		Short: "A store-and-forward hub: domains announce data, actors fetch it in order",
		Long: "MessageHub stores the events that domains of a market announce, and delivers them to actors in bundles:\n" +
			"in order, each event in exactly one bundle, and each bundle again until its actor confirms it.\n\n" + statusHelp,
		Example: "  messagehub serve\n" +
			"  messagehub send events.jsonl\n" +
			"  messagehub peek --actor 5790001330552",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(explainFlag)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(p.serveCommand(), p.sendCommand(), p.domainCommand(), p.peekCommand(), p.dequeueCommand(), p.queuesCommand(), p.queueCommand(), p.findCommand(), p.deadLettersCommand(), p.checkCommand(), p.backupCommand(), p.restoreCommand(), p.provisionCommand(), p.destroyCommand(), p.demoCommand(), p.versionCommand())
	root.AddCommand(p.notifyCommand(), p.subscriptionsCommand(), p.watchesCommand(), p.objectsCommand(), p.deliveriesCommand(), p.brokerCommand(), p.listenCommand(), p.certifyCommand(), p.tokenCommand())
	root.AddCommand(p.emulatorCommand(), p.benchCommand(), p.upgradeCommand(), p.doctorCommand(), p.configCommand(), p.logLevelCommand())
	root.AddCommand(p.healthCommand(), p.simulateActorCommand(), p.commandsCommand())
	p.addHelp(root)
	p.addVersionFlag(root)
	for _, cmd := range root.Commands() {
		refuseUnknown(cmd)
	}
	return root
}

// addVersionFlag gives root the flag --version. That of cobra would link package text/template, which adds 8 MB.
func (p *process) addVersionFlag(root *cobra.Command) {
	var isAsked bool
	root.Flags().BoolVar(&isAsked, "version", false, "print the version")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if !isAsked {
			return cmd.Help()
		}
		_, err := fmt.Fprint(p.out, versionLine())
		return err
	}
}

// refuseUnknown has cmd and the commands below it refuse a name that is none of their commands, where cobra
// would print the help and succeed.
func refuseUnknown(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		refuseUnknown(sub)
	}
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args = cobra.NoArgs
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
}

// do makes the body of a command.
func (p *process) do(body func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		p.running = true
		return body(cmd.Context(), args)
	}
}
