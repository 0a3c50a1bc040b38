package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// An archiveEntry is a file of an archive.
type archiveEntry struct {
	name string
	mode int64
	text []byte
}

// writeArchive writes the archive of a platform: a zip for Windows, otherwise a
// tar.gz.
func (r *release) writeArchive(t target, binary string, docs documents) error {
	entries, err := r.archiveEntries(t, binary, docs)
	if err != nil {
		return err
	}
	extension, write := ".tar.gz", writeTar
	if t.os == "windows" {
		extension, write = ".zip", writeZip
	}
	file, err := os.Create(r.resultPath(t, extension))
	if err != nil {
		return err
	}
	folder := strings.TrimSuffix(filepath.Base(file.Name()), extension)
	if err := write(file, folder, entries, r.date); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", file.Name(), err), file.Close())
	}
	return file.Close()
}

// archiveEntries returns the files of an archive in the order of their names.
func (r *release) archiveEntries(t target, binary string, docs documents) ([]archiveEntry, error) {
	files := map[string]string{t.binaryName(): binary, "README.md": filepath.Join(r.root, "README.md")}
	if t.os == "linux" {
		for _, name := range []string{"messagehub.service", "messagehub.env"} {
			files[name] = filepath.Join(r.root, "deploy", name)
		}
	}
	entries := []archiveEntry{{"NOTICES", 0o644, docs.notices}}
	for name, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		mode := int64(0o644)
		if name == t.binaryName() {
			mode = 0o755
		}
		entries = append(entries, archiveEntry{name, mode, text})
	}
	for name, text := range docs.pages {
		entries = append(entries, archiveEntry{path.Join("man/man1", name), 0o644, text})
	}
	for name, text := range docs.completions {
		entries = append(entries, archiveEntry{path.Join("completions", name), 0o644, text})
	}
	slices.SortFunc(entries, func(a, b archiveEntry) int { return strings.Compare(a.name, b.name) })
	return entries, nil
}

// writeTar writes a compressed archive with all files in a folder, owned by
// root, with the same time.
func writeTar(w io.Writer, folder string, entries []archiveEntry, at time.Time) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		if err := archive.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: path.Join(folder, e.name), Mode: e.mode, Size: int64(len(e.text)), ModTime: at, Uname: "root", Gname: "root",
		}); err != nil {
			return err
		}
		if _, err := archive.Write(e.text); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

// writeZip writes an archive with all files in a folder, with the same time.
func writeZip(w io.Writer, folder string, entries []archiveEntry, at time.Time) error {
	archive := zip.NewWriter(w)
	for _, e := range entries {
		header := &zip.FileHeader{Name: path.Join(folder, e.name), Method: zip.Deflate, Modified: at.UTC()}
		header.SetMode(os.FileMode(e.mode))
		f, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := f.Write(e.text); err != nil {
			return err
		}
	}
	return archive.Close()
}
