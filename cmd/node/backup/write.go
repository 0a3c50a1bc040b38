package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"
)

// A Source specifies the contents of an archive: first the files, then the
// trees, each in this order.
type Source struct {
	Version string // version of the program
	Folder  string // id of the data folder
	Began   time.Time
	Files   []File
	Trees   []Tree

	// Rest is the length of Write's pauses, as a multiple of the working time
	// between them, so that other work can use the processors and the disk. If
	// it is 0, Write does not pause.
	Rest int
}

// A File is one file of a data folder.
type File struct {
	Name string // path relative to the data folder, with slashes
	Size int64
	From io.WriterTo // writes Size bytes
}

// A Tree is a subfolder of a data folder.
type Tree struct {
	Name string
	// Each calls visit for each file, with the file's path in the tree. It
	// stops at the first error of visit, and returns the error.
	Each func(visit func(name string, file *os.File, info fs.FileInfo) error) error
}

// Write writes an archive. It reads each file once and uses little memory.
// Unless progress is nil, Write calls it after each file and regularly during a
// large file. After an error, the output is not a valid archive.
func Write(ctx context.Context, to io.Writer, s *Source, progress func(Progress)) error {
	if progress == nil {
		progress = func(Progress) {}
	}
	sum := sha256.New()
	compressed, err := zstd.NewWriter(io.MultiWriter(to, sum), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	if err != nil {
		return err
	}
	w := &archiveWriter{ctx: ctx, tar: tar.NewWriter(compressed), now: s.Began, report: progress, rest: s.Rest, rested: time.Now()}
	if err := w.writeAll(s); err != nil {
		_ = compressed.Close() // only releases memory: the archive is already invalid
		return err
	}
	if err := compressed.Close(); err != nil {
		return err
	}
	_, err = to.Write(append([]byte(trailerStart+trailerMagic), sum.Sum(nil)...))
	return err
}

// An archiveWriter writes the members of an archive's tar file.
type archiveWriter struct {
	ctx     context.Context //nolint:containedctx // of one call of Write
	tar     *tar.Writer
	now     time.Time
	report  func(Progress)
	done    Progress
	digests bytes.Buffer
	members int // number of digests members so far
	rest    int
	rested  time.Time
}

// pause waits if the last pause was long enough ago.
func (w *archiveWriter) pause() {
	const (
		turn    = 2 * time.Millisecond
		longest = 50 * time.Millisecond // maximum pause, because the time since the last pause may include waiting for a slow reader of the archive
	)
	worked := time.Since(w.rested)
	if w.rest == 0 || worked < turn {
		return
	}
	timer := time.NewTimer(min(time.Duration(w.rest)*worked, longest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
	}
	w.rested = time.Now()
}

func (w *archiveWriter) writeAll(s *Source) error {
	if err := w.writeJSON(headMember, Head{Format: Format, Version: s.Version, Folder: s.Folder, Began: s.Began.UTC()}); err != nil {
		return err
	}
	for _, f := range s.Files {
		if err := w.writeFile(f.Name, f.Size, f.From); err != nil {
			return err
		}
	}
	for _, t := range s.Trees {
		err := t.Each(func(name string, file *os.File, info fs.FileInfo) error {
			return w.writeFile(t.Name+"/"+name, info.Size(), readerSource{file})
		})
		if err != nil {
			return err
		}
	}
	if err := w.writeDigests(); err != nil {
		return err
	}
	if err := w.writeJSON(endMember, end{Files: w.done.Files, Bytes: w.done.Bytes}); err != nil {
		return err
	}
	return w.tar.Close()
}

// A readerSource turns a reader into an io.WriterTo.
type readerSource struct{ from io.Reader }

// WriteTo implements io.WriterTo.
func (c readerSource) WriteTo(w io.Writer) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{c.from}, make([]byte, 64<<10))
}

func (w *archiveWriter) writeFile(name string, size int64, from io.WriterTo) error {
	err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: dataFolder + name, Size: size, Mode: 0o600, ModTime: w.now})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	sum := sha256.New()
	n, err := from.WriteTo(&memberWriter{w, sum})
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case n != size:
		return fmt.Errorf("%s: it has %d bytes, and had %d before", name, n, size)
	}
	w.done.Files++
	w.report(w.done)
	fmt.Fprintf(&w.digests, "%s  %s%s\n", hex.EncodeToString(sum.Sum(nil)), dataFolder, name)
	if w.done.Files%digestsEach == 0 {
		return w.writeDigests()
	}
	return nil
}

// A memberWriter writes the content of a tar member. It fails when ctx ends.
type memberWriter struct {
	*archiveWriter
	sum hash.Hash
}

func (m *memberWriter) Write(p []byte) (n int, err error) {
	if err := context.Cause(m.ctx); err != nil {
		return 0, err
	}
	n, err = m.tar.Write(p)
	m.sum.Write(p[:n])
	m.pause()
	const step = 64 << 20 // progress is called each time that this number of bytes was written
	before := m.done.Bytes / step
	if m.done.Bytes += int64(n); m.done.Bytes/step > before {
		m.report(m.done)
	}
	return n, err
}

// writeDigests writes a member that contains the digests of all files since the
// previous digests member.
func (w *archiveWriter) writeDigests() error {
	if w.digests.Len() == 0 {
		return nil
	}
	w.members++
	defer w.digests.Reset()
	return w.writeSmall(fmt.Sprintf("%s%06d", digestFolder, w.members), w.digests.Bytes())
}

func (w *archiveWriter) writeJSON(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return w.writeSmall(name, append(text, '\n'))
}

func (w *archiveWriter) writeSmall(name string, text []byte) error {
	err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: 0o600, ModTime: w.now})
	if err != nil {
		return err
	}
	_, err = w.tar.Write(text)
	return err
}
