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

// A process is the environment of a command: arguments, variables and streams.
type process struct {
	args     []string // args[0] is the name with which the program was called
	environ  []string
	in       io.Reader
	out, err io.Writer

	isWatched bool // isWatched means that out is a terminal
	// scenarios returns the scenarios with these names. If it is nil, the
	// scenarios of the bench are used; tests replace them.
	scenarios func(names ...string) ([]bench.Scenario, error)

	levels level.Table // store levels for the command upgrade; nil for the levels of this version

	access       access // token and certificates of the command
	hasDevIssuer bool   // hasDevIssuer means that the command serve also runs a development issuer

	running bool // running means that the command's body has begun, so its errors are not about the command line
}

// Exit statuses other than 0.
const (
	exitFailed = 1
	exitUsage  = 2
	exitNoData = 3
)

// An exitError sets the exit status. run does not print it.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// run executes the command line and returns the exit status. It prints an error
// to standard error, on one line; joined errors have one line each.
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
	text, _ := config.Redact(err.Error()) // the error may quote an argument, such as a connection string that was passed to the wrong flag
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
		Long: "MessageHub stores the events that the domains of a market announce, and delivers them to actors in bundles:\n" +
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

// addVersionFlag adds the flag --version to root. It is not cobra's own version
// flag, which would link package text/template and add 8 MB to the program.
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

// refuseUnknown makes cmd and its subcommands fail for unknown command names.
// By default, cobra prints the help and succeeds.
func refuseUnknown(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		refuseUnknown(sub)
	}
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args = checkName
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
}

// do adapts the body of a command for cobra.
func (p *process) do(body func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		p.running = true
		return body(cmd.Context(), args)
	}
}
