package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

var updatePages = flag.Bool("update", false, "write the page of all commands")

// TestCommandsPage_HasEveryCommandAndFlag compares COMMANDS.md with the
// commands. `make pages` writes COMMANDS.md.
func TestCommandsPage_HasEveryCommandAndFlag(t *testing.T) {
	root := (&process{args: []string{"messagehub"}}).root()
	var b strings.Builder
	b.WriteString("# Commands\n\nEvery command of `messagehub` with its flags. `messagehub help COMMAND` says more about each, with examples.\n\n" +
		statusHelp + "\n")
	writeCommand(&b, root)
	if *updatePages {
		require.NoError(t, os.WriteFile("COMMANDS.md", []byte(b.String()), 0o600))
		return
	}
	text, err := os.ReadFile("COMMANDS.md")
	require.NoError(t, err)
	require.Equal(t, b.String(), string(text), "run make pages")
}

// isWholeCommand reports whether cmd can be run without a subcommand.
func isWholeCommand(cmd *cobra.Command) bool {
	hasFlags := false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { hasFlags = hasFlags || f.Name != "help" && f.Name != "version" })
	return cmd.HasParent() && cmd.HasSubCommands() && hasFlags
}

// writeCommand writes a section for cmd and for each of its subcommands.
func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	if cmd.Runnable() && cmd.HasParent() && !cmd.HasSubCommands() || isWholeCommand(cmd) {
		fmt.Fprintf(b, "\n## %s\n\n%s.\n\n```text\n%s\n```\n", cmd.CommandPath(), strings.TrimSuffix(cmd.Short, "."), cmd.UseLine())
		var rows []string
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" {
				return
			}
			value, usage := pflag.UnquoteUsage(f)
			rows = append(rows, fmt.Sprintf("| `%s` | %s |", strings.TrimSpace("--"+f.Name+" "+value), strings.ReplaceAll(usage, "|", `\|`)))
		})
		if len(rows) > 0 {
			fmt.Fprintf(b, "\n| flag | meaning |\n| --- | --- |\n%s\n", strings.Join(rows, "\n"))
		}
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			writeCommand(b, sub)
		}
	}
}
