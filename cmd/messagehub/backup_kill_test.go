package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// TestBackupAndRestore_LeaveNoPartialDataWhenKilled kills backups and restores
// at random times. MESSAGEHUB_BACKUP_KILLS sets the number of kills, as `make
// backup-kills` does. MESSAGEHUB_BACKUP_SEED repeats the same times.
func TestBackupAndRestore_LeaveNoPartialDataWhenKilled(t *testing.T) {
	kills, seed := number(t, "MESSAGEHUB_BACKUP_KILLS", 4), uint64(number(t, "MESSAGEHUB_BACKUP_SEED", time.Now().UnixNano()))
	k := &backupKills{t: t, random: rand.New(rand.NewPCG(seed, 1)), folder: t.TempDir(), data: dataFolder(t)}
	h, hub := startBackedUp(t, k.data)
	for i := range 20 {
		_, err := hub.SendEvents(t.Context(), payloadEvents(1+i*500, 500, 5))
		require.NoError(t, err)
	}
	k.url = h.url(t)
	old := filepath.Join(k.folder, "old.backup")
	k.backupSpan = k.timed("backup", "--url", k.url, old)
	k.restoreSpan = k.timed("restore", old, "--data", filepath.Join(k.folder, "first"))
	for i := range int(kills) {
		if i%3 == 0 {
			k.killBackup(i)
		} else {
			k.killRestore(i, old)
		}
	}
	require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())
	t.Logf("seed %d: %d kills, of which %d left a whole file or folder; a backup takes %s, a restore %s", seed, kills, k.whole, k.backupSpan, k.restoreSpan)
}

type backupKills struct {
	t                       *testing.T
	random                  *rand.Rand
	folder, data, url       string
	backupSpan, restoreSpan time.Duration
	whole                   int
}

// timed runs a command until it ends, and returns how long it took.
func (k *backupKills) timed(args ...string) time.Duration {
	k.t.Helper()
	began := time.Now()
	out, err := backupCommandOf(k.t, args...).CombinedOutput()
	require.NoError(k.t, err, "%s", out)
	return time.Since(began)
}

// backupCommandOf returns a command that runs this program in a separate
// process.
func backupCommandOf(t testing.TB, args ...string) *exec.Cmd {
	cmd := exec.Command(program(t), args...)
	cmd.Env = append(cleanEnviron(), tokenVariable+"="+operatorToken)
	return cmd
}

// kill starts a command, and kills it at a random time within span or slightly
// later.
func (k *backupKills) kill(span time.Duration, args ...string) {
	k.t.Helper()
	cmd := backupCommandOf(k.t, args...)
	require.NoError(k.t, cmd.Start())
	_ = clock.Sleep(k.t.Context(), time.Duration(k.random.Int64N(int64(span)*11/10)))
	_ = cmd.Process.Kill() // fails only if the command has already ended
	_ = cmd.Wait()
}

// killBackup kills a backup whose file already exists.
func (k *backupKills) killBackup(n int) {
	file := filepath.Join(k.folder, fmt.Sprint(n, ".backup"))
	const before = "the old file"
	require.NoError(k.t, os.WriteFile(file, []byte(before), 0o600))
	k.kill(k.backupSpan, "backup", "--url", k.url, file)
	text, err := os.ReadFile(file)
	require.NoError(k.t, err)
	if string(text) != before {
		k.whole++
		got := messagehub(k.t, "", "restore", "--list", file)
		require.Equal(k.t, 0, got.status, got.err)
	}
	// The hub must notice that its client has disconnected, so that another
	// backup succeeds.
	require.Eventually(k.t, func() bool {
		return !strings.Contains(messagehub(k.t, "", "backup", "--url", k.url, file).err, "A backup already runs")
	}, patience, 10*time.Millisecond)
	got := messagehub(k.t, "", "restore", "--list", file)
	require.Equal(k.t, 0, got.status, got.err)
	require.NoFileExists(k.t, file+".part")
	require.NoError(k.t, os.Remove(file))
}

// killRestore kills a restore, and then repeats it.
func (k *backupKills) killRestore(n int, file string) {
	folder := filepath.Join(k.folder, fmt.Sprint("restored-", n))
	k.kill(k.restoreSpan, "restore", file, "--data", folder)
	check := func() result { return messagehub(k.t, "", "check", "--data", folder) }
	wants := func(got result) {
		k.t.Helper()
		require.Equal(k.t, 0, got.status, "%s%s", got.out, got.err)
		require.True(k.t, strings.HasPrefix(got.out, "check: clean\n") && strings.Contains(got.out, "10,000 events"), got.out)
	}
	if got := check(); got.status == 0 {
		k.whole++
		wants(got) // the restored folder must contain every event
		again := messagehub(k.t, "", "restore", file, "--data", folder)
		require.Contains(k.t, again.err, "it is not empty")
	} else {
		require.Contains(k.t, got.err, "no hub has kept anything there")
		again := messagehub(k.t, "", "restore", file, "--data", folder)
		require.Equal(k.t, 0, again.status, again.err)
		wants(check())
	}
	require.NoError(k.t, os.RemoveAll(folder))
}
