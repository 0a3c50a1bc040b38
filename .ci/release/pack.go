package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the packager for deb
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the packager for rpm
)

// writePackages writes the packages of a platform for Debian and Red Hat.
func (r *release) writePackages(t target, binary string, docs documents) error {
	for _, format := range []string{"deb", "rpm"} {
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		contents, err := r.packageContents(t, binary, docs, format)
		if err != nil {
			return err
		}
		script := func(name string) string { return filepath.Join(r.root, ".ci/release/packages", name) }
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: "messagehub", Arch: t.arch, Platform: t.os, Version: packageVersion(r.version), VersionSchema: "none", Section: "net",
			Maintainer: "MessageHub maintainers <maintainers@messagehub.example>", MTime: r.date,
			Description: "A store-and-forward hub\nDomains announce data, actors fetch it in order, in bundles, and confirm them.",
			Overridables: nfpm.Overridables{
				Contents: contents, Umask: 0o022,
				Scripts: nfpm.Scripts{PostInstall: script("postinstall.sh"), PreRemove: script("preremove.sh"), PostRemove: script("postremove.sh")},
				RPM:     nfpm.RPM{BuildHost: "reproducible"},
			},
		})
		if err := nfpm.PrepareForPackager(info, format); err != nil {
			return err
		}
		if err := info.Validate(); err != nil {
			return err
		}
		file, err := os.Create(r.resultPath(t, "."+format))
		if err != nil {
			return err
		}
		if err := packager.Package(info, file); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", file.Name(), err), file.Close())
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	return nil
}

// packageVersion returns a version that both packagers accept: it begins with a digit and has no hyphen.
func packageVersion(version string) string {
	plain := strings.ReplaceAll(strings.TrimPrefix(version, "v"), "-", ".")
	if plain[0] < '0' || plain[0] > '9' || !strings.Contains(plain, ".") || strings.TrimLeft(plain, "0123456789")[0] != '.' {
		return "0.0.0+" + plain
	}
	return plain
}

// packageContents returns the files of a package.
func (r *release) packageContents(t target, binary string, docs documents, format string) (files.Contents, error) {
	stage := filepath.Join(r.work, "package", t.arch+"-"+format)
	var contents files.Contents
	add := func(source, destination, kind string, mode os.FileMode) {
		contents = append(contents, &files.Content{
			Source: source, Destination: destination, Type: kind, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.date},
		})
	}
	add(binary, "/usr/bin/messagehub", "", 0o755)
	add(filepath.Join(r.root, "deploy/messagehub.service"), "/usr/lib/systemd/system/messagehub.service", "", 0o644)
	add(filepath.Join(r.root, "deploy/messagehub.env"), "/etc/messagehub/messagehub.env", "config|noreplace", 0o600) // mode 0600, because it may contain secrets
	zsh := "/usr/share/zsh/vendor-completions/_messagehub"
	if format == "rpm" {
		zsh = "/usr/share/zsh/site-functions/_messagehub"
	}
	staged := map[string][]byte{
		"/usr/share/doc/messagehub/NOTICES":                    docs.notices,
		"/usr/share/bash-completion/completions/messagehub":    docs.completions["messagehub.bash"],
		"/usr/share/fish/vendor_completions.d/messagehub.fish": docs.completions["messagehub.fish"],
		zsh: docs.completions["_messagehub"],
	}
	for name, page := range docs.pages {
		compressed, err := gzipText(page)
		if err != nil {
			return nil, err
		}
		staged["/usr/share/man/man1/"+name+".gz"] = compressed
	}
	if err := writeFiles(stage, staged); err != nil {
		return nil, err
	}
	for _, destination := range slices.Sorted(maps.Keys(staged)) {
		add(filepath.Join(stage, destination), destination, "", 0o644)
	}
	return contents, nil
}

// gzipText compresses a text with gzip, without a time.
func gzipText(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}
