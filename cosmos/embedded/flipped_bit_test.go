package embedded_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// TestFlippedBit_IsNeverReturned flips each bit of a store. For each bit, the store must fail to open, Check must
// report damage, or the bit is unused. No read may return a changed document.
func TestFlippedBit_IsNeverReturned(t *testing.T) {
	dir := t.TempDir()
	engine, err := embedded.Open(embedded.Options{Dir: dir})
	require.NoError(t, err)
	c := newContainer(t, engine, uniqueMail)
	for i := range 40 {
		createDocs(t, c, fmt.Appendf(nil, `{"id":"%d","pk":"p","mail":"%d","name":{"first":"%d"},"data":"%0*d"}`, i, i, i, 200+i%4*2000, 1))
	}
	want := readAccount(t, c)
	require.NoError(t, engine.Close())
	image := readImage(t, filepath.Join(dir, disk.FileName))
	random := rand.New(rand.NewPCG(11, 3))
	refused, found, harmless := 0, 0, 0
	for range 120 {
		damaged := slices.Clone(image)
		bit := random.IntN(8 * len(image))
		damaged[bit/8] ^= 1 << (bit % 8)
		switch openAndCheck(t, damaged, want) {
		case "refused":
			refused++
		case "found":
			found++
		default:
			harmless++
		}
	}
	t.Logf("of 120 flipped bits %d made the file unreadable, %d were found by the check, %d lay in unused room", refused, found, harmless)
	require.Positive(t, found)
}

func openAndCheck(t *testing.T, image []byte, want map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	writeImage(t, dir, image)
	engine, err := embedded.Open(embedded.Options{Dir: dir})
	if err != nil {
		require.True(t, errors.Is(err, disk.ErrDamaged) || errors.Is(err, disk.ErrFormat), "%v", err)
		return "refused"
	}
	defer func() { _ = engine.Close() }() // Close may fail on damaged pages
	c, err := newClient(t, engine).NewContainer("db", "c")
	require.NoError(t, err)
	intact := true
	for id, doc := range want {
		read, err := c.ReadItem(t.Context(), pk, id, nil)
		if err != nil {
			intact = false
			continue
		}
		require.Equal(t, doc, string(read.Value), "a damaged document was answered")
	}
	problems := 0
	if _, err = engine.Check(func(string) { problems++ }); err != nil {
		require.ErrorIs(t, err, disk.ErrDamaged)
		problems++
	}
	if problems > 0 {
		return "found"
	}
	require.True(t, intact, "something is damaged, and the check does not say so")
	return "harmless"
}

// visitRow calls visit for every page that contains a document's row of one kind, even if the page is unused.
func visitRow(t *testing.T, image []byte, kind byte, end string, visit func(value []byte)) {
	t.Helper()
	found := 0
	key := append([]byte{0, 5}, `["p"]`+end...) // the key without its kind and the number of the container
	for i := 5; i < len(image)-len(key); i++ {
		if image[i-5] == kind && bytes.HasPrefix(image[i:], key) {
			visit(image[i+len(key):])
			found++
		}
	}
	require.Positive(t, found)
}

// TestFlippedBit_InAnIndexNeverChangesAResponse flips bits in the index entries and the record of a document. No read
// may return a different document, or 404.
func TestFlippedBit_InAnIndexNeverChangesAResponse(t *testing.T) {
	dir := t.TempDir()
	engine, err := embedded.Open(embedded.Options{Dir: dir})
	require.NoError(t, err)
	c := newContainer(t, engine, withTTL(1000))
	for i := range 8 {
		createDocs(t, c, fmt.Appendf(nil, `{"id":"doc%d","pk":"p"}`, i))
	}
	require.NoError(t, engine.Close())
	image := readImage(t, filepath.Join(dir, disk.FileName))
	damages := map[string]func(image []byte, bit int){
		"id index": func(image []byte, bit int) {
			visitRow(t, image, 'I', "doc3", func(seq []byte) { seq[bit/8] ^= 1 << (bit % 8) })
		},
		"header": func(image []byte, bit int) {
			visitRow(t, image, 'D', "\x00\x00\x00\x00\x00\x00\x00", func(rest []byte) {
				if header := rest[1:]; bytes.Contains(header[:80], []byte(`"doc3"`)) {
					bit := 4*bit + bit%4 // only every fourth bit is flipped, because these entries are long
					header[bit/8] ^= 1 << (bit % 8)
				}
			})
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			for bit := range 64 {
				damaged := slices.Clone(image)
				damage(damaged, bit)
				dir := t.TempDir()
				writeImage(t, dir, damaged)
				engine, err := embedded.Open(embedded.Options{Dir: dir})
				require.NoError(t, err)
				c, err := newClient(t, engine).NewContainer("db", "c")
				require.NoError(t, err)
				_, err = c.ReadItem(t.Context(), pk, "doc3", nil)
				require.Equal(t, 500, clientStatus(t, nil, err), "bit %d: %v", bit, err)
				_, err = c.ReplaceItem(t.Context(), pk, "doc3", []byte(`{"id":"doc3","pk":"p","new":1}`), nil)
				require.Equal(t, 500, clientStatus(t, nil, err), "bit %d: %v", bit, err)
				problems := 0
				_, err = engine.Check(func(string) { problems++ })
				require.NoError(t, err)
				require.Positive(t, problems, "bit %d", bit)
				require.NoError(t, engine.Close())
			}
		})
	}
}

func TestDamagedDocument_IsNamedAndCanBeDeleted(t *testing.T) {
	dir := t.TempDir()
	engine, err := embedded.Open(embedded.Options{Dir: dir})
	require.NoError(t, err)
	c := newContainer(t, engine, uniqueMail)
	createDocs(t, c, []byte(`{"id":"a","pk":"p","mail":"m","secret":"before it was damaged"}`))
	require.NoError(t, engine.Close())
	path := filepath.Join(dir, disk.FileName)
	image, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(image, []byte("before it"), []byte("after  it")), 0o600))

	engine, err = embedded.Open(embedded.Options{Dir: dir})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	c, err = newClient(t, engine).NewContainer("db", "c")
	require.NoError(t, err)
	_, err = c.ReadItem(t.Context(), pk, "a", nil)
	require.Equal(t, 500, clientStatus(t, nil, err))
	for _, says := range []string{`database \"db\"`, `container \"c\"`, `partition [\"p\"]`, "restore the whole folder from a backup"} {
		require.ErrorContains(t, err, says)
	}
	_, err = c.NewQueryItemsPager("SELECT * FROM c", pk, nil).NextPage(t.Context())
	require.Equal(t, 500, clientStatus(t, nil, err))
	var problems []string
	census, err := engine.Check(func(problem string) { problems = append(problems, problem) })
	require.NoError(t, err)
	require.Len(t, problems, 1)
	require.Equal(t, 1, census.Documents)
	_, err = c.DeleteItem(t.Context(), pk, "a", nil)
	require.NoError(t, err)
	createDocs(t, c, []byte(`{"id":"b","pk":"p","mail":"m"}`))
	census, err = engine.Check(func(problem string) { t.Error(problem) })
	require.NoError(t, err)
	require.Equal(t, 1, census.Documents)
}
