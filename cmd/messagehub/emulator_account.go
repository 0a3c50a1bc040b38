package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

func (p *process) cosmosCheckCommand() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Verify every document and every index of an account",
		Long: "Verify every document of an account against its checksum, and every index against the\n" +
			"documents. Each problem is a line on stdout, and the exit status is 1 if there is one.",
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&data, "data", defaultAccount, "folder `DIR` of the account")
	cmd.RunE = p.do(func(context.Context, []string) (err error) {
		engine, err := openAccount(data) //nolint:contextcheck // opening is not to be given up half-way
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, engine.Close()) }()
		census, err := engine.Check(func(problem string) { fmt.Fprintln(p.out, problem) })
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, "%d databases, %d containers, %d documents, %d bytes: %d problems\n",
			census.Databases, census.Containers, census.Documents, census.Bytes, census.Problems)
		if census.Problems > 0 {
			return exitError(exitFailed)
		}
		return nil
	})
	return cmd
}

func (p *process) cosmosExportCommand() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:     "export",
		Short:   "Write an account to stdout as JSON lines",
		Example: "  messagehub emulator cosmos export --data ./account > account.jsonl",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&data, "data", defaultAccount, "folder `DIR` of the account")
	cmd.RunE = p.do(func(context.Context, []string) (err error) {
		engine, err := openAccount(data) //nolint:contextcheck // opening is not to be given up half-way
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, engine.Close()) }()
		return engine.Export(p.out)
	})
	return cmd
}

func (p *process) cosmosImportCommand() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:     "import [FILE]",
		Short:   "Read what export wrote, from a file or stdin, into an account",
		Example: "  messagehub emulator cosmos import --data ./copy account.jsonl",
		Args:    cobra.MaximumNArgs(1),
	}
	cmd.Flags().StringVar(&data, "data", defaultAccount, "folder `DIR` of the account; created if it does not exist")
	cmd.RunE = p.do(func(ctx context.Context, args []string) (err error) {
		in := p.in
		if len(args) == 1 && args[0] != "-" {
			file, openErr := os.Open(args[0])
			if openErr != nil {
				return openErr
			}
			defer func() { err = errors.Join(err, file.Close()) }()
			in = io.Reader(file)
		}
		engine, err := embedded.Open(embedded.Options{Dir: data}) //nolint:contextcheck // opening is not to be given up half-way
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, engine.Close()) }()
		n, err := engine.Import(ctx, in)
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, "%d documents imported\n", n)
		return nil
	})
	return cmd
}
