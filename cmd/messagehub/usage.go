package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/cmd/node/config"
)

// statusHelp describes the exit statuses in the help of root and in
// COMMANDS.md.
const statusHelp = "The exit status is 0 if everything succeeded, 2 if a value is wrong (of the command line, or of a setting in the\n" +
	"file, the environment or a flag), 3 if a peek found no data, and 1 for every other failure and for what a check finds."

// A usageError is an error about a wrong value on the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usage returns an error about the command line, for faults that only the body
// of a command detects.
func (p *process) usage(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// isWrongValue reports whether an error is about a value on the command line or in the settings.
func isWrongValue(err error) bool {
	_, isUsage := errors.AsType[*usageError](err)
	_, isSetting := errors.AsType[*config.InvalidError](err)
	return isUsage || isSetting
}

// wantedValues describes the valid values of flags, by flag type.
var wantedValues = map[string]string{
	"duration": "a time such as 500ms or 1m30s", "bool": "true or false",
	"int": "a whole number", "int64": "a whole number", "uint64": "a whole number of at least 0", "float64": "a number such as 0.5",
}

// checkName fails if args has the name of a command that cmd does not have. cobra's own error does
// not list the commands that exist.
func checkName(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	return fmt.Errorf("unknown command %q for %q; known are %s", args[0], cmd.CommandPath(), strings.Join(known, ", "))
}

// explainFlag converts pflag's error about a flag to a text for a person. If the name of a
// subcommand before the flag is unknown, the error is about that name: cobra takes the flags after it
// for flags of cmd, so they are unknown, too.
func explainFlag(cmd *cobra.Command, err error) error {
	if cmd.HasSubCommands() {
		if wrongName := cmd.ValidateArgs(cmd.Flags().Args()); wrongName != nil {
			return wrongName
		}
	}
	invalid, isInvalid := errors.AsType[*pflag.InvalidValueError](err)
	if !isInvalid {
		return err
	}
	flag := invalid.GetFlag()
	want, isKnown := wantedValues[flag.Value.Type()]
	if !isKnown {
		return fmt.Errorf("--%s: %s", flag.Name, strings.TrimSpace(invalid.Unwrap().Error()))
	}
	return fmt.Errorf("--%s: want %s, got %q", flag.Name, want, invalid.GetValue())
}
