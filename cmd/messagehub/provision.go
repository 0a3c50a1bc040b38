package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/cmd/terminal"
	cosmosclient "github.com/messagehub/messagehub/cosmos/client"
)

// provisionKeys lists the settings that name Azure resources.
var provisionKeys = []string{
	"cosmos.endpoint", "cosmos.database", "blob.endpoint", "blob.container",
	"servicebus.namespace", "servicebus.fifo-queue", "servicebus.plain-queue", "objects.queue",
}

// A provisionMode contains the flags that select what provision does.
type provisionMode struct {
	apply, check, diff bool
	format             string
	narrowIndex        bool
	throughput         string
}

func (p *process) provisionCommand() *cobra.Command {
	var m provisionMode
	var file string
	cmd := &cobra.Command{
		Use:   "provision",
		Short: "Create and correct what a hub needs on Azure, or write it as a template",
		Long: "Create what a hub with these settings needs on Azure, and correct what exists: the Cosmos database\n" +
			"with its containers, the blob containers, and the queues of the Service Bus namespace. The settings\n" +
			"are those of serve, from a file, the environment, or the flags here. Embedded engines need no\n" +
			"provisioning. The command may be repeated at any time, even while hubs run.\n\n" +
			"One of these flags says what the command does:\n\n" +
			"  --apply    create and correct; the default, because scripts of earlier versions rely on it\n" +
			"  --check    change nothing, and report everything; exit status 1 if a hub would not work\n" +
			"  --diff     change nothing, and print a line for each difference; exit status 1 if there is one. Queues\n" +
			"             that the hub does not need are printed as extra, and do not count\n" +
			"  --format   make no request, and write to stdout a template or script, with all roles\n\n" +
			"Of existing containers it corrects the index paths and the default TTL, and keeps every other\n" +
			"property. Cosmos builds an index in the background; until then queries may fail. A partition key\n" +
			"cannot be changed: such a container must be created again. Of existing queues it corrects the time to\n" +
			"live, the lock, the number of deliveries, the dead-lettering of expired messages, and a size that is too small.\n" +
			"Whether a queue has sessions cannot be changed.\n\n" +
			"On Azure, no data role may create or change Cosmos databases and containers, only the account key or\n" +
			"the Azure CLI. If the credential is refused, the command prints the remaining commands for the Azure CLI.\n" +
			"Accounts, roles, networks and the throughput of existing containers are only in the templates:\n" +
			"az deployment group what-if compares them.\n\n" +
			"--format arm is a template in JSON, bicep the same in Bicep, az a script of the Azure CLI, and json the\n" +
			"data from which they are generated. They describe a hub without embedded engines: Cosmos, Service Bus and Blob Storage,\n" +
			"even if the settings name only some of them. deploy/azure has the files for the default settings.\n\n" +
			containersTable() + "\n" +
			"The exit status is 0 if nothing is left to do, 1 if something is, and 2 for a wrong command line or setting.",
		Example: "  messagehub provision --check --config hub.yaml\n" +
			"  MESSAGEHUB_COSMOS_KEY=... messagehub provision --cosmos-endpoint https://ACCOUNT.documents.azure.com/\n" +
			"  messagehub provision --config hub.yaml --narrow-index\n" +
			"  messagehub provision --config hub.yaml --format bicep >resources.bicep",
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&file, "config", "", "`FILE` with settings in YAML")
	flags.BoolVar(&m.apply, "apply", false, "create and correct; the default")
	flags.BoolVar(&m.check, "check", false, "create and change nothing, only report")
	flags.BoolVar(&m.diff, "diff", false, "create and change nothing, and print what differs")
	flags.StringVar(&m.format, "format", "", "write a template or script in this `FORMAT`: "+formatNames)
	flags.BoolVar(&m.narrowIndex, "narrow-index", false, "also remove index paths that no query of the hub needs")
	flags.StringVar(&m.throughput, "throughput", "autoscale", "throughput `MODE` of new Cosmos containers: autoscale up to the maximum above, or none for a database with shared throughput")
	config.AddFlags(flags, provisionKeys...)
	cmd.MarkFlagsMutuallyExclusive("apply", "check", "diff", "format")
	for _, reads := range []string{"diff", "format"} {
		cmd.MarkFlagsMutuallyExclusive(reads, "narrow-index")
		cmd.MarkFlagsMutuallyExclusive(reads, "throughput")
	}
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		if m.throughput != "autoscale" && m.throughput != "none" {
			return p.usage("--throughput %q: want autoscale or none", m.throughput)
		}
		write, isFormat := formats[m.format]
		if flags.Changed("format") && !isFormat {
			return p.usage("--format %q: want %s", m.format, formatNames)
		}
		cfg, err := config.Load(config.Inputs{File: file, Environ: p.environ, Flags: flags})
		if err != nil {
			return err
		}
		if isFormat {
			return write(p.out, &cfg)
		}
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		all, err := node.Provision(ctx, &cfg, node.ProvisionOptions{
			CheckOnly: m.check || m.diff, ListExtra: m.diff, NarrowIndex: m.narrowIndex, Throughput: m.throughput == "autoscale",
		}, node.Options{})
		switch {
		case err != nil:
			return err
		case m.diff:
			return p.reportDifferences(all)
		default:
			return p.reportProvisioned(all, m.check)
		}
	})
	return cmd
}

// containersTable formats a table of the Cosmos containers that a hub needs.
func containersTable() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONTAINER\tPARTITION KEY\tINDEX PATHS\tDEFAULT TTL\tAUTOSCALE TO")
	for _, c := range deployment.Containers() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d RU/s\n", c.Name, c.PartitionKey, strings.Join(c.IndexPaths(), ", "), c.DefaultTTL(), c.Throughput)
	}
	_ = table.Flush() // writing to memory never fails
	return b.String()
}

const nothingToProvision = "Nothing to provision: these settings name no Azure account, and the engines that serve embeds need none."

// reportProvisioned prints the state of each resource, and then what remains to
// be done.
func (p *process) reportProvisioned(all []node.Resource, isCheck bool) error {
	if len(all) == 0 {
		fmt.Fprintln(p.out, nothingToProvision)
		return nil
	}
	left := int64(0)
	var commands []string
	for i := range all {
		r := &all[i]
		fmt.Fprintf(p.out, "%-11s %-10s %-28s %s\n", r.Service, r.Kind, r.Name, r.State)
		for _, line := range r.Changes {
			fmt.Fprintf(p.out, "    changed: %s\n", line)
		}
		for _, line := range r.Notes {
			fmt.Fprintf(p.out, "    note: %s\n", line)
		}
		for _, line := range r.Left {
			if r.State == cosmosclient.StateMissing && isCheck {
				break // the state, which was printed above, already says this
			}
			fmt.Fprintf(p.out, "    left: %s\n", line)
		}
		left += int64(len(r.Left))
		commands = append(commands, r.Commands...)
	}
	if left == 0 {
		return nil
	}
	how := "Correct the settings that the errors name, or use the Azure CLI"
	if isCheck {
		how = "Run messagehub provision without --check. Where its credential may not do this, use the Azure CLI"
	}
	fmt.Fprintf(p.out, "\n%s left. %s, with your names in place of the words in capitals:\n\n", terminal.CountOf(left, "problem"), how)
	for _, command := range commands {
		fmt.Fprintf(p.out, "  %s\n", command)
	}
	return exitError(exitFailed)
}
