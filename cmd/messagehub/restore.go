package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/backup"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// A restoreCommand contains the flags of messagehub restore.
type restoreCommand struct {
	p      *process
	list   bool
	freeze bool
	who    string
	why    string
}

func (p *process) restoreCommand() *cobra.Command {
	r := &restoreCommand{p: p}
	var file string
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore the data folder of a hub from an archive",
		Long: "Restore a data folder, which must be missing or empty, from an archive that messagehub backup has written.\n" +
			"All digests are verified before anything becomes visible, and the folder becomes visible in one step: a\n" +
			"restore that fails or is killed leaves no data, and can be repeated with the same command. Until it is complete, no\n" +
			"hub starts with the folder. Then run messagehub check --repair, which rolls back the Saves that were under way\n" +
			"when the backup began, and start the hub.\n\n" +
			"The hub is then in the state in which the backup began. Actors receive again the bundles that they dequeued since then, and\n" +
			"receivers are called again; events that were sent since then are lost unless their senders repeat them.\n" +
			"With --freeze, no actor receives a bundle twice without your decision: all queues are frozen when the hub starts, even\n" +
			"queues of actors whose first events arrive later. Peek and dequeue answer 503, and events that are sent are stored.\n" +
			"Decide for each actor, for example skip bundles, and thaw its queue: messagehub queue thaw ACTOR --why REASON.\n" +
			"After the last decision, delete the file frozen in the data folder and restart the hub. Calls to receivers are not\n" +
			"frozen.\n\n" +
			"The identity of the folder is restored, too, so never run a hub with the restored folder and one with the\n" +
			"original at the same time. The operators' token is not in the archive; the hub generates another\n" +
			"one, unless the setting admin.token is set.",
		Example: "  messagehub restore hub.backup --data /var/lib/messagehub\n" +
			"  messagehub restore hub.backup --data /var/lib/messagehub --freeze --why 'disk of node 1 lost'\n" +
			"  messagehub restore --list hub.backup",
		Args: wantFile,
	}
	flags := cmd.Flags()
	flags.BoolVar(&r.list, "list", false, "verify the archive and print its summary; restore nothing")
	flags.BoolVar(&r.freeze, "freeze", false, "freeze all queues until an operator thaws them")
	flags.StringVar(&r.who, "who", "", "`NAME` for the records of --freeze (default: your login name)")
	flags.StringVar(&r.why, "why", "", "`TEXT` with the reason, for the records of --freeze (default: that the folder was restored)")
	flags.StringVar(&file, "config", "", "`FILE` with settings in YAML")
	config.AddFlags(flags, "data")
	cmd.RunE = p.do(func(ctx context.Context, args []string) error {
		if !r.freeze && (r.who != "" || r.why != "") {
			return p.usage("--who and --why are for the records of --freeze; add it, or remove them")
		}
		if r.list && r.freeze {
			return p.usage("--list restores nothing, so --freeze has no meaning; remove one of the two")
		}
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		archive, err := openArchive(args[0])
		if err != nil {
			return err
		}
		defer archive.Close() //nolint:errcheck // only read
		if r.list {
			return r.verifyArchive(ctx, archive)
		}
		cfg, err := config.Load(config.Inputs{File: file, Environ: p.environ, Flags: flags})
		if err != nil {
			return err
		}
		return r.restoreArchive(ctx, &cfg, archive)
	})
	return cmd
}

func openArchive(name string) (*os.File, error) {
	f, err := os.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: the file does not exist; name an archive that messagehub backup has written", name)
	case err != nil:
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a file; name an archive that messagehub backup has written", name), err, f.Close())
	}
	return f, nil
}

// verifyArchive verifies an archive and prints its summary.
func (r *restoreCommand) verifyArchive(ctx context.Context, archive io.Reader) error {
	progress := r.p.newTransfer("verified")
	s, err := backup.Verify(ctx, archive, progress.reportProgress)
	progress.clearLine()
	if err != nil {
		return transferFault(ctx, err)
	}
	_, err = fmt.Fprintf(r.p.out, "whole: %s, %s, as of %s, of the data folder %s, by version %s\n",
		terminal.CountOf(s.Files, "file"), sizeText(s.Bytes), s.Began.Format(time.RFC3339), s.Folder, cmp.Or(terminal.Printable(s.Version), "unknown"))
	return err
}

func (r *restoreCommand) restoreArchive(ctx context.Context, cfg *config.Config, archive io.ReadSeeker) error {
	if cfg.InMemory {
		return errors.New("in-memory = true: such a hub has no data folder to restore")
	}
	var frozen *node.Frozen
	if r.freeze {
		frozen = &node.Frozen{
			Who: cmp.Or(r.who, loginName(), "restore"), Why: cmp.Or(r.why, "the data folder was restored from a backup"), Since: time.Now().UTC(),
		}
		if err := frozen.Check(); err != nil {
			return r.p.usage("%w", err)
		}
	}
	progress := r.p.newTransfer("restored")
	s, err := node.Restore(ctx, cfg.Data, archive, frozen, progress.reportProgress)
	progress.clearLine()
	if err != nil {
		return transferFault(ctx, err)
	}
	_, err = fmt.Fprintf(r.p.out, "restored %s: %s, %s, as of %s; run messagehub check --repair, and start the hub\n",
		cfg.Data, terminal.CountOf(s.Files, "file"), sizeText(s.Bytes), s.Began.Format(time.RFC3339))
	if r.freeze && err == nil {
		_, err = fmt.Fprintln(r.p.out, "the queues are frozen when the hub starts; when you have decided about an actor, thaw its queue with messagehub queue thaw ACTOR --why REASON")
	}
	return err
}
