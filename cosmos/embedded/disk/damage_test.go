package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A syncRecorder records the folders that are synced.
type syncRecorder struct {
	System
	synced []string
	fails  error
}

func (w *syncRecorder) SyncFolder(dir string) error {
	w.synced = append(w.synced, dir)
	return errors.Join(w.fails, w.System.SyncFolder(dir))
}

func TestOpen_SyncsTheFoldersOfANewStore(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a", "b")
	w := &syncRecorder{}
	s, err := OpenOn(dir, w)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Equal(t, []string{root, filepath.Join(root, "a"), dir}, w.synced, "each new name is in the folder before")

	s, err = OpenOn(dir, w)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Equal(t, dir, w.synced[len(w.synced)-1], "the start before may have ended too soon")

	_, err = OpenOn(dir, &syncRecorder{fails: errors.New("no sync")})
	require.ErrorContains(t, err, "no sync")
}

// TestOpen_IgnoresATornMetaPage writes an invalid root to the newer meta page. Only the checksum of the page reveals
// the damage.
func TestOpen_IgnoresATornMetaPage(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	require.NoError(t, err)
	require.NoError(t, s.Update(t.Context(), putPairs("a", "1")))
	before := readContents(t, s)
	require.NoError(t, s.Update(t.Context(), putPairs("a", "2")))
	require.NoError(t, s.Close())

	path := filepath.Join(dir, FileName)
	image, err := os.ReadFile(path)
	require.NoError(t, err)
	newest := image[headerBytes:]
	if other := image[os.Getpagesize()+headerBytes:]; binary.LittleEndian.Uint64(other[48:]) > binary.LittleEndian.Uint64(newest[48:]) {
		newest = other
	}
	binary.LittleEndian.PutUint64(newest[16:], 1<<40) // the root
	require.NoError(t, os.WriteFile(path, image, 0o600))

	s, err = Open(dir)
	require.NoError(t, err)
	require.Equal(t, before, readContents(t, s))
	require.NoError(t, s.Close())
}

// TestDamageOfAnOpenFile_IsAnErrorAndNoCrash overwrites or truncates the file while the store is open.
func TestDamageOfAnOpenFile_IsAnErrorAndNoCrash(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"overwritten": func(path string) error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt(bytes.Repeat([]byte{0xaa}, 1<<20), int64(2*os.Getpagesize()))
			return errors.Join(err, f.Close())
		},
		"cut off": func(path string) error { return os.Truncate(path, int64(2*os.Getpagesize())) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(dir)
			require.NoError(t, err)
			for i := range 100 {
				require.NoError(t, s.Update(t.Context(), putPairs(fmt.Sprint(i), string(make([]byte, 1000)))))
			}
			require.NoError(t, damage(filepath.Join(dir, FileName)))
			require.ErrorIs(t, s.View(func(r Reader) error { r.Get([]byte("7")); return nil }), ErrDamaged)
			require.ErrorIs(t, s.Update(t.Context(), func(tx Tx) error { tx.Get([]byte("7")); return nil }), ErrDamaged)
			require.ErrorIs(t, s.Update(t.Context(), putPairs("7", "new")), ErrDamaged)
			require.ErrorIs(t, s.Update(t.Context(), putPairs("8", "new")), ErrBroken)
			_ = s.Close() // Close may return an error, but must return
		})
	}
}

// TestOpen_FindsDamagedPages damages pages that have no checksum.
func TestOpen_FindsDamagedPages(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	require.NoError(t, err)
	require.NoError(t, s.Update(t.Context(), func(tx Tx) error {
		for i := range 100 {
			tx.Put(fmt.Appendf(nil, "key%03d", i), make([]byte, 500))
		}
		return nil
	}))
	require.NoError(t, s.Close())
	image, err := os.ReadFile(filepath.Join(dir, FileName))
	require.NoError(t, err)
	size := os.Getpagesize()
	flags := func(page []byte) uint16 { return binary.LittleEndian.Uint16(page[8:]) }
	eachPage := func(image []byte, kind uint16, change func(page, behind []byte)) {
		for at := 2 * size; at+2*size <= len(image); at += size {
			if page := image[at : at+size]; flags(page) == kind {
				change(page, image[at+size:])
			}
		}
	}
	for says, damage := range map[string]func(image []byte) []byte{
		"out of order": func(image []byte) []byte { return bytes.ReplaceAll(image, []byte("key050"), []byte("kez050")) },
		"used twice": func(image []byte) []byte {
			eachPage(image, leafFlag, func(page, behind []byte) {
				if flags(behind) == leafFlag {
					page[12]++ // its overflow
				}
			})
			return image
		},
		"another id": func(image []byte) []byte {
			eachPage(image, leafFlag, func(page, _ []byte) { page[0] ^= 1 })
			return image
		},
		"is not one of": func(image []byte) []byte {
			eachPage(image, branchFlag, func(page, _ []byte) { page[headerBytes+8+7]++ }) // change the first child of each branch page
			return image
		},
		"beyond the page": func(image []byte) []byte {
			eachPage(image, leafFlag, func(page, _ []byte) { page[headerBytes+11]++ }) // change the length of the first key of each leaf page
			return image
		},
	} {
		t.Run(says, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, FileName), damage(bytes.Clone(image)), 0o600))
			_, err := Open(dir)
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, says)
		})
	}
}

// A damaged page makes bbolt panic when an update reads the page. Only this update must fail.
func TestUpdate_ReportsAPanicOfItsReadsAsDamage(t *testing.T) {
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	require.ErrorIs(t, s.Update(t.Context(), func(Tx) error { panic("page 7: invalid") }), ErrDamaged)
	require.NoError(t, s.Update(t.Context(), putPairs("a", "1")))
	require.NoError(t, s.Close())
}
