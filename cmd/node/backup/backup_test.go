package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// sample contains the files in the tests' archives: content by path.
var sample = map[string]string{
	"bus/store.db": "messages", "cosmos/store.db": strings.Repeat("document ", 2000), "identity": "{}", "push.key": "key",
	"content/payloads/a=": "payload", "content/+identity": "id", "exchange/c/+": "", "exchange/c/0123": "blob",
}

// tree creates the files of sample that belong to folder, and returns them as a
// Tree.
func tree(t testing.TB, folder string) Tree {
	dir := t.TempDir()
	for name, text := range sample {
		if below, ok := strings.CutPrefix(name, folder+"/"); ok {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(below)), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, below), []byte(text), 0o600))
		}
	}
	return Tree{Name: folder, Each: func(visit func(string, *os.File, fs.FileInfo) error) error {
		return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			info, err := f.Stat()
			if err != nil {
				return err
			}
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			return visit(filepath.ToSlash(name), f, info)
		})
	}}
}

func source(t testing.TB) *Source {
	s := &Source{Version: "v1", Folder: "folder-1", Began: time.Date(2026, 11, 27, 1, 2, 3, 0, time.UTC), Trees: []Tree{tree(t, "content"), tree(t, "exchange")}}
	for _, name := range []string{"bus/store.db", "cosmos/store.db", "identity", "push.key"} {
		s.Files = append(s.Files, File{Name: name, Size: int64(len(sample[name])), From: strings.NewReader(sample[name])})
	}
	return s
}

func archive(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Write(t.Context(), &b, source(t), nil))
	return b.Bytes()
}

// filesOf returns the content of each file in dir by path, without the lock
// file.
func filesOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	}))
	return files
}

func TestRestore_RestoresEveryFile(t *testing.T) {
	dir := t.TempDir()
	var last Progress
	s, err := Restore(t.Context(), dir, bytes.NewReader(archive(t)), RestoreOptions{Frozen: []byte("frozen"), Progress: func(p Progress) { last = p }})
	require.NoError(t, err)
	want := maps.Clone(sample)
	want["frozen"] = "frozen"
	require.Equal(t, want, filesOf(t, dir))
	require.Equal(t, Head{Format: 1, Version: "v1", Folder: "folder-1", Began: time.Date(2026, 11, 27, 1, 2, 3, 0, time.UTC)}, s.Head)
	require.EqualValues(t, len(sample), s.Files)
	require.Equal(t, s.Progress, last)
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		require.Zero(t, info.Mode().Perm()&0o077, "%s is for its owner alone", path)
		return err
	}))
}

func TestWrite_OfManyFilesHasADigestOfEach(t *testing.T) {
	s := source(t)
	for i := range 2*digestsEach + 1 {
		s.Files = append(s.Files, File{Name: "content/" + strings.Repeat("a", i%200+1) + string(rune('a'+i%26)), Size: 1, From: strings.NewReader("x")})
	}
	var b bytes.Buffer
	require.NoError(t, Write(t.Context(), &b, s, nil))
	found, err := Verify(t.Context(), &b, nil)
	require.NoError(t, err)
	require.EqualValues(t, len(sample)+2*digestsEach+1, found.Files)
}

func TestVerify_RefusesATruncatedArchive(t *testing.T) {
	whole := archive(t)
	for length := range len(whole) {
		_, err := Verify(t.Context(), bytes.NewReader(whole[:length]), nil)
		require.ErrorIs(t, err, ErrDamaged, "%d of %d bytes", length, len(whole))
	}
	_, err := Verify(t.Context(), bytes.NewReader(append(slices.Clone(whole), 0)), nil)
	require.ErrorIs(t, err, ErrDamaged, "one byte more")
	_, err = Verify(t.Context(), bytes.NewReader(slices.Concat(whole, whole)), nil)
	require.ErrorIs(t, err, ErrDamaged, "twice")
	_, err = Verify(t.Context(), bytes.NewReader(whole), nil)
	require.NoError(t, err)
}

func TestVerify_RefusesAnArchiveWithOneByteChanged(t *testing.T) {
	whole := archive(t)
	for i := range whole {
		for _, flip := range []byte{1, 0xff} {
			changed := slices.Clone(whole)
			changed[i] ^= flip
			_, err := Verify(t.Context(), bytes.NewReader(changed), nil)
			if !errors.Is(err, ErrNewerFormat) { // the changed byte is part of the format number
				require.ErrorIs(t, err, ErrDamaged, "byte %d of %d, %#x", i, len(whole), flip)
			}
		}
	}
}

func TestRestore_OfADamagedArchiveLeavesTheFolderEmpty(t *testing.T) {
	whole := archive(t)
	dir := t.TempDir()
	for i := 0; i < len(whole); i += max(len(whole)/60, 1) {
		_, err := Restore(t.Context(), dir, bytes.NewReader(whole[:i]), RestoreOptions{})
		require.ErrorIs(t, err, ErrDamaged)
		require.Empty(t, filesOf(t, dir))
		changed := slices.Clone(whole)
		changed[i] ^= 0x20
		_, err = Restore(t.Context(), dir, bytes.NewReader(changed), RestoreOptions{})
		require.ErrorIs(t, err, ErrDamaged)
		require.Empty(t, filesOf(t, dir))
		require.NoError(t, Finish(dir), "a hub may start with the folder")
	}
}

// craftArchive returns an archive that contains these members and a valid
// trailer. The content of a member is passed as its Linkname.
func craftArchive(t testing.TB, members ...tar.Header) []byte {
	var b bytes.Buffer
	sum := sha256.New()
	z, err := zstd.NewWriter(io.MultiWriter(&b, sum))
	require.NoError(t, err)
	w := tar.NewWriter(z)
	for _, m := range members {
		text := m.Linkname
		if m.Typeflag == tar.TypeReg {
			m.Linkname, m.Size = "", int64(len(text))
		}
		require.NoError(t, w.WriteHeader(&m))
		if m.Typeflag == tar.TypeReg {
			_, err := io.WriteString(w, text)
			require.NoError(t, err)
		}
	}
	require.NoError(t, errors.Join(w.Close(), z.Close()))
	return append(append(b.Bytes(), trailerStart+trailerMagic...), sum.Sum(nil)...)
}

// regularHeader returns the header of a regular file for craftArchive, with the
// content as Linkname.
func regularHeader(name, text string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Linkname: text, Mode: 0o600}
}

func TestRestore_RefusesForeignMembers(t *testing.T) {
	head := regularHeader(headMember, `{"format":1,"folder":"f","began":"2026-11-27T00:00:00Z","later":"member"}`)
	for name, members := range map[string][]tar.Header{
		"no end":               {head},
		"a name that leads up": {head, regularHeader("data/../../x", "x")},
		"an absolute name":     {head, regularHeader("data//etc/x", "x")},
		"a backslash":          {head, regularHeader(`data/content/..\x`, "x")},
		"another folder":       {head, regularHeader("data/home/x", "x")},
		"a folder's name":      {head, regularHeader("data/cosmos", "x")},
		"the operators' token": {head, regularHeader("data/admin.token", "x")},
		"another member":       {head, regularHeader("x", "x")},
		"a link":               {head, {Typeflag: tar.TypeSymlink, Name: "data/content/x", Linkname: "/etc/passwd"}},
		"no digest":            {head, regularHeader("data/identity", "x"), regularHeader(endMember, `{"files":1,"bytes":1}`)},
		"a wrong digest":       {head, regularHeader("data/identity", "x"), regularHeader("digests/000001", strings.Repeat("0", 64)+"  data/identity\n")},
		"digests of no file":   {head, regularHeader("digests/000001", strings.Repeat("0", 64)+"  data/identity\n")},
		"digests out of order": {head, regularHeader("data/identity", "x"), regularHeader("digests/000002", "")},
		"wrong numbers":        {head, regularHeader(endMember, `{"files":1,"bytes":1}`)},
		"an end that is long":  {head, regularHeader(endMember, strings.Repeat(" ", maxSmall+1))},
		"more than the end":    {head, regularHeader(endMember, `{"files":0,"bytes":0}`), regularHeader("data/identity", "x")},
		"no head":              {regularHeader("data/identity", "x")},
		"no format":            {regularHeader(headMember, `{"folder":"f"}`)},
		"no JSON":              {regularHeader(headMember, `{`)},
	} {
		dir := t.TempDir()
		_, err := Restore(t.Context(), dir, bytes.NewReader(craftArchive(t, members...)), RestoreOptions{})
		require.ErrorIs(t, err, ErrDamaged, name)
		require.Empty(t, filesOf(t, dir), name)
	}
	dir := t.TempDir()
	_, err := Restore(t.Context(), dir, bytes.NewReader(craftArchive(t, head, regularHeader(endMember, `{"files":0,"bytes":0,"later":1}`))), RestoreOptions{})
	require.NoError(t, err, "members of JSON that are not known are ignored")
}

func TestRestore_RefusesANewerFormat(t *testing.T) {
	newer := craftArchive(t, regularHeader(headMember, `{"format":2,"version":"v9","folder":"f"}`), regularHeader("later", "x"))
	_, err := Restore(t.Context(), t.TempDir(), bytes.NewReader(newer), RestoreOptions{})
	require.ErrorIs(t, err, ErrNewerFormat)
	require.ErrorContains(t, err, "v9")
}

func TestRestore_RefusesAFolderThatIsNotEmpty(t *testing.T) {
	for _, name := range []string{"identity", "cosmos/store.db", "notes.txt"} {
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("kept"), 0o600))
		_, err := Restore(t.Context(), dir, bytes.NewReader(archive(t)), RestoreOptions{})
		require.ErrorContains(t, err, "it is not empty", name)
		require.Equal(t, map[string]string{name: "kept"}, filesOf(t, dir))
	}
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "lost+found"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600))
	_, err := Restore(t.Context(), dir, bytes.NewReader(archive(t)), RestoreOptions{})
	require.NoError(t, err, "a new disk, locked")
}

// A limitedDisk fails writes after this number of bytes, like a full disk.
type limitedDisk int

func (l *limitedDisk) write(f *os.File, p []byte) (int, error) {
	if len(p) <= int(*l) {
		*l -= limitedDisk(len(p))
		return f.Write(p)
	}
	n, _ := f.Write(p[:*l])
	*l = 0
	return n, syscall.ENOSPC
}

func TestRestore_OnAFullDiskLeavesTheFolderEmpty(t *testing.T) {
	whole, dir := archive(t), t.TempDir()
	total := 0
	for _, text := range sample {
		total += len(text)
	}
	for room := 0; room < total; room += max(total/80, 1) {
		disk := limitedDisk(room)
		_, err := Restore(t.Context(), dir, bytes.NewReader(whole), RestoreOptions{write: disk.write})
		require.ErrorIs(t, err, syscall.ENOSPC, "%d bytes", room)
		require.Empty(t, filesOf(t, dir))
	}
	_, err := Restore(t.Context(), dir, bytes.NewReader(whole), RestoreOptions{})
	require.NoError(t, err)
}

func TestRestore_BeginsAgainAfterAKill(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, draftFolder, filesFolder, "cosmos"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, draftFolder, filesFolder, "cosmos", "store.db"), []byte("half"), 0o600))
	require.ErrorIs(t, Finish(dir), ErrInterrupted, "no hub starts with it")
	_, err := Restore(t.Context(), dir, bytes.NewReader(archive(t)), RestoreOptions{})
	require.NoError(t, err)
	require.Equal(t, sample, filesOf(t, dir))
}

// createSealedFolder returns a data folder in which a restore was killed after
// the restored data had become visible. n entries are already in their places.
func createSealedFolder(t testing.TB, n int) string {
	t.Helper()
	dir := t.TempDir()
	_, err := Restore(t.Context(), dir, bytes.NewReader(archive(t)), RestoreOptions{})
	require.NoError(t, err)
	s, err := Verify(t.Context(), bytes.NewReader(archive(t)), nil)
	require.NoError(t, err)
	head := `{"format":1,"version":"v1","folder":"folder-1","began":"` + s.Began.Format(time.RFC3339) + `"}`
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, sealedFolder, filesFolder), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, sealedFolder, headMember), []byte(head), 0o600))
	for _, e := range entries[n:] {
		require.NoError(t, os.Rename(filepath.Join(dir, e.Name()), filepath.Join(dir, sealedFolder, filesFolder, e.Name())))
	}
	return dir
}

func TestFinish_CompletesWhatBecameVisible(t *testing.T) {
	for n := range 7 {
		dir := createSealedFolder(t, n)
		require.True(t, IsRestored(dir))
		require.NoError(t, Finish(dir))
		require.Equal(t, sample, filesOf(t, dir), n)
		require.False(t, IsRestored(dir))
		require.NoError(t, Finish(dir))
	}
	dir := createSealedFolder(t, 6)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, sealedFolder, filesFolder)), "killed while it removes the rest")
	require.NoError(t, Finish(dir))
	require.Equal(t, sample, filesOf(t, dir))
}

func TestRestore_CompletesARestoreOfTheSameArchive(t *testing.T) {
	dir := createSealedFolder(t, 2)
	s, err := Restore(t.Context(), dir, bytes.NewReader(archive(t)), RestoreOptions{})
	require.NoError(t, err)
	require.Equal(t, "folder-1", s.Folder)
	require.Equal(t, sample, filesOf(t, dir))

	dir = createSealedFolder(t, 2)
	other := source(t)
	other.Folder = "folder-2"
	var b bytes.Buffer
	require.NoError(t, Write(t.Context(), &b, other, nil))
	_, err = Restore(t.Context(), dir, bytes.NewReader(b.Bytes()), RestoreOptions{})
	require.ErrorContains(t, err, "it is not empty")
	require.Equal(t, sample, filesOf(t, dir), "the first one is complete")
}

// A failingWriter accepts room bytes; then every Write fails.
type failingWriter struct {
	to   io.Writer
	room int
}

func (w *failingWriter) Write(p []byte) (int, error) {
	if len(p) <= w.room {
		w.room -= len(p)
		return w.to.Write(p)
	}
	n, _ := w.to.Write(p[:w.room])
	w.room = 0
	return n, syscall.ENOSPC
}

func TestCreateFile_OnAFullDiskKeepsTheOldFile(t *testing.T) {
	whole, dir := archive(t), t.TempDir()
	file := filepath.Join(dir, "hub.backup")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o600))
	for room := 0; room < len(whole); room += max(len(whole)/80, 1) {
		err := CreateFile(file, func(w io.Writer) error {
			return Write(t.Context(), &failingWriter{w, room}, source(t), nil)
		})
		require.ErrorIs(t, err, syscall.ENOSPC, "%d bytes", room)
		require.ErrorContains(t, err, "the disk is full")
		require.Equal(t, map[string]string{"hub.backup": "old"}, filesOf(t, dir))
	}
	require.NoError(t, os.WriteFile(file+partSuffix, []byte("what a kill has left, and it is longer than what comes"), 0o644))
	require.NoError(t, CreateFile(file, func(w io.Writer) error { _, err := w.Write(whole); return err }))
	require.Equal(t, map[string]string{"hub.backup": string(whole)}, filesOf(t, dir))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
}

func TestCreateFile_ExplainsAFileThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	none := func(io.Writer) error { return nil }
	require.ErrorContains(t, CreateFile(dir, none), "is no file")
	require.ErrorContains(t, CreateFile(filepath.Join(dir, "missing", "x"), none), "its folder does not exist")
	inner := CreateFile(filepath.Join(dir, "x"), func(io.Writer) error {
		return CreateFile(filepath.Join(dir, "x"), none)
	})
	require.ErrorContains(t, inner, "another process writes this file")
}

func TestWrite_PausesDuringALargeFile(t *testing.T) {
	s := source(t)
	s.Rest = 1
	s.Files[1] = File{Name: "cosmos/store.db", Size: 64 << 20, From: readerSource{io.LimitReader(zeros{}, 64<<20)}}
	var b bytes.Buffer
	require.NoError(t, Write(t.Context(), &b, s, nil))
	_, err := Verify(t.Context(), &b, nil)
	require.NoError(t, err)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestWrite_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, Write(ctx, io.Discard, source(t), nil), context.Canceled)
	_, err := Verify(ctx, bytes.NewReader(archive(t)), nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestWrite_FailsIfAFileHasAnotherLength(t *testing.T) {
	for _, size := range []int64{3, 5} {
		s := &Source{Folder: "f", Files: []File{{Name: "identity", Size: size, From: strings.NewReader("text")}}}
		require.Error(t, Write(t.Context(), io.Discard, s, nil))
	}
}

func TestVerify_PassesOnErrorsOfTheReader(t *testing.T) {
	failure := errors.New("input/output error")
	whole := archive(t)
	for _, n := range []int{0, 10, len(whole) / 2, len(whole)} {
		_, err := Verify(t.Context(), io.MultiReader(bytes.NewReader(whole[:n]), failingReader{failure}), nil)
		require.ErrorIs(t, err, failure, n)
		require.NotErrorIs(t, err, ErrDamaged, n)
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }
