package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/cmd/node"
)

// A buildReport describes the build of the program, and the stored formats that
// it supports.
type buildReport struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // commit of the source; "unknown" if it was not recorded
	Date     string `json:"date"`   // date of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`

	// Formats contains the highest format that the program supports, by area
	// and by kind of stored document.
	Formats map[string]map[string]int `json:"formats"`

	Files map[string]int `json:"files"` // formats of the files in a data folder, by store
	Level int            `json:"level"` // highest store level that the program supports
	API   string         `json:"api"`   // version of the OpenAPI document

	Modules map[string]string `json:"modules"` // versions of the linked modules by path
}

func (p *process) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: "Print the version. With --json, also print the commit, its date, the version of Go, the versions of all\n" +
			"linked modules, and the formats and the level of stores that this version knows.",
		Args: cobra.NoArgs,
		RunE: p.do(func(context.Context, []string) error {
			if asJSON {
				encoder := json.NewEncoder(p.out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(readBuild())
			}
			_, err := fmt.Fprint(p.out, versionLine())
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the details of the build as JSON")
	return cmd
}

// versionLine returns the line that messagehub version and --version print.
func versionLine() string {
	return fmt.Sprintf("messagehub %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// readBuild returns a report with the values that the linker and the go command
// recorded.
func readBuild() buildReport {
	r := buildReport{
		Version: version, Commit: revision, Date: date, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Formats: node.Formats(), Files: node.FileFormats(), Level: node.HighestLevel(), API: api.ContractVersion,
		Modules: make(map[string]string),
	}
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				r.Commit = cmp.Or(r.Commit, s.Value)
			case "vcs.time":
				r.Date = cmp.Or(r.Date, s.Value)
			}
		}
		for _, m := range info.Deps {
			r.Modules[m.Path] = m.Version
		}
	}
	r.Commit, r.Date = cmp.Or(r.Commit, "unknown"), cmp.Or(r.Date, "unknown")
	return r
}
