package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// A Summary describes an archive that was read completely and verified.
type Summary struct {
	Head
	Progress
}

// A damage is an error that says how an archive is damaged. It matches
// ErrDamaged.
type damage struct{ error }

func (d damage) Unwrap() []error { return []error{ErrDamaged, d.error} }

func (d damage) Error() string { return fmt.Sprintf("%v (%v)", ErrDamaged, d.error) }

func damagedError(format string, args ...any) error { return damage{fmt.Errorf(format, args...)} }

// Verify reads an archive and checks its digests. It returns ErrDamaged,
// ErrNewerFormat, or an error of from. progress may be nil.
func Verify(ctx context.Context, from io.Reader, progress func(Progress)) (Summary, error) {
	return readArchive(ctx, from, discard{}, progress)
}

// ReadHead reads only the head of an archive.
func ReadHead(ctx context.Context, from io.Reader) (Head, error) {
	r, err := newReader(ctx, from, discard{}, nil)
	if err != nil {
		return Head{}, err
	}
	defer r.close()
	return r.readHead()
}

// A destination receives the files of an archive.
type destination interface {
	// createFile creates or replaces a file. Close makes it durable.
	createFile(name string) (io.WriteCloser, error)
}

// discard is a destination that stores nothing.
type discard struct{}

func (discard) createFile(string) (io.WriteCloser, error) { return nopCloser{io.Discard}, nil }

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func readArchive(ctx context.Context, from io.Reader, to destination, progress func(Progress)) (Summary, error) {
	r, err := newReader(ctx, from, to, progress)
	if err != nil {
		return Summary{}, err
	}
	defer r.close()
	head, err := r.readHead()
	if err == nil {
		err = r.readMembers()
	}
	return Summary{head, r.done}, r.explainError(err)
}

// An archiveReader reads an archive and verifies its digests.
type archiveReader struct {
	body        *sealedReader
	frame       *zstd.Decoder
	tar         *tar.Reader
	to          destination
	report      func(Progress)
	done        Progress
	digests     []string // digests of the files since the last digests member, one line per file
	digestFiles int      // number of digest files (digests/000001 and so on) read so far
}

func newReader(ctx context.Context, from io.Reader, to destination, progress func(Progress)) (*archiveReader, error) {
	if progress == nil {
		progress = func(Progress) {}
	}
	const window = 64 << 20 // maximum window size of the decoder; the archives of this package need 4 MB
	body := &sealedReader{ctx: ctx, from: bufio.NewReaderSize(from, 64<<10), sum: sha256.New()}
	frame, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	return &archiveReader{body: body, frame: frame, tar: tar.NewReader(frame), to: to, report: progress}, nil
}

func (r *archiveReader) close() { r.frame.Close() }

// explainError returns the error of the underlying reader, if it failed.
// Otherwise it returns err, which is about the archive.
func (r *archiveReader) explainError(err error) error {
	if r.body.failed != nil {
		return r.body.failed
	}
	return err
}

func (r *archiveReader) readHead() (head Head, err error) {
	member, err := r.tar.Next()
	if err != nil {
		return head, r.explainError(damagedError("it does not begin as an archive: %w", err))
	}
	if member.Name != headMember {
		return head, damagedError("it begins with %.40q", member.Name)
	}
	if err := r.readJSON(member, &head); err != nil {
		return head, r.explainError(err)
	}
	switch {
	case head.Format > Format:
		return head, fmt.Errorf("%w (its format is %d, this version reads %d; version %.40q has written it)", ErrNewerFormat, head.Format, Format, head.Version)
	case head.Format < 1 || head.Folder == "":
		return head, damagedError("its head says neither its format nor its folder")
	}
	return head, nil
}

func (r *archiveReader) readMembers() error {
	for {
		member, err := r.tar.Next()
		if err != nil {
			return damagedError("it ends before its end: %w", err)
		}
		switch {
		case member.Typeflag != tar.TypeReg:
			return damagedError("%.80q is no file", member.Name)
		case strings.HasPrefix(member.Name, dataFolder):
			err = r.readFile(member)
		case strings.HasPrefix(member.Name, digestFolder):
			err = r.readDigests(member)
		case member.Name == endMember:
			return r.readEnd(member)
		default:
			err = damagedError("it has a member %.80q", member.Name)
		}
		if err != nil {
			return err
		}
	}
}

// Files and folders of the data folder that an archive may contain.
var (
	archivedFiles   = []string{"identity", "push.key"}
	archivedFolders = []string{"bus", "cosmos", "content", "exchange"}
)

func checkName(name string) error {
	folder, _, isBelow := strings.Cut(name, "/")
	isKnown := isBelow && slices.Contains(archivedFolders, folder) || slices.Contains(archivedFiles, name)
	if !isKnown || !fs.ValidPath(name) || strings.Contains(name, `\`) {
		return damagedError("it has a file %.80q, which does not belong in a data folder", name)
	}
	return nil
}

func (r *archiveReader) readFile(member *tar.Header) error {
	name := strings.TrimPrefix(member.Name, dataFolder)
	if err := checkName(name); err != nil {
		return err
	}
	if len(r.digests) == digestsEach {
		return damagedError("more than %d files have no digest", digestsEach)
	}
	file, err := r.to.createFile(name)
	if err != nil {
		return err
	}
	sum := sha256.New()
	into := &countingWriter{file: file, sum: sum, reader: r}
	_, err = io.CopyBuffer(into, struct{ io.Reader }{r.tar}, make([]byte, 64<<10))
	switch {
	case into.failed != nil:
		return errors.Join(into.failed, file.Close())
	case err != nil:
		return errors.Join(damagedError("%s: %w", name, err), file.Close())
	}
	if err := file.Close(); err != nil {
		return err
	}
	r.done.Files++
	r.report(r.done)
	r.digests = append(r.digests, hex.EncodeToString(sum.Sum(nil))+"  "+member.Name)
	return nil
}

// A countingWriter writes and counts the bytes of an extracted file. It stores
// the file's last error, to distinguish it from errors of the archive.
type countingWriter struct {
	file   io.Writer
	sum    hash.Hash
	reader *archiveReader
	failed error
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	w.sum.Write(p[:n])
	w.reader.done.Bytes += int64(n)
	w.failed = err
	return n, err
}

func (r *archiveReader) readDigests(member *tar.Header) error {
	r.digestFiles++
	if want := fmt.Sprintf("%s%06d", digestFolder, r.digestFiles); member.Name != want {
		return damagedError("it has %.80q in the place of %s", member.Name, want)
	}
	text, err := r.readSmall(member)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for i, line := range r.digests {
		if i >= len(lines) || lines[i] != line {
			_, name, _ := strings.Cut(line, "  ")
			return damagedError("%s is not what was written", name)
		}
	}
	if len(lines) != len(r.digests) {
		return damagedError("%s is about %d files, and there are %d", member.Name, len(lines), len(r.digests))
	}
	r.digests = r.digests[:0]
	return nil
}

func (r *archiveReader) readEnd(member *tar.Header) error {
	var e end
	if err := r.readJSON(member, &e); err != nil {
		return err
	}
	if len(r.digests) > 0 || e.Files != r.done.Files || e.Bytes != r.done.Bytes {
		return damagedError("it says that it has %d files with %d bytes, and has %d with %d", e.Files, e.Bytes, r.done.Files, r.done.Bytes)
	}
	if _, err := r.tar.Next(); !errors.Is(err, io.EOF) {
		return damagedError("something follows its end")
	}
	if _, err := io.Copy(io.Discard, r.frame); err != nil {
		return damagedError("its end: %w", err)
	}
	return r.body.checkSeal()
}

func (r *archiveReader) readSmall(member *tar.Header) ([]byte, error) {
	if member.Size > maxSmall {
		return nil, damagedError("%.80q has %d bytes", member.Name, member.Size)
	}
	text, err := io.ReadAll(r.tar)
	if err != nil {
		return nil, damagedError("%s: %w", member.Name, err)
	}
	return text, nil
}

func (r *archiveReader) readJSON(member *tar.Header, into any) error {
	text, err := r.readSmall(member)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return damagedError("%s: %w", member.Name, err)
	}
	return nil
}

// A sealedReader reads the bytes of an archive before the trailer, and computes
// their digest.
type sealedReader struct {
	ctx    context.Context //nolint:containedctx // of one call
	from   *bufio.Reader
	sum    hash.Hash
	failed error // error of the underlying reader, or cause of ctx's end
}

func (s *sealedReader) Read(p []byte) (int, error) {
	if err := context.Cause(s.ctx); err != nil {
		s.failed = err
		return 0, err
	}
	_, err := s.from.Peek(trailerLength + 1)
	if errors.Is(err, io.EOF) {
		return 0, io.EOF
	}
	if err != nil {
		s.failed = err
		return 0, err
	}
	n, err := s.from.Read(p[:min(len(p), s.from.Buffered()-trailerLength)])
	s.sum.Write(p[:n])
	return n, err
}

// checkSeal reads the remaining bytes, and checks that the trailer contains the
// digest of all bytes before it.
func (s *sealedReader) checkSeal() error {
	if _, err := io.Copy(io.Discard, s); err != nil {
		return err
	}
	want := append([]byte(trailerStart+trailerMagic), s.sum.Sum(nil)...)
	if is, _ := s.from.Peek(trailerLength); !bytes.Equal(is, want) {
		return damagedError("its digest is another")
	}
	return nil
}
