package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

const childFolder = "EMBEDDED_TEST_CHILD_FOLDER"

func TestConfirmedWrites_SurviveReopening(t *testing.T) {
	dir := t.TempDir()
	first, err := embedded.Open(embedded.Options{Dir: dir})
	require.NoError(t, err)
	c := newContainer(t, first)
	createDocs(t, c, newDoc("a", 1), largeDoc("b", 2, "p"))
	before, err := c.ReadItem(t.Context(), pk, "a", nil)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.NoError(t, first.Close(), "closing twice does no harm")
	_, err = c.ReadItem(t.Context(), pk, "a", nil)
	require.ErrorIs(t, err, embedded.ErrClosed)

	second, err := embedded.Open(embedded.Options{Dir: dir})
	require.NoError(t, err)
	defer func() { require.NoError(t, second.Close()) }()
	c, err = newClient(t, second).NewContainer("db", "c")
	require.NoError(t, err)
	after, err := c.ReadItem(t.Context(), pk, "a", nil)
	require.NoError(t, err)
	require.Equal(t, string(before.Value), string(after.Value))
	require.Equal(t, [][]string{{`"a"`, `"b"`}}, queryAll(t, c, pk, "SELECT VALUE c.id FROM c", nil))

	changed, err := c.ReplaceItem(t.Context(), pk, "a", newDoc("a", 2), &azcosmos.ItemOptions{IfMatchEtag: &before.ETag})
	require.NoError(t, err)
	require.NotEqual(t, before.ETag, changed.ETag, "an etag is never used again")
}

// writeUntilKilled writes batches of three documents from four goroutines, and prints the number of each acknowledged
// batch. All documents of a batch contain its number.
func writeUntilKilled(dir string) {
	engine, err := embedded.Open(embedded.Options{Dir: dir})
	panicOn(err)
	cred, err := azcosmos.NewKeyCredential(engine.Key())
	panicOn(err)
	client, err := azcosmos.NewClientWithKey(engine.Endpoint(), cred,
		&azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: engine.Transport()}})
	panicOn(err)
	c, err := client.NewContainer("db", "c")
	panicOn(err)
	var printing sync.Mutex
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := 0; ; n++ {
				batch := c.NewTransactionalBatch(pk)
				for part := range 3 {
					batch.UpsertItem(fmt.Appendf(nil, `{"id":"%d-%d-%d","pk":"p","data":%q}`, w, n, part, strings.Repeat("x", part*6000)), nil)
				}
				batch.UpsertItem(fmt.Appendf(nil, `{"id":"newest-%d","pk":"p","n":%d}`, w, n), nil)
				answer, err := c.ExecuteTransactionalBatch(context.Background(), batch, nil)
				panicOn(err)
				if !answer.Success {
					panicOn(errors.New("batch failed"))
				}
				printing.Lock()
				fmt.Println(w, n)
				printing.Unlock()
			}
		})
	}
	writers.Wait()
}

func panicOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestConfirmedWrites_SurviveAKill(t *testing.T) {
	dir := t.TempDir()
	engine, err := embedded.Open(embedded.Options{Dir: dir})
	require.NoError(t, err)
	newContainer(t, engine)
	require.NoError(t, engine.Close())

	for round := range 3 {
		acknowledged := killWhileWriting(t, dir, 60+50*round)
		engine, err := embedded.Open(embedded.Options{Dir: dir})
		require.NoError(t, err)
		c, err := newClient(t, engine).NewContainer("db", "c")
		require.NoError(t, err)
		for w := range 4 {
			newest := checkWriter(t, c, w)
			require.GreaterOrEqual(t, newest, acknowledged[w], "writer %d: an acknowledged batch is missing", w)
		}
		require.NoError(t, engine.Close())
	}
}

// killWhileWriting runs the child process until it has acknowledged n batches, then kills it. It returns the last
// acknowledged number of each writer.
func killWhileWriting(t *testing.T, dir string, n int) map[int]int {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childFolder+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	acknowledged := map[int]int{}
	lines := bufio.NewScanner(out)
	for count := 0; lines.Scan(); count++ {
		if count == n {
			require.NoError(t, child.Process.Signal(syscall.SIGKILL))
		}
		w, number, ok := strings.Cut(lines.Text(), " ")
		writer, err := strconv.Atoi(w)
		newest, err2 := strconv.Atoi(number)
		if !ok || err != nil || err2 != nil {
			break // the last line is incomplete, because the child was killed while printing
		}
		acknowledged[writer] = newest
	}
	require.Error(t, child.Wait(), "the child must have been killed")
	return acknowledged
}

// checkWriter checks that the newest batch of a writer is complete, and returns the number of that batch.
func checkWriter(t *testing.T, c *azcosmos.ContainerClient, w int) int {
	t.Helper()
	read, err := c.ReadItem(t.Context(), pk, fmt.Sprintf("newest-%d", w), nil)
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(read.Value), `"n":`)
	require.True(t, ok)
	number, _, _ := strings.Cut(after, ",")
	newest, err := strconv.Atoi(number)
	require.NoError(t, err)
	for part := range 3 {
		_, err := c.ReadItem(t.Context(), pk, fmt.Sprintf("%d-%d-%d", w, newest, part), nil)
		require.NoError(t, err)
	}
	return newest
}

func TestOpen_ReportsWhyItFails(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(t *testing.T, dir string)
		want    error
		says    string
	}{
		"another engine has the folder": {
			func(t *testing.T, dir string) { openEngine(t, embedded.Options{Dir: dir}) },
			disk.ErrLocked, "in use by another process",
		},
		"the path is a file": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(dir))
			require.NoError(t, os.WriteFile(dir, nil, 0o600))
		}, disk.ErrNotFolder, "not a folder"},
		"the file is something else": {func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, disk.FileName), []byte(strings.Repeat("not a store ", 5000)), 0o600))
		}, disk.ErrDamaged, "restore the whole folder from a backup"},
		"the file is cut off": {func(t *testing.T, dir string) {
			fillFolder(t, dir)
			require.NoError(t, os.Truncate(filepath.Join(dir, disk.FileName), 64<<10))
		}, disk.ErrDamaged, "only 65536 of"},
		"the file is nearly empty": {func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, disk.FileName), []byte("x"), 0o600))
		}, disk.ErrDamaged, "damaged"},
		"its pages are overwritten": {func(t *testing.T, dir string) {
			fillFolder(t, dir)
			path := filepath.Join(dir, disk.FileName)
			all, err := os.ReadFile(path)
			require.NoError(t, err)
			for i := 16 << 10; i < len(all); i++ {
				all[i] = 0xAA
			}
			require.NoError(t, os.WriteFile(path, all, 0o600))
		}, disk.ErrDamaged, "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			require.NoError(t, os.Mkdir(dir, 0o700))
			tc.prepare(t, dir)
			_, err := embedded.Open(embedded.Options{Dir: dir})
			require.ErrorIs(t, err, tc.want)
			require.ErrorContains(t, err, tc.says)
			require.ErrorContains(t, err, dir)
		})
	}
}

func fillFolder(t *testing.T, dir string) {
	t.Helper()
	engine, err := embedded.Open(embedded.Options{Dir: dir})
	require.NoError(t, err)
	c := newContainer(t, engine)
	for i := range 20 {
		createDocs(t, c, largeDoc(strconv.Itoa(i), i, "p"))
	}
	require.NoError(t, engine.Close())
}

func TestOpen_ReportsAFolderWithoutWritePermission(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500))
	opened := make(chan error)
	go func() {
		// Permissions do not restrict root, so this OS thread drops the capability that bypasses permissions. The
		// thread is locked to the goroutine and ends with it.
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			if err := errors.Join(os.Chmod(dir, 0o555), syscall.Setfsuid(65534)); err != nil {
				opened <- err
				return
			}
		}
		_, err := disk.Open(dir)
		opened <- err
	}()
	err := <-opened
	require.ErrorIs(t, err, disk.ErrReadOnly)
	require.ErrorContains(t, err, "permissions")
}
