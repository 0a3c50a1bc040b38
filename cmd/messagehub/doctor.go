package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/doctor"
	"github.com/messagehub/messagehub/cmd/terminal"
)

func (p *process) doctorCommand() *cobra.Command {
	var file string
	var online, asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the configuration, this machine, and the services that the hub calls",
		Long: "Check whether a hub with these settings can work on this machine, and print each problem on a\n" +
			"line with what to do about it. The settings are those of serve: from a file, the environment, or the flags\n" +
			"here. The command may run at any time, even while a hub runs.\n\n" +
			"Without --online it calls no other machine and costs nothing: it checks the configuration, the variables of\n" +
			"the identity, the proxy, the certificate, the limit of open files, the data folder with its lock, its free\n" +
			"space and the time of a write, and the ports.\n\n" +
			"With --online it also calls the Cosmos account, the storage account, the Service Bus namespace and the\n" +
			"issuers: name, connection, TLS, the difference between the clocks, the token and its claims, the\n" +
			"containers and queues, and each right that the hub needs. Rights are tested with a document and a blob that the\n" +
			"command creates and deletes, and with links to queues, over which no message is sent or received. It uses less than 50 request\n" +
			"units of the account. If it is killed, its next run deletes these.\n\n" +
			"A check is skipped if another check that it needs has found a fault. Every check has a time limit, and all together take\n" +
			"at most 15 s. Secrets and tokens are not printed.\n\n" +
			"The exit status is 0 without a fault, 1 with a fault, and 2 for a wrong command line. Warnings do\n" +
			"not change it.",
		Example: "  messagehub doctor\n" +
			"  messagehub doctor --online --config hub.yaml\n" +
			"  messagehub doctor --online --json >report.json",
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&file, "config", "", "`FILE` with settings in YAML")
	flags.BoolVar(&online, "online", false, "also call the accounts, the namespace and the issuers, and test each right")
	flags.BoolVar(&asJSON, "json", false, "print the report as JSON")
	config.AddFlags(flags)
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		r := doctorReport{Version: version, Online: online}
		cfg, err := config.Load(config.Inputs{File: file, Environ: p.environ, Flags: flags})
		if err != nil {
			r.Findings = append(configurationFaults(err), doctor.Finding{
				Check: "everything else", State: doctor.NotChecked, Text: "not checked, since the configuration has a fault",
			})
			return p.reportDoctor(&r, asJSON)
		}
		d := node.Diagnose(ctx, &cfg, node.DoctorOptions{Online: online}, node.Options{Version: version})
		r.Findings, r.Units, r.Milliseconds = d.Findings, d.Units, max(1, d.Took.Milliseconds())
		r.hasMore = !online && (!cfg.Embedded() || !cfg.EmbeddedBlob() || !cfg.EmbeddedBus() || cfg.OIDC.IsOn())
		return p.reportDoctor(&r, asJSON)
	})
	return cmd
}

// configurationFaults returns a finding for each fault of a configuration. err
// is the error of loading it.
func configurationFaults(err error) (found []doctor.Finding) {
	for _, fault := range config.Faults(err) {
		f := doctor.Fail("", fault.Error(), "correct the setting")
		f.Check = "configuration"
		found = append(found, f)
	}
	return found
}
