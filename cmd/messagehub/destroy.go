package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
)

func (p *process) destroyCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "destroy",
		Short: "Delete what provision has created for a test",
		Long: "Delete what provision creates on Azure for a hub with these settings, with all data in it: the Cosmos\n" +
			"containers, the blob containers, and the queues. The database is kept, because it may have other\n" +
			"containers. Stop the hubs first.\n\n" +
			"It deletes nothing unless all names are those of a test: cosmos.database and blob.container have to\n" +
			"begin with test-, and also the Service Bus namespace, or else the name of each queue.\n\n" +
			"The exit status is 0 if everything was deleted, 1 if something is left, and 2 for a wrong command line or setting.",
		Example: "  messagehub destroy --config test.yaml\n" +
			"  MESSAGEHUB_COSMOS_KEY=... messagehub destroy --cosmos-endpoint https://ACCOUNT.documents.azure.com/ --cosmos-database test-1",
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&file, "config", "", "`FILE` with settings in YAML")
	config.AddFlags(cmd.Flags(), provisionKeys...)
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		cfg, err := config.Load(config.Inputs{File: file, Environ: p.environ, Flags: cmd.Flags()})
		if err != nil {
			return err
		}
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		all, err := node.Destroy(ctx, &cfg, node.Options{})
		if err != nil {
			return err
		}
		return p.reportDestroyed(all)
	})
	return cmd
}

// reportDestroyed prints the state of each resource, and then what remains to
// be done.
func (p *process) reportDestroyed(all []node.Resource) error {
	if len(all) == 0 {
		fmt.Fprintln(p.out, "Nothing to delete: these settings name no Azure account.")
		return nil
	}
	left := int64(0)
	for i := range all {
		r := &all[i]
		fmt.Fprintf(p.out, "%-11s %-10s %-28s %s\n", r.Service, r.Kind, r.Name, r.State)
		for _, line := range r.Left {
			fmt.Fprintf(p.out, "    left: %s\n", line)
		}
		left += int64(len(r.Left))
	}
	if left == 0 {
		return nil
	}
	fmt.Fprintf(p.out, "\n%s left. Correct the settings that the errors name, or use the Azure CLI, with your names in place of the words in capitals:\n\n", terminal.CountOf(left, "problem"))
	for i := range all {
		for _, command := range all[i].Commands {
			fmt.Fprintf(p.out, "  %s\n", command)
		}
	}
	return exitError(exitFailed)
}
