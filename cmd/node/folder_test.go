package node_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain/hub"
)

// startOnce opens a node whose data is in folder, closes it, and returns its
// log.
func startOnce(t *testing.T, folder string) (string, error) {
	t.Helper()
	cfg := config.Default()
	cfg.Data, cfg.Listen, cfg.BusListen, cfg.BlobListen = folder, "127.0.0.1:0", "", ""
	var log bytes.Buffer
	n, err := node.Open(t.Context(), cfg, node.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err == nil {
		require.NoError(t, n.Close())
	}
	return log.String(), err
}

type identity struct {
	Format   int
	ID       string
	Stores   []string
	Adopting []string
}

func readIdentity(t *testing.T, folder string) (i identity) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "identity"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &i))
	return i
}

var allStores = []string{"bus", "content", "cosmos", "exchange"}

func TestDataFolder_IsDescribedInTheLogOfEachStart(t *testing.T) {
	folder := t.TempDir()
	log, err := startOnce(t, folder)
	require.NoError(t, err)
	require.Contains(t, log, "state=new")
	first := readIdentity(t, folder)
	require.Equal(t, 1, first.Format)
	require.Equal(t, allStores, first.Stores)
	log, err = startOnce(t, folder)
	require.NoError(t, err)
	require.Contains(t, log, "folder="+folder+" id="+first.ID)
	require.Contains(t, log, `state="in use since `)
	require.Contains(t, log, "stores=bus,content,cosmos,exchange")
	require.Equal(t, first, readIdentity(t, folder))
}

// forgetIdentity removes the identity from a folder and its stores. The folder
// is then as an early version created it.
func forgetIdentity(t *testing.T, folder string) {
	t.Helper()
	require.NoError(t, os.Remove(filepath.Join(folder, "identity")))
	for _, store := range allStores {
		require.NoError(t, os.Remove(filepath.Join(folder, store, "+identity")))
	}
	for _, store := range []string{"cosmos", "bus"} {
		db, err := bbolt.Open(filepath.Join(folder, store, "store.db"), 0o600, nil)
		require.NoError(t, err)
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("identity")) }))
		require.NoError(t, db.Close())
	}
}

func TestDataFolder_IsAdoptedOnceFromAnEarlierVersion(t *testing.T) {
	folder := t.TempDir()
	_, err := startOnce(t, folder)
	require.NoError(t, err)
	forgetIdentity(t, folder)
	log, err := startOnce(t, folder)
	require.NoError(t, err)
	require.Contains(t, log, `state="adopted from an earlier version"`)
	adopted := readIdentity(t, folder)
	require.Equal(t, allStores, adopted.Stores)
	require.Empty(t, adopted.Adopting)
	log, err = startOnce(t, folder)
	require.NoError(t, err)
	require.Contains(t, log, `state="in use since `)
	require.Equal(t, adopted, readIdentity(t, folder))
}

func TestDataFolder_ResumesAnAdoptionThatACrashEnded(t *testing.T) {
	folder := t.TempDir()
	_, err := startOnce(t, folder)
	require.NoError(t, err)
	forgetIdentity(t, folder)
	cfg := config.Default()
	cfg.Data, cfg.BusListen, cfg.BlobListen = folder, "", ""
	_, err = node.Check(t.Context(), cfg, hub.CheckOptions{}, slog.New(slog.DiscardHandler)) // a check opens the store, but not the bus
	require.NoError(t, err)
	require.Equal(t, []string{"bus"}, readIdentity(t, folder).Adopting)
	require.NoError(t, os.Truncate(filepath.Join(folder, "bus", "store.db"), 0))
	_, err = startOnce(t, folder)
	require.ErrorContains(t, err, `store.db is missing or empty`)
	require.ErrorContains(t, err, "mount the volume of the store")
}

func TestDataFolder_RefusesStoresThatDoNotFit(t *testing.T) {
	damages := map[string]struct {
		do   func(t *testing.T, folder, other string)
		want []string
	}{
		"empty store file": {
			func(t *testing.T, folder, _ string) {
				require.NoError(t, os.Truncate(filepath.Join(folder, "cosmos", "store.db"), 0))
			},
			[]string{"store.db is missing or empty", "holds a store cosmos", "mount the volume of the store", "restore the whole folder from one backup"},
		},
		"missing store file": {
			func(t *testing.T, folder, _ string) {
				require.NoError(t, os.Remove(filepath.Join(folder, "bus", "store.db")))
			},
			[]string{"store.db is missing or empty", "holds a store bus"},
		},
		"missing documents": {removeStore("cosmos"), []string{"cosmos is missing or empty"}},
		"missing bus":       {removeStore("bus"), []string{"bus is missing or empty"}},
		"missing content":   {removeStore("content"), []string{"content is missing or empty"}},
		"missing exchange":  {removeStore("exchange"), []string{"exchange is missing or empty"}},
		"documents of another folder": {
			copyFrom("cosmos/store.db"), []string{"store.db belongs to another data folder", "restore the whole folder from one backup"},
		},
		"bus of another folder":     {copyFrom("bus/store.db"), []string{"store.db belongs to another data folder"}},
		"content of another folder": {copyFrom("content/+identity"), []string{"content belongs to another data folder"}},
		"store without an identity": {
			func(t *testing.T, folder, _ string) {
				require.NoError(t, os.Remove(filepath.Join(folder, "exchange", "+identity")))
			},
			[]string{"exchange carries no identity"},
		},
		"missing identity": {
			func(t *testing.T, folder, _ string) {
				require.NoError(t, os.Remove(filepath.Join(folder, "identity")))
			},
			[]string{"the file identity is missing", "put the file back"},
		},
		"empty identity": {
			func(t *testing.T, folder, _ string) {
				require.NoError(t, os.Truncate(filepath.Join(folder, "identity"), 0))
			},
			[]string{"its file identity is damaged"},
		},
		"newer identity": {
			func(t *testing.T, folder, _ string) {
				require.NoError(t, os.WriteFile(filepath.Join(folder, "identity"), []byte(`{"format":2,"id":"a"}`), 0o600))
			},
			[]string{"its file identity has format 2"},
		},
		"earlier version, empty store file": {
			func(t *testing.T, folder, _ string) {
				forgetIdentity(t, folder)
				require.NoError(t, os.Truncate(filepath.Join(folder, "cosmos", "store.db"), 0))
			},
			[]string{"the store cosmos/store.db is an empty file"},
		},
		"earlier version, missing store": {
			func(t *testing.T, folder, _ string) {
				forgetIdentity(t, folder)
				require.NoError(t, os.RemoveAll(filepath.Join(folder, "cosmos")))
			},
			[]string{`holds ["bus" "content" "exchange"], but not ["cosmos"]`},
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			folder, other := t.TempDir(), t.TempDir()
			for _, f := range []string{folder, other} {
				_, err := startOnce(t, f)
				require.NoError(t, err)
			}
			damage.do(t, folder, other)
			before := snapshot(t, folder)
			_, err := startOnce(t, folder)
			for _, want := range append(damage.want, folder) {
				require.ErrorContains(t, err, want)
			}
			require.Equal(t, before, snapshot(t, folder), "a folder that is refused stays as it is")
		})
	}
}

func removeStore(store string) func(*testing.T, string, string) {
	return func(t *testing.T, folder, _ string) { require.NoError(t, os.RemoveAll(filepath.Join(folder, store))) }
}

func copyFrom(file string) func(*testing.T, string, string) {
	return func(t *testing.T, folder, other string) {
		text, err := os.ReadFile(filepath.Join(other, filepath.FromSlash(file)))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, filepath.FromSlash(file)), text, 0o600))
	}
}

// snapshot returns the size of each file in a folder, by path.
func snapshot(t *testing.T, folder string) map[string]int64 {
	t.Helper()
	found := make(map[string]int64)
	require.NoError(t, filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && !strings.HasSuffix(path, "lock") {
			found[path] = info.Size()
		}
		return err
	}))
	return found
}

// A crash during the creation of a data folder must lose no data. The next
// start completes the creation.
func TestDataFolder_ContinuesACreationThatACrashEnded(t *testing.T) {
	for name, crash := range map[string]func(t *testing.T, folder string){
		"before the folder of the store": func(t *testing.T, folder string) {
			require.NoError(t, os.RemoveAll(filepath.Join(folder, "cosmos")))
		},
		"before the store carries the id": func(t *testing.T, folder string) {
			require.NoError(t, os.RemoveAll(filepath.Join(folder, "content")))
			require.NoError(t, os.Mkdir(filepath.Join(folder, "content"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(folder, "content", "+identity.new"), nil, 0o600))
		},
		"before the file of the store": func(t *testing.T, folder string) {
			require.NoError(t, os.Truncate(filepath.Join(folder, "cosmos", "store.db"), 0))
		},
		"before the store is listed": func(*testing.T, string) {},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			_, err := startOnce(t, folder)
			require.NoError(t, err)
			first := readIdentity(t, folder)
			text, err := json.Marshal(map[string]any{"format": 1, "id": first.ID, "stores": []string{}, "note": "kept"})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(folder, "identity"), text, 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(folder, "identity.new"), []byte("{"), 0o600))
			crash(t, folder)
			_, err = startOnce(t, folder)
			require.NoError(t, err)
			require.Equal(t, first, readIdentity(t, folder))
			text, err = os.ReadFile(filepath.Join(folder, "identity"))
			require.NoError(t, err)
			require.Contains(t, string(text), `"note": "kept"`, "a newer version's members stay")
		})
	}
}

// The user follows the advice in the error, and removes the lost store from the
// list in the identity file. The node must then create the store again.
func TestDataFolder_CreatesAStoreThatIsNoLongerListed(t *testing.T) {
	folder := t.TempDir()
	_, err := startOnce(t, folder)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(folder, "bus")))
	_, err = startOnce(t, folder)
	require.Error(t, err)
	text, err := os.ReadFile(filepath.Join(folder, "identity"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "identity"), bytes.Replace(text, []byte(`"bus",`), nil, 1), 0o600))
	_, err = startOnce(t, folder)
	require.NoError(t, err)
	require.Equal(t, allStores, readIdentity(t, folder).Stores)
}
