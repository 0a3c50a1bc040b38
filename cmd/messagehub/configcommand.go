package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
)

func (p *process) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check or print the settings that serve would use",
		Long: "Check or print the settings that serve would use: from a file, the environment as MESSAGEHUB_..., and flags;\n" +
			"later sources override earlier ones. Both commands only read the settings; they start nothing and call nothing.",
	}
	cmd.AddCommand(p.configCheckCommand(), p.configPrintCommand())
	return cmd
}

func (p *process) configCheckCommand() *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Report errors and contradictions in the settings",
		Long: "Report every error and every contradiction in the settings, one per line with its position, and\n" +
			"warnings about settings that work but should be corrected. It is the first part of messagehub doctor.\n\n" +
			"The exit status is 0 if serve would accept the settings, 1 if it would not, and 2 for a wrong command line.",
		Example: "  messagehub config check --config hub.yaml\n" +
			"  MESSAGEHUB_LISTEN=:8080 messagehub config check --json",
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&file, "config", "", "`FILE` with settings in YAML")
	flags.BoolVar(&asJSON, "json", false, "print the report as JSON")
	config.AddFlags(flags)
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		r := doctorReport{Version: version}
		cfg, err := config.Load(config.Inputs{File: file, Environ: p.environ, Flags: flags})
		if err != nil {
			r.Findings = configurationFaults(err)
		} else {
			r.Findings = node.CheckConfiguration(ctx, &cfg)
		}
		return p.reportDoctor(&r, asJSON)
	})
	return cmd
}

// A printedSetting is a setting as printed in JSON.
type printedSetting struct {
	Key      string        `json:"key"`
	Value    string        `json:"value"`
	IsSecret bool          `json:"secret,omitempty"`
	Origin   config.Origin `json:"origin"`
	From     string        `json:"from"`
	Variable string        `json:"variable"`
}

func (p *process) configPrintCommand() *cobra.Command {
	var file string
	var asJSON, isChangedOnly bool
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print each setting with its value and its source",
		Long: "Print each setting with its value and its source: the default, the file with the line, the\n" +
			"variable, or the flag. Secrets are hidden; of lists, only the names are printed. If settings contradict each\n" +
			"other, they are printed, too, and the contradictions follow on stderr.\n\n" +
			"The exit status is 0 if serve would accept the settings, and 2 if it would not.",
		Example: "  messagehub config print --config hub.yaml --changed\n" +
			"  messagehub config print --json | jq '.[] | select(.origin == \"environment\")'",
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&file, "config", "", "`FILE` with settings in YAML")
	flags.BoolVar(&asJSON, "json", false, "print the settings as JSON")
	flags.BoolVar(&isChangedOnly, "changed", false, "leave out settings that have their defaults")
	config.AddFlags(flags)
	cmd.RunE = p.do(func(context.Context, []string) error {
		cfg, err := config.Load(config.Inputs{File: file, Environ: p.environ, Flags: flags})
		if !cfg.IsLoaded() {
			return err
		}
		return errors.Join(p.printSettings(cfg.Settings(), asJSON, isChangedOnly), err)
	})
	return cmd
}

func (p *process) printSettings(all []config.Setting, asJSON, isChangedOnly bool) error {
	printed := []printedSetting{}
	for _, s := range all {
		if !isChangedOnly || s.Origin != config.ByDefault {
			printed = append(printed, printedSetting{s.Name, s.Value, s.IsSecret, s.Origin, s.From, s.Variable})
		}
	}
	if asJSON {
		e := json.NewEncoder(p.out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(printed)
	}
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KEY\tVALUE\tFROM")
	for _, s := range printed {
		value := terminal.Printable(s.Value)
		if value == "" {
			value = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.Key, value, s.From)
	}
	return table.Flush()
}
