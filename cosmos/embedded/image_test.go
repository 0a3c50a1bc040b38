package embedded_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// The possible contents of a disk after a power failure follow from two states of the file, because bbolt commits in a
// fixed order: it writes unreferenced pages, syncs, writes one of the two meta pages, and syncs again. The engine
// responds only after the second sync. The test therefore compares the file after each response with the file after the
// previous response. Data pages are written before the first sync, so the disk may contain any of the changed ones. The
// meta page is written after the first sync.

const (
	pageSize = 4096
	metas    = 2
	metaEnd  = 80 // length of a page header plus a meta with its checksum
)

// A storeCommit contains the file before and after one request.
type storeCommit struct {
	before, after []byte
	pages         []int // data pages that the commit has changed
	meta          int   // meta page that the commit has changed
}

func commitBetween(t *testing.T, before, after []byte) storeCommit {
	t.Helper()
	c := storeCommit{before: before, after: after, meta: -1}
	for page := 0; page*pageSize < len(after); page++ {
		from, to := page*pageSize, (page+1)*pageSize
		if to <= len(before) && bytes.Equal(before[from:to], after[from:to]) {
			continue
		}
		if page >= metas {
			c.pages = append(c.pages, page)
			continue
		}
		require.Equal(t, -1, c.meta, "a commit writes one meta")
		c.meta = page
	}
	require.NotEqual(t, -1, c.meta)
	return c
}

// crashImage returns one possible content of the disk after a power failure during the commit. happened reports whether
// the content includes the commit.
func (c storeCommit) crashImage(random *rand.Rand) (image []byte, happened bool) {
	if random.IntN(3) == 0 { // the power fails after the first or the second sync
		image = slices.Clone(c.after)
		from := c.meta * pageSize
		switch random.IntN(3) {
		case 0: // the meta page is not written
			copy(image[from:from+pageSize], c.before[from:])
			return image, false
		case 1: // the meta page is torn: only a part of it is written
			part := random.IntN(metaEnd)
			n := part + random.IntN(metaEnd-part)
			copy(image[from+part:from+n], c.before[from+part:])
			return image, bytes.Equal(image[from:from+pageSize], c.after[from:from+pageSize])
		}
		return image, true
	}
	image = slices.Clone(c.before)
	if len(c.after) > len(image) { // pages that were never written are empty
		image = append(image, make([]byte, len(c.after)-len(image))...)
	}
	for _, page := range c.pages {
		from := page * pageSize
		if random.IntN(2) == 0 {
			continue // this page did not reach the disk
		}
		n := pageSize
		if random.IntN(4) == 0 {
			n = 512 * random.IntN(pageSize/512) // the page is torn between two sectors
		}
		copy(image[from:from+n], c.after[from:from+n])
	}
	return image, false
}

// imageCount returns the number of crash images to test. With the race detector it is small, because a single goroutine
// cannot have a race.
func imageCount(t *testing.T) int {
	t.Helper()
	text := os.Getenv("EMBEDDED_CRASH_IMAGES")
	if raced {
		return 40
	}
	if text == "" {
		return 240
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// readAccount returns all documents of the account, by id.
func readAccount(t testing.TB, c *azcosmos.ContainerClient) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, page := range queryAll(t, c, azcosmos.NewPartitionKey(), "SELECT * FROM c", nil) {
		for _, item := range page {
			found[idOf(t, []byte(item))] = item
		}
	}
	return found
}

func TestNoCrash_LosesAConfirmedWriteOrShowsAPartOfOne(t *testing.T) {
	want := imageCount(t)
	random := rand.New(rand.NewPCG(uint64(want), 7))
	dir := t.TempDir()
	file := filepath.Join(dir, disk.FileName)
	engine, c := openEngine(t, embedded.Options{Dir: dir}, uniqueMail, withTTL(-1))
	read := func() []byte { return readImage(t, file) }
	image, state := read(), readAccount(t, c)
	for seen := 0; seen < want; {
		answered := writeRandom(t, c, random)
		after, now := read(), readAccount(t, c)
		if !answered { // a refused request must change nothing
			require.Equal(t, state, now)
			image = after
			continue
		}
		step := commitBetween(t, image, after)
		for range 8 {
			crashed, happened := step.crashImage(random)
			expected := state
			if happened {
				expected = now
			}
			checkImage(t, crashed, expected)
			seen++
		}
		image, state = after, now
	}
	census, err := engine.Check(func(problem string) { t.Error(problem) })
	require.NoError(t, err)
	require.Equal(t, len(state), census.Documents)
}

// writeRandom sends a random request, and reports whether the request changed something.
func writeRandom(t *testing.T, c *azcosmos.ContainerClient, random *rand.Rand) bool {
	t.Helper()
	body := func(id int) []byte {
		return fmt.Appendf(nil, `{"id":"%d","pk":"p","mail":"%d","name":{"first":"%d"},"data":"%0*d"}`,
			id, random.IntN(1000), random.IntN(1000), 1+random.IntN(3)*4000, 1)
	}
	batch := c.NewTransactionalBatch(pk)
	for range 1 + random.IntN(6) {
		if id := random.IntN(30); random.IntN(4) == 0 {
			batch.DeleteItem(strconv.Itoa(id), nil)
		} else {
			batch.UpsertItem(body(id), nil)
		}
	}
	answer, err := c.ExecuteTransactionalBatch(t.Context(), batch, nil)
	require.NoError(t, err)
	return answer.Success
}

// checkImage opens an image, and fails the test unless its documents equal want.
func checkImage(t *testing.T, image []byte, want map[string]string) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "")
	require.NoError(t, err)
	writeImage(t, dir, image)
	engine, err := embedded.Open(embedded.Options{Dir: dir})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, engine.Close())
		require.NoError(t, os.RemoveAll(dir))
	}()
	account := newClient(t, engine)
	c, err := account.NewContainer("db", "c")
	require.NoError(t, err)
	require.Equal(t, want, readAccount(t, c))
	_, err = engine.Check(func(problem string) { t.Error(problem) })
	require.NoError(t, err)
}

// fileSize is the size of the files in the test. It exceeds the size of a small store, because bbolt grows a file by 16
// MB at a time and accepts a larger file.
const fileSize = 32 << 20

// readImage reads a store up to its last nonempty page, because most pages of a new file are empty.
func readImage(t *testing.T, file string) []byte {
	t.Helper()
	image, err := os.ReadFile(file)
	require.NoError(t, err)
	require.LessOrEqual(t, len(image), fileSize, "the test has to stay small")
	return slices.Clone(image[:usedLength(image)])
}

func writeImage(t *testing.T, dir string, image []byte) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, disk.FileName))
	require.NoError(t, err)
	_, err = f.Write(image)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(fileSize))
	require.NoError(t, f.Close())
}

// usedLength returns the length of the image up to its last nonempty page.
func usedLength(image []byte) int {
	empty := make([]byte, pageSize)
	n := len(image)
	for n >= pageSize && bytes.Equal(image[n-pageSize:n], empty) {
		n -= pageSize
	}
	return n
}
