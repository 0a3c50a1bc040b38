package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A describedCommand is the JSON description of a command. A separate program
// generates man pages from the description, so that this program need not link
// the libraries for man pages.
type describedCommand struct {
	Use      string             `json:"use"`
	Short    string             `json:"short"`
	Long     string             `json:"long,omitempty"`
	Example  string             `json:"example,omitempty"`
	Flags    []describedFlag    `json:"flags,omitempty"`
	Commands []describedCommand `json:"commands,omitempty"`
}

type describedFlag struct {
	Name      string `json:"name"`
	Shorthand string `json:"shorthand,omitempty"`
	Type      string `json:"type"`
	Usage     string `json:"usage"`
	Default   string `json:"default,omitempty"`
	NoValue   string `json:"noValue,omitempty"` // value of the flag if it is given without a value
}

func (p *process) commandsCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "commands",
		Short:  "Print all commands and their flags as JSON",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: p.do(func(context.Context, []string) error {
			encoder := json.NewEncoder(p.out)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", "  ")
			return encoder.Encode(describeCommand(p.root())) //nolint:contextcheck // it runs no command
		}),
	}
}

// describeCommand describes a command and its visible subcommands.
func describeCommand(cmd *cobra.Command) describedCommand {
	d := describedCommand{Use: cmd.Use, Short: cmd.Short, Long: cmd.Long, Example: cmd.Example}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			d.Flags = append(d.Flags, describedFlag{Name: f.Name, Shorthand: f.Shorthand, Type: f.Value.Type(), Usage: f.Usage, Default: f.DefValue, NoValue: f.NoOptDefVal})
		}
	})
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			d.Commands = append(d.Commands, describeCommand(c))
		}
	}
	return d
}
