//go:build !race

package cosmos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// An edit replaces a line in a file of this package.
type edit struct{ file, old, new string }

// counting lists the edits for a version that counts its own writes, in a new member of the head, the gate
// and the objects in them. It is the example for "How to add a stored member" in CONTRIBUTING.
var counting = []edit{
	{"head.go", "	Fence        string                   `json:\"fence,omitempty\"`", "	Writes       int64                    `json:\"writes,omitempty\"`\n	Fence        string                   `json:\"fence,omitempty\"`"},
	{"head.go", "	Marks    []mark                `json:\"marks,omitempty\"`", "	Writes   int64                 `json:\"writes,omitempty\"`\n	Marks    []mark                `json:\"marks,omitempty\"`"},
	{"gate.go", "	First      domain.Sequence          `json:\"first,omitempty\"`", "	Writes     int64                    `json:\"writes,omitempty\"`\n	First      domain.Sequence          `json:\"first,omitempty\"`"},
	{"gate.go", "	Doubt domain.Sequence `json:\"doubt,omitempty\"`", "	Writes int64 `json:\"writes,omitempty\"`\n	Doubt domain.Sequence `json:\"doubt,omitempty\"`"},
	{"save.go", "	h.setWriteID(w.r.client.NewID())\n", "	h.setWriteID(w.r.client.NewID())\n	h.Writes = w.head.Writes + 1\n"},
	{"head.go", "			Unknown: before.Unknown,\n", "			Unknown: before.Unknown,\n			Writes:  before.Writes + 1,\n"},
	{"gate.go", "	c.ETag = \"\"\n", "	c.ETag, c.Writes = \"\", g.Writes+1\n"},
	{"gate.go", "	at.Unknown = g.At[d.Cabinet].Unknown\n", "	at.Unknown, at.Writes = g.At[d.Cabinet].Unknown, g.At[d.Cabinet].Writes+1\n"},
}

// raising lists the edits for a version that stores head and gate in a newer format.
var raising = []edit{
	{"document_kinds.go", "Name: \"head\", Format: removalFormat", "Name: \"head\", Format: 4"},
	{"document_kinds.go", "Name: \"gate\", Format: 1", "Name: \"gate\", Format: 2"},
	{"save.go", "	h.setWriteID(w.r.client.NewID())\n", "	h.setWriteID(w.r.client.NewID())\n	h.StoredFormat = 4\n"},
	{"gate.go", "	c.ETag = \"\"\n", "	c.ETag, c.StoredFormat = \"\", 2\n"},
}

// buildMixed builds the worker in dir with a copy of this package to which edits are applied.
func buildMixed(ctx context.Context, dir string, edits []edit) (binary string, err error) {
	sources := make(map[string]string)
	for _, e := range edits {
		if sources[e.file] == "" {
			text, err := os.ReadFile(e.file)
			if err != nil {
				return "", err
			}
			sources[e.file] = string(text)
		}
		// gofmt aligns the columns of a struct, so another field changes the number of spaces.
		old := regexp.MustCompile(regexp.MustCompile(" +").ReplaceAllString(regexp.QuoteMeta(e.old), " +"))
		found := old.FindAllStringIndex(sources[e.file], -1)
		if len(found) != 1 {
			return "", fmt.Errorf("%s has no such line, or several: %s", e.file, e.old)
		}
		sources[e.file] = sources[e.file][:found[0][0]] + e.new + sources[e.file][found[0][1]:]
	}
	overlay := struct{ Replace map[string]string }{make(map[string]string)}
	for file, text := range sources {
		at, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		overlay.Replace[at] = filepath.Join(dir, file)
		if err := os.WriteFile(overlay.Replace[at], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	list, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mixed")
	text, err := json.Marshal(overlay)
	if err == nil {
		err = os.WriteFile(list, text, 0o600)
	}
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-overlay", list, "-o", binary, "./testdata/mixed").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return binary, nil
}

// A mixedReport is the report of a worker; see testdata/mixed.
type mixedReport struct {
	Saved, Dequeued, Errors []string
	Refused, Writes         map[string]int
	Counters                map[string]int64
}

// runMixed runs binaries concurrently, on the mailboxes of actors. In each binary, two goroutines make
// saves Saves each. The limit of a tail is tails in the first binary, and one less in each further
// binary.
func (r *rig) runMixed(url string, saves, tails int, actors []domain.ActorID, binaries ...string) []mixedReport {
	r.t.Helper()
	var names []string
	for _, a := range actors {
		names = append(names, a.String())
	}
	reports := make([]mixedReport, len(binaries))
	var ready, g errgroup.Group
	begin := make(chan struct{})
	for i, binary := range binaries {
		worker := exec.CommandContext(r.t.Context(), binary,
			"-endpoint", url, "-key", r.engine.Key(), "-actors", strings.Join(names, ","), "-saves", strconv.Itoa(saves),
			"-tails", strconv.Itoa(max(tails-i, 0)))
		worker.Stderr = os.Stderr
		in, err := worker.StdinPipe()
		require.NoError(r.t, err)
		out, err := worker.StdoutPipe()
		require.NoError(r.t, err)
		require.NoError(r.t, worker.Start())
		isReady := make(chan error, 1)
		ready.Go(func() error { return <-isReady })
		g.Go(func() error {
			lines := bufio.NewReader(out)
			_, err := lines.ReadString('\n')
			isReady <- err
			<-begin
			_ = in.Close()
			text, rerr := io.ReadAll(lines)
			if err = worker.Wait(); err == nil {
				err = rerr
			}
			if err == nil {
				err = json.Unmarshal(text, &reports[i])
			}
			return err
		})
	}
	err := ready.Wait()
	close(begin)
	require.NoError(r.t, g.Wait())
	require.NoError(r.t, err)
	return reports
}

// The versions run in separate processes without the race detector.
func TestTwoVersions_ShareAStoreAndLoseNothing(t *testing.T) {
	t.Parallel()
	builds := make([]string, 3)
	g, ctx := errgroup.WithContext(t.Context())
	for i, edits := range [][]edit{nil, counting, raising} {
		dir := t.TempDir()
		g.Go(func() (err error) {
			builds[i], err = buildMixed(ctx, dir, edits)
			return err
		})
	}
	require.NoError(t, g.Wait())
	older, newer, raised := builds[0], builds[1], builds[2]
	v := &upgradedStore{newKeeperFor(t, 20, 0)}
	server := httptest.NewServer(v.engine.Handler())
	defer func() { server.Close() }()

	for _, tails := range []int{0, 4, 1} { // 1: the newer version writes no tail
		v.shareAStore(server.URL, tails, older, newer)
	}

	// The third version stores one mailbox in a newer format.
	kept := []domain.ActorID{repositorytest.NewActor()}
	first := v.runMixed(server.URL, 10, 0, kept, raised)[0]
	require.Empty(t, first.Errors)
	require.NotEmpty(t, first.Saved)
	server.Close() // ends requests of workers that have exited
	server = httptest.NewServer(v.engine.Handler())
	v.actor = kept[0]
	before := v.readETags()
	left := v.runMixed(server.URL, 10, 0, kept, older)[0]
	require.Empty(t, left.Errors)
	require.Empty(t, append(left.Saved, left.Dequeued...))
	require.Positive(t, left.Refused[domain.NewerFormat.String()])
	require.Equal(t, before, v.readETags(), "the older version has written nothing")
}

// shareAStore runs an older and a newer version concurrently. It requires that both versions save and
// deliver, and that the older version retains the members that the newer version added.
func (v *upgradedStore) shareAStore(url string, tails int, older, newer string) {
	actors := []domain.ActorID{repositorytest.NewActor(), repositorytest.NewActor()}
	reports := v.runMixed(url, 40, tails, actors, older, newer)
	var saved, dequeued []string
	for _, r := range reports {
		require.Empty(v, r.Errors)
		require.NotEmpty(v, r.Saved)
		require.NotEmpty(v, r.Dequeued)
		saved, dequeued = append(saved, r.Saved...), append(dequeued, r.Dequeued...)
	}
	counts := reports[1]
	require.NotEmpty(v, counts.Writes)
	documents := v.readItems()
	for name, n := range counts.Writes {
		require.EqualValues(v, n, documents[name]["writes"], "%s was written so often by the newer version; it has counted", name)
	}
	for path, n := range counts.Counters {
		require.GreaterOrEqual(v, counterOf(documents, path), float64(n), "%s", path)
	}
	for _, actor := range actors {
		require.NoError(v, v.auditMailbox(actor))
		drained, err := repositorytest.Drain(v.Context(), v.stores(v.node), actor, allGroups)
		require.NoError(v, err)
		for _, b := range drained {
			for _, e := range b.Events {
				dequeued = append(dequeued, e.ID.String())
			}
		}
	}
	slices.Sort(saved)
	slices.Sort(dequeued)
	require.Equal(v, saved, dequeued, "each event once, and none lost")
}

// counterOf returns the counter at a path that begins with the name of a document.
func counterOf(documents map[string]storedItem, path string) float64 {
	for name, doc := range documents {
		if rest, ok := strings.CutPrefix(path, name); ok {
			var object any = doc
			for _, member := range strings.Split(rest, "/")[1:] {
				object = object.(map[string]any)[member]
			}
			if object, ok := object.(map[string]any); ok && object["writes"] != nil {
				return object["writes"].(float64)
			}
			return 0
		}
	}
	return 0
}
