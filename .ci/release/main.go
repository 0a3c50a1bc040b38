// Command release makes the files of a release: for Linux, macOS and Windows on
// amd64 and arm64 an archive with the binary, man pages, completions and
// licences, and a software bill of materials; for Linux packages for Debian and
// Red Hat with the systemd unit; and SHA256SUMS of all files. It needs only Go.
// .goreleaser.yaml describes the same release for goreleaser.
//
// The files depend only on the tree, the stamps and the version of Go, so two
// runs write the same bytes: all times are the time of the commit, the owner is
// root, and names are sorted. A run that fails leaves its files in the folder
// -out, without SHA256SUMS; the next run begins with an empty folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

// A release is one run.
type release struct {
	root string // root of the tree
	out  string // folder of the results
	work string // folder for temporary files
	stamps
}

// stamps are the values that are linked into the program.
type stamps struct {
	version, revision string
	date              time.Time // date of the commit
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := runRelease(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func runRelease(ctx context.Context, args []string) (err error) {
	var r release
	var date, documentsIn string
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&r.root, "root", ".", "`folder` of the tree")
	flags.StringVar(&r.out, "out", "", "`folder` of the results, which is emptied first")
	flags.StringVar(&r.version, "version", "", "version, as git describe prints it")
	flags.StringVar(&r.revision, "revision", "", "commit")
	flags.StringVar(&date, "date", "", "`time` of the commit in RFC 3339")
	flags.StringVar(&documentsIn, "documents", "", "write only man pages, completions and licences, into `folder`, which is emptied first")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if documentsIn != "" {
		r.out = documentsIn
	}
	if r.out == "" || r.version == "" || r.revision == "" || flags.NArg() > 0 {
		return errors.New("want -out or -documents, -version, -revision and -date, and nothing else; run it by make release")
	}
	if r.date, err = time.Parse(time.RFC3339, date); err != nil {
		return fmt.Errorf("-date: %w", err)
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if documentsIn != "" {
		return r.writeDocuments(ctx)
	}
	return r.writeAll(ctx)
}

// writeAll writes all files of the release.
func (r *release) writeAll(ctx context.Context) error {
	host, err := r.buildBinary(ctx, hostTarget())
	if err != nil {
		return err
	}
	docs, err := r.readDocuments(ctx, host)
	if err != nil {
		return err
	}
	for _, t := range targets {
		binary, err := r.buildBinary(ctx, t)
		if err != nil {
			return err
		}
		if err := r.writeArchive(t, binary, docs); err != nil {
			return err
		}
		if err := r.listMaterials(t, binary); err != nil {
			return err
		}
		if t.os == "linux" {
			if err := r.writePackages(t, binary, docs); err != nil {
				return err
			}
		}
	}
	return r.writeSums()
}

// resultPath returns the path of the file of a target with an extension.
func (r *release) resultPath(t target, extension string) string {
	return filepath.Join(r.out, fmt.Sprintf("messagehub_%s_%s_%s%s", r.version, t.os, t.arch, extension))
}
