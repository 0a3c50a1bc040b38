//go:build unix

package node_test

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// readModes returns the permissions of each file and folder below dir, by path.
func readModes(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	all := make(map[string]fs.FileMode)
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		all[name] = info.Mode().Perm()
		return err
	}))
	return all
}

// storeEverything makes a node store every kind of data in its data folder.
func storeEverything(t *testing.T, cfg config.Config) {
	t.Helper()
	inline, err := domain.ParseOrigin("Charges")
	require.NoError(t, err)
	cfg.Domains = config.Domains{{Name: inline, Content: domain.Inline}}
	n, stop := start(t, cfg, node.Options{})
	status, body := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", strings.NewReplacer(`{"n":1}`, `"`+strings.Repeat("x", 300_000)+`"`, `"weight":1`, `"weight":300`).Replace(event))
	require.Equal(t, http.StatusAccepted, status, body)
	status, _ = call(t, http.MethodGet, n.URL()+"/v1/peek", "a", "")
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, stop())
}

func TestDataFolder_BelongsOnlyToItsUserWhateverTheUmask(t *testing.T) {
	for _, umask := range []int{0, 0o077} {
		t.Run(fmt.Sprintf("%04o", umask), func(t *testing.T) {
			before := syscall.Umask(umask)
			t.Cleanup(func() { syscall.Umask(before) })
			cfg := withoutToken(filepath.Join(t.TempDir(), "data"))
			storeEverything(t, cfg)
			all := readModes(t, cfg.Data)
			require.Contains(t, all, "exchange/messagehub-exchange/+")
			require.Greater(t, len(all), 12)
			for name, mode := range all {
				want := fs.FileMode(0o600)
				if info, err := os.Stat(filepath.Join(cfg.Data, name)); err == nil && info.IsDir() {
					want = 0o700
				}
				require.Equal(t, want, mode, name)
			}
		})
	}
}

func TestDataFolder_OfAnEarlierVersionIsClosedToOthers(t *testing.T) {
	cfg := withoutToken(filepath.Join(t.TempDir(), "data"))
	storeEverything(t, cfg)
	folders := []string{".", "content", "exchange", "exchange/messagehub-exchange", "cosmos", "bus"}
	for _, name := range folders {
		require.NoError(t, os.Chmod(filepath.Join(cfg.Data, name), 0o755))
	}
	var log safeBuffer
	_, stop := start(t, cfg, node.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	require.NoError(t, stop())
	all := readModes(t, cfg.Data)
	for _, name := range folders[1:] {
		require.Equal(t, fs.FileMode(0o700), all[name], name)
	}
	require.Equal(t, fs.FileMode(0o755), all["."], "it may hold more than the node knows")
	require.Contains(t, log.String(), `"msg":"other users may read or write the data folder; run chmod 700 on it","folder":"`+cfg.Data+`","mode":"0755"`)
	require.Equal(t, 1, strings.Count(log.String(), "other users may"))

	require.NoError(t, os.Chmod(cfg.Data, 0o700))
	var quiet safeBuffer
	_, stop = start(t, cfg, node.Options{Logger: slog.New(slog.NewJSONHandler(&quiet, nil))})
	require.NoError(t, stop())
	require.NotContains(t, quiet.String(), "other users may")
}

func TestDataFolder_FollowsNoLinkInIt(t *testing.T) {
	cfg := withoutToken(filepath.Join(t.TempDir(), "data"))
	storeEverything(t, cfg)
	for _, name := range []string{"lock", "cosmos", "cosmos/store.db", "bus", "bus/store.db", "content", "exchange", "exchange/+lock", "identity", "cosmos/+identity", "content/+identity", "exchange/messagehub-exchange/+"} {
		t.Run(name, func(t *testing.T) {
			inside, outside := filepath.Join(cfg.Data, name), filepath.Join(t.TempDir(), "outside")
			require.NoError(t, os.Rename(inside, outside))
			require.NoError(t, os.Symlink(outside, inside))
			before := readModes(t, outside)
			_, err := node.Open(t.Context(), cfg, node.Options{})
			require.Error(t, err)
			require.NotContains(t, err.Error(), "\n")
			require.Equal(t, before, readModes(t, outside))
			require.NoError(t, os.Remove(inside))
			require.NoError(t, os.Rename(outside, inside))
		})
	}
}

func TestDataFolder_MayItselfBeALink(t *testing.T) {
	real := t.TempDir()
	link := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Symlink(real, link))
	storeEverything(t, withoutToken(link))
	_, err := os.Stat(filepath.Join(real, "content"))
	require.NoError(t, err)
}

func TestDataFolder_OfContentIsReadThroughNoLink(t *testing.T) {
	cfg := withoutToken(filepath.Join(t.TempDir(), "data"))
	storeEverything(t, cfg)
	outside := filepath.Join(t.TempDir(), "outside")
	for name := range readModes(t, filepath.Join(cfg.Data, "content")) {
		file := filepath.Join(cfg.Data, "content", name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && !strings.Contains(name, "+") {
			require.NoError(t, os.Rename(file, outside))
			require.NoError(t, os.Symlink(outside, file))
		}
	}
	require.FileExists(t, outside)
	inline, err := domain.ParseOrigin("Charges")
	require.NoError(t, err)
	cfg.Domains = config.Domains{{Name: inline, Content: domain.Inline}}
	n, stop := start(t, cfg, node.Options{})
	status, body := call(t, http.MethodGet, n.URL()+"/v1/peek", "a", "")
	require.NotEqual(t, http.StatusOK, status, "a file of another place is not handed out")
	require.NotContains(t, body, "xxx")
	require.NoError(t, stop())
}
