package content_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/content"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestDir_PassesTheSuiteOfContent(t *testing.T) {
	repositorytest.RunContent(t, func(t *testing.T) repository.Content { return openDir(t, t.TempDir()) })
}

func openDir(t *testing.T, dir string) *content.Dir {
	t.Helper()
	d, err := content.OpenDir(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestDir_KeepsItsObjectsWhenItIsReopened(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "if", "need", "be")
	first := openDir(t, dir)
	require.NoError(t, first.Put(t.Context(), "a/b", strings.NewReader("data")))
	require.NoError(t, first.Close())

	second := openDir(t, dir)
	require.Equal(t, domain.Conflict, domain.KindOf(second.Put(t.Context(), "a/b", strings.NewReader("other"))))
	r, err := second.Open(t.Context(), repository.Section{Object: "a/b", Offset: 1, Length: 2})
	require.NoError(t, err)
	data := make([]byte, 2)
	_, err = r.Read(data)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, "at", string(data))
}

func TestOpenDir_RemovesUnfinishedFilesOfACrash(t *testing.T) {
	dir := t.TempDir()
	d := openDir(t, dir)
	require.NoError(t, d.Put(t.Context(), "a/b", strings.NewReader("data")))
	leftover := filepath.Join(dir, "+unfinished", "leftover")
	require.NoError(t, os.WriteFile(leftover, []byte("half"), 0o600))
	require.NoError(t, os.Link(filepath.Join(dir, "a", "b="), filepath.Join(dir, "+unfinished", "put-but-not-removed")))

	again := openDir(t, dir)
	require.Equal(t, []string{filepath.Join("a", "b=")}, files(t, dir))
	_, err := again.Open(t.Context(), repository.Section{Object: "a/b", Length: 4})
	require.NoError(t, err)
}

func TestPut_LeavesOnlyTheFileOfTheObject(t *testing.T) {
	dir := t.TempDir()
	d := openDir(t, dir)
	require.NoError(t, d.Put(t.Context(), "a", strings.NewReader("data")))
	require.Error(t, d.Put(t.Context(), "a", strings.NewReader("other")))
	require.Error(t, d.Put(t.Context(), "b", failingReader{}))
	require.Equal(t, []string{"a="}, files(t, dir))
}

func TestOpenDir_RefusesAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		_, err := content.OpenDir(dir)
		require.Equal(t, domain.Invalid, domain.KindOf(err))
		require.ErrorContains(t, err, dir)
		require.ErrorContains(t, err, "not a folder")
	}
}

func TestDir_FollowsNoLinkOutOfItsFolder(t *testing.T) {
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret="), []byte("secret"), 0o600))
	dir := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link")))
	d := openDir(t, dir)
	_, err := d.Open(t.Context(), repository.Section{Object: "link/secret", Length: 6})
	require.Error(t, err)
	require.Error(t, d.Put(t.Context(), "link/new", strings.NewReader("x")))
	require.Error(t, d.Delete(t.Context(), "link/secret"))
	require.Equal(t, []string{"secret="}, files(t, outside))
}

// files returns the files below dir.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			found = append(found, path)
		}
		return err
	}))
	return found
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestOpenDir_RefusesANewerFormatAndChangesNothing(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "+unfinished"), 0o700))
	for name, text := range map[string]string{"+unfinished/draft": "a", "+format": "2\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	before := files(t, dir)
	_, err := content.OpenDir(dir)
	require.Equal(t, domain.NewerFormat, domain.KindOf(err))
	require.ErrorContains(t, err, "use the version that wrote it")
	require.Equal(t, before, files(t, dir))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "+format"), []byte("1\n"), 0o600))
	d, err := content.OpenDir(dir)
	require.NoError(t, err)
	require.NoError(t, d.Close())
}
