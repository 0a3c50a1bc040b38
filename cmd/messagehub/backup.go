package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/backup"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// stdoutFile is the argument FILE that stands for standard output.
const stdoutFile = "-"

func (p *process) backupCommand() *cobra.Command {
	var url, file string
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write all data of a hub to an archive",
		Long: "Write all data of a hub to one archive: messages, documents, contents, and what hub and domains exchange.\n" +
			"With --url, a running hub is backed up while it continues to work; without --url, the data folder of a hub\n" +
			"that does not run. Everything that was acknowledged before the backup began is in the archive.\n\n" +
			"The archive also has the file push.key, without which the sealed secrets of subscriptions could not be\n" +
			"read. So the archive is as secret as the data folder; FILE gets the mode 0600. The operators'\n" +
			"token is not in it. FILE appears, or is replaced, once the archive is complete and verified; " + stdoutFile + " is stdout, and\n" +
			"then only the exit status shows that it is complete. zstd -dc FILE | tar -t lists its files.\n\n" +
			"While a backup runs, the data folder grows by what is written meanwhile, and deleted contents keep their disk\n" +
			"space until it ends. Data on Azure is backed up by the services: continuous backup of Cosmos DB, and versions\n" +
			"and soft delete of blobs; the command then says how.\n\n" +
			"The hub's token for operators comes from " + tokenVariable + ", or from the file admin.token in the data folder.",
		Example: "  messagehub backup --url http://127.0.0.1:8081 hub.backup\n" +
			"  messagehub backup --data /var/lib/messagehub /backups/hub.backup\n" +
			"  messagehub backup --url http://127.0.0.1:8081 - | ssh elsewhere 'cat > hub.backup'",
		Args: wantFile,
	}
	flags := cmd.Flags()
	flags.StringVar(&url, "url", "", "`URL` at which a running hub serves operators (its setting admin-listen)")
	flags.StringVar(&file, "config", "", "`FILE` with settings in YAML")
	config.AddFlags(flags, "data")
	p.addAccess(flags)
	cmd.RunE = p.do(func(ctx context.Context, args []string) error {
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		if url == "" {
			cfg, err := config.Load(config.Inputs{File: file, Environ: p.environ, Flags: flags})
			if err != nil {
				return err
			}
			return p.writeBackup(ctx, args[0], func(w io.Writer) error { return backUpFolder(ctx, &cfg, w) })
		}
		if _, err := hubclient.New(url); err != nil {
			return p.usage("%w", err)
		}
		remote, err := p.newOperator(config.Inputs{File: file, Flags: flags}, url)
		if err != nil {
			return err
		}
		defer remote.Close()
		return p.writeBackup(ctx, args[0], func(w io.Writer) error { return backUpHub(ctx, remote, w) })
	})
	return cmd
}

func wantFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return errors.New("want one FILE")
	}
	return nil
}

// backUpFolder writes an archive of a data folder that no hub uses.
func backUpFolder(ctx context.Context, cfg *config.Config, w io.Writer) error {
	err := node.Backup(ctx, cfg, version, w, nil)
	if used, ok := errors.AsType[*node.InUseError](err); ok {
		return fmt.Errorf("data folder %s: a hub, or another command, uses it; back up a running hub with messagehub backup --url URL, such as %s", used.Folder, hubclient.DefaultAdminURL)
	}
	return err
}

// backUpHub writes an archive that a running hub creates.
func backUpHub(ctx context.Context, remote *hubclient.Client, w io.Writer) error {
	resp, err := remote.Do(ctx, http.MethodGet, "/v1/admin/backup", "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	from := &failingReader{from: resp.Body}
	_, err = io.Copy(w, from)
	if from.err != nil {
		return fmt.Errorf("the hub at %s ended the backup before it was complete; see its log (%w)", remote.Base, from.err)
	}
	return err
}

// A failingReader records the error of its reader, to distinguish it from an
// error of the writer.
type failingReader struct {
	from io.Reader
	err  error
}

func (r *failingReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// writeBackup writes an archive to a file or standard output, and verifies the
// archive at the same time.
func (p *process) writeBackup(ctx context.Context, file string, write func(io.Writer) error) error {
	began := time.Now()
	progress := p.newTransfer("backed up")
	defer progress.clearLine()
	var archive counter
	var s backup.Summary
	verified := func(to io.Writer) (err error) {
		s, err = verifyWhile(ctx, io.MultiWriter(to, &archive), write, progress.reportProgress)
		return err
	}
	var err error
	if file == stdoutFile {
		err = verified(p.out)
	} else {
		err = backup.CreateFile(file, verified)
	}
	progress.clearLine()
	if err != nil {
		return transferFault(ctx, err)
	}
	fmt.Fprintf(p.err, "backed up %s, %s, as of %s, in %s: %s of archive\n", terminal.CountOf(s.Files, "file"), sizeText(s.Bytes),
		s.Began.Format(time.RFC3339), time.Since(began).Round(100*time.Millisecond), sizeText(int64(archive)))
	return nil
}

// verifyWhile calls write, which writes an archive to the writer to, and
// verifies the archive at the same time.
func verifyWhile(ctx context.Context, to io.Writer, write func(io.Writer) error, progress func(backup.Progress)) (backup.Summary, error) {
	reading, writing := io.Pipe()
	type result struct {
		backup.Summary
		err error
	}
	verified := make(chan result, 1)
	go func() {
		s, err := backup.Verify(ctx, reading, progress)
		if err == nil {
			err = requireEnd(reading)
		}
		reading.CloseWithError(err) // a damaged archive stops write
		verified <- result{s, err}
	}()
	err := write(io.MultiWriter(to, writing))
	_ = writing.CloseWithError(err) // if err is nil, this ends the archive
	r := <-verified
	if err != nil {
		return r.Summary, err
	}
	return r.Summary, r.err
}

// requireEnd waits until the writer of an archive closes it. It fails if more
// bytes follow.
func requireEnd(r io.Reader) error {
	if n, err := io.Copy(io.Discard, r); err != nil || n > 0 {
		return errors.Join(backup.ErrDamaged, err)
	}
	return nil
}

// transferFault returns err. If ctx has ended, it returns an error that says
// that the backup or restore was stopped.
func transferFault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("stopped before the end; nothing was changed")
	}
	return err
}

// A counter counts the bytes written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// sizeText formats a number of bytes with a unit.
func sizeText(bytes int64) string {
	switch {
	case bytes >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
	case bytes >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	case bytes >= 1e3:
		return fmt.Sprintf("%.1f KB", float64(bytes)/1e3)
	}
	return terminal.CountOf(bytes, "byte")
}
