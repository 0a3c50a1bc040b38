package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (p *process) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: p.do(func(context.Context, []string) error {
			_, err := fmt.Fprintf(p.out, "messagehub %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		}),
	}
}
