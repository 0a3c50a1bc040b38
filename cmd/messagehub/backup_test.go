package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
)

// startBackedUp starts a hub whose data is in a folder. It returns the hub, and
// a client with the operators' token.
func startBackedUp(t *testing.T, data string, more ...string) (h *hubProcess, hub *hubclient.Client) {
	t.Helper()
	h = startHub(t, append([]string{"--data", data, "--log-level", "warn"}, more...)...)
	hub, err := hubclient.New(h.url(t))
	require.NoError(t, err)
	t.Cleanup(hub.Close)
	return h, hub
}

// payloadEvents returns events for several actors. The hub stores their
// payloads as contents.
func payloadEvents(from, count, actors int) []byte {
	var all []json.RawMessage
	for n := from; n < from+count; n++ {
		text := strings.TrimSpace(event(n, fmt.Sprintf(`,"payload":{"n":%d,"text":%q}`, n, strings.Repeat("x", 400))))
		all = append(all, json.RawMessage(strings.Replace(text, actorA, fmt.Sprint("actor-", n%actors), 1)))
	}
	return mustJSON(all)
}

// idsOf returns the ids of the events in a bundle's body.
func idsOf(t testing.TB, body []byte) (ids []string) {
	var events []struct{ ID string }
	if err := json.Unmarshal(body, &events); err != nil {
		t.Errorf("a bundle: %v", err)
	}
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids
}

// drain peeks and dequeues until the actors have no data. It returns how often
// each event was received.
func drain(t *testing.T, hub *hubclient.Client, actors int) map[string]int {
	t.Helper()
	seen := make(map[string]int)
	for i := range actors {
		actor := fmt.Sprint("actor-", i)
		for {
			id, body, err := hub.Peek(t.Context(), actor, hubclient.PeekOptions{})
			require.NoError(t, err)
			if id == "" {
				break
			}
			for _, e := range idsOf(t, body) {
				seen[e]++
			}
			is, err := hub.Dequeue(t.Context(), actor, id)
			require.NoError(t, err)
			require.True(t, is)
		}
	}
	return seen
}

// A backupLoad sends events to all actors, and dequeues the events of one
// actor, until it is stopped.
type backupLoad struct {
	t      *testing.T
	hub    *hubclient.Client
	actors int
	more   chan struct{} // contains a value if events were acknowledged

	mu       sync.Mutex
	next     int
	sent     map[string]bool // acknowledged events
	started  map[string]bool // events of bundles whose Dequeue was sent
	dequeued map[string]bool // events of bundles whose Dequeue succeeded
}

// snapshot returns copies of the sets sent, started and dequeued.
func (l *backupLoad) snapshot() (sent, started, dequeued map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.sent), maps.Clone(l.started), maps.Clone(l.dequeued)
}

func (l *backupLoad) send(ctx context.Context) error {
	const batch = 20
	for ctx.Err() == nil {
		l.mu.Lock()
		from := l.next
		l.next += batch
		l.mu.Unlock()
		body := payloadEvents(from, batch, l.actors)
		if _, err := l.hub.SendEvents(context.WithoutCancel(ctx), body); err != nil {
			return err
		}
		l.mu.Lock()
		for _, id := range idsOf(l.t, body) {
			l.sent[id] = true
		}
		l.mu.Unlock()
		nudge(l.more)
	}
	return nil
}

// await waits until n more events have been acknowledged.
func (l *backupLoad) await(n int) {
	before, _, _ := l.snapshot()
	for now := before; len(now) < len(before)+n; now, _, _ = l.snapshot() {
		select {
		case <-l.more:
		case <-time.After(patience):
			l.t.Fatalf("after %s, %d events are acknowledged", patience, len(now))
		}
	}
}

func (l *backupLoad) dequeue(ctx context.Context) error {
	for ctx.Err() == nil {
		id, body, err := l.hub.Peek(context.WithoutCancel(ctx), "actor-0", hubclient.PeekOptions{})
		if err != nil {
			return err
		}
		if id == "" {
			continue
		}
		ids := idsOf(l.t, body)
		l.note(l.started, ids)
		if _, err := l.hub.Dequeue(context.WithoutCancel(ctx), "actor-0", id); err != nil {
			return err
		}
		l.note(l.dequeued, ids)
	}
	return nil
}

func (l *backupLoad) note(in map[string]bool, ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		in[id] = true
	}
}

// TestBackup_OfARunningHubHasWhatWasAcknowledged backs up a hub under load,
// restores each archive, and checks that each event is in the expected state.
func TestBackup_OfARunningHubHasWhatWasAcknowledged(t *testing.T) {
	const actors, backups = 3, 2
	data, folder := dataFolder(t), t.TempDir()
	h, hub := startBackedUp(t, data)
	l := &backupLoad{t: t, hub: hub, actors: actors, next: 1, more: make(chan struct{}, 1), sent: map[string]bool{}, started: map[string]bool{}, dequeued: map[string]bool{}}
	_, err := hub.SendEvents(t.Context(), payloadEvents(900_000, 500, actors))
	require.NoError(t, err)
	for _, id := range idsOf(t, payloadEvents(900_000, 500, actors)) {
		l.sent[id] = true
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load errgroup.Group
	for range 4 {
		load.Go(func() error { return l.send(ctx) })
	}
	load.Go(func() error { return l.dequeue(ctx) })

	type taken struct {
		file                           string
		sent, dequeued, sentA, started map[string]bool
	}
	var all []taken
	for i := range backups {
		l.await(200)
		b := taken{file: filepath.Join(folder, fmt.Sprint(i, ".backup"))}
		b.sent, _, b.dequeued = l.snapshot()
		got := messagehub(t, "", "backup", "--url", h.url(t), "--data", data, b.file)
		require.Equal(t, 0, got.status, got.err)
		require.Contains(t, got.err, "backed up ")
		b.sentA, b.started, _ = l.snapshot()
		all = append(all, b)
	}
	stop()
	require.NoError(t, load.Wait())
	h.kill()

	for i, b := range all {
		restored := filepath.Join(folder, fmt.Sprint("restored-", i))
		got := messagehub(t, "", "restore", b.file, "--data", restored)
		require.Equal(t, 0, got.status, got.err)
		requireSound(t, restored)
		h, hub := startBackedUp(t, restored)
		seen := drain(t, hub, actors)
		for id := range b.sent {
			if seen[id] == 0 && !b.started[id] {
				t.Errorf("backup %d: %s was acknowledged before it began, and is lost", i, id)
			}
		}
		for id, times := range seen {
			if times > 1 || b.dequeued[id] {
				t.Errorf("backup %d: %s came %d times; dequeued before: %t", i, id, times, b.dequeued[id])
			}
		}
		require.Greater(t, len(b.sentA), 500)
		require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())
	}
}

func TestBackup_OfAFolderIsRestoredWhole(t *testing.T) {
	data, folder := newStoppedFolder(t, 3), t.TempDir()
	file := filepath.Join(folder, "hub.backup")
	got := messagehub(t, "", "backup", "--data", data, file)
	require.Equal(t, 0, got.status, got.err)
	piped := messagehub(t, "", "backup", "--data", data, "-")
	require.Equal(t, 0, piped.status, piped.err)
	require.NoError(t, os.WriteFile(file+".piped", []byte(piped.out), 0o600))
	for _, name := range []string{file, file + ".piped"} {
		got = messagehub(t, "", "restore", "--list", name)
		require.Equal(t, 0, got.status, got.err)
		require.Contains(t, got.out, "whole: ")
	}
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	restored := filepath.Join(folder, "a", "b")
	got = messagehub(t, "", "restore", file, "--data", restored)
	require.Equal(t, 0, got.status, got.err)
	want, err := os.ReadFile(filepath.Join(data, "push.key"))
	require.NoError(t, err)
	key, err := os.ReadFile(filepath.Join(restored, "push.key"))
	require.NoError(t, err)
	require.Equal(t, want, key, "it opens the secrets of subscriptions")
	require.NoFileExists(t, filepath.Join(restored, "admin.token"))
	h, hub := startBackedUp(t, restored)
	for i := range 3 {
		id, _, err := hub.Peek(t.Context(), fmt.Sprint("actor-", i), hubclient.PeekOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, id)
	}
	require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())
}

func TestRestore_WithFreezeReturnsNoBundleUntilThawed(t *testing.T) {
	data, folder := newStoppedFolder(t, 2), t.TempDir()
	file, restored := filepath.Join(folder, "hub.backup"), filepath.Join(folder, "restored")
	require.Equal(t, 0, messagehub(t, "", "backup", "--data", data, file).status)
	got := messagehub(t, "", "restore", file, "--data", restored, "--freeze", "--who", "me", "--why", "disk lost")
	require.Equal(t, 0, got.status, got.err)
	isFrozen := func(hub *hubclient.Client, actor string) {
		t.Helper()
		_, _, err := hub.Peek(t.Context(), actor, hubclient.PeekOptions{})
		refused, ok := errors.AsType[*hubclient.Problem](err)
		require.True(t, ok, err)
		require.Equal(t, 503, refused.Status)
	}
	isThawed := func(hub *hubclient.Client, actor string) {
		t.Helper()
		id, _, err := hub.Peek(t.Context(), actor, hubclient.PeekOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, id)
	}
	h, hub := startBackedUp(t, restored)
	isFrozen(hub, "actor-0")
	isFrozen(hub, "actor-1")
	later := strings.Replace(event(77, ""), actorA, "later", 1)
	require.Equal(t, 0, messagehub(t, later, "send", "--url", h.url(t), "-").status, "what is sent is stored")
	isFrozen(hub, "later")
	got = messagehub(t, "", "queue", "thaw", "actor-0", "--url", h.url(t), "--data", restored, "--why", "decided")
	require.Equal(t, 0, got.status, got.err)
	isThawed(hub, "actor-0")
	got = messagehub(t, "", "queue", "records", "actor-0", "--url", h.url(t), "--data", restored)
	require.Contains(t, got.out, "disk lost")
	require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())

	h, hub = startBackedUp(t, restored) // a restart must not freeze the queues again
	isThawed(hub, "actor-0")
	isFrozen(hub, "actor-1")
	isFrozen(hub, "later")
	got = messagehub(t, "", "queue", "thaw", "later", "--url", h.url(t), "--data", restored, "--why", "decided")
	require.Equal(t, 0, got.status, got.err)
	isThawed(hub, "later")
	require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())

	require.NoError(t, os.Remove(filepath.Join(restored, "frozen")))
	h, hub = startBackedUp(t, restored)
	later = strings.Replace(event(78, ""), actorA, "new", 1)
	require.Equal(t, 0, messagehub(t, later, "send", "--url", h.url(t), "-").status)
	isThawed(hub, "new")
	isFrozen(hub, "actor-1")
	require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())
}

func TestBackupAndRestore_ReportWhyTheyCannotRun(t *testing.T) {
	data, folder := newStoppedFolder(t, 1), t.TempDir()
	file, empty := filepath.Join(folder, "hub.backup"), filepath.Join(folder, "empty")
	require.Equal(t, 0, messagehub(t, "", "backup", "--data", data, file).status)
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	write := func(name string, content []byte) string {
		name = filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(name, content, 0o600))
		return name
	}
	changed := append([]byte(nil), whole...)
	changed[len(changed)/2] ^= 1
	running, _ := startBackedUp(t, filepath.Join(folder, "running"))
	memory := spawnHub(t, "--in-memory", "--log-level", "warn")
	require.NoError(t, memory.waitReady())
	frozen := filepath.Join(folder, "frozen")
	require.Equal(t, 0, messagehub(t, "", "restore", file, "--data", frozen, "--freeze").status)
	require.NoError(t, os.WriteFile(filepath.Join(frozen, "frozen"), []byte("{"), 0o600))
	interrupted := filepath.Join(folder, "interrupted")
	require.NoError(t, os.MkdirAll(filepath.Join(interrupted, ".restore"), 0o700))

	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"cut":               {[]string{"restore", write("cut", whole[:len(whole)-1]), "--data", empty}, "damaged or incomplete"},
		"changed":           {[]string{"restore", write("changed", changed), "--data", empty}, "damaged or incomplete"},
		"wrong file":        {[]string{"restore", write("wrong", []byte("text\n")), "--data", empty}, "the file is no archive"},
		"empty file":        {[]string{"restore", write("none", nil), "--data", empty}, "the file is no archive"},
		"a folder":          {[]string{"restore", folder, "--data", empty}, "is not a file"},
		"no file":           {[]string{"restore", filepath.Join(folder, "missing"), "--data", empty}, "the file does not exist"},
		"not empty":         {[]string{"restore", file, "--data", data}, "it is not empty"},
		"of a running hub":  {[]string{"restore", file, "--data", filepath.Join(folder, "running")}, "another process uses it"},
		"cold of a running": {[]string{"backup", "--data", filepath.Join(folder, "running"), write("x", nil)}, "messagehub backup --url"},
		"no data":           {[]string{"backup", "--data", empty, write("x", nil)}, "no hub has kept anything there"},
		"in memory":         {[]string{"backup", "--url", memory.url(t), write("x", nil)}, "such a hub stores nothing"},
		"no hub":            {[]string{"backup", "--url", "http://127.0.0.1:1", write("x", nil)}, "no hub listens"},
		"no folder of FILE": {[]string{"backup", "--data", data, filepath.Join(folder, "a", "b")}, "its folder does not exist"},
		"who without":       {[]string{"restore", file, "--who", "me"}, "--freeze"},
		"list and freeze":   {[]string{"restore", "--list", "--freeze", file}, "restores nothing"},
		"a damaged freeze":  {[]string{"check", "--data", frozen}, "frozen is damaged"},
		"interrupted":       {[]string{"check", "--data", interrupted}, "no hub has kept anything there"},
	} {
		got := messagehub(t, "", c.args...)
		require.NotZero(t, got.status, name)
		require.Contains(t, got.err, c.want, name)
	}
	unfinished := spawnHub(t, "--data", interrupted)
	<-unfinished.exited
	require.Contains(t, unfinished.stderrText(), "a restore into it was interrupted")
	require.NoError(t, running.stop(t, syscall.SIGTERM), running.stderrText())
}

// If the hub dies, or a proxy aborts the response, the previous file must
// remain.
func TestBackup_ThatIsInterruptedKeepsTheOldFile(t *testing.T) {
	data, file := newStoppedFolder(t, 1), filepath.Join(t.TempDir(), "hub.backup")
	whole := messagehub(t, "", "backup", "--data", data, "-")
	require.Equal(t, 0, whole.status, whole.err)
	for name, c := range map[string]struct {
		aborts bool
		text   string
		want   string
	}{
		"a hub that dies":  {true, whole.out[:len(whole.out)/2], "ended the backup before it was complete"},
		"a proxy":          {false, whole.out[:len(whole.out)/2], "damaged or incomplete"},
		"another byte":     {false, whole.out[:100] + string(whole.out[100]^1) + whole.out[101:], "damaged or incomplete"},
		"something behind": {false, whole.out + "more", "damaged or incomplete"},
		"another server":   {false, "<html>", "damaged or incomplete"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(c.text))
			if c.aborts {
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		}))
		require.NoError(t, os.WriteFile(file, []byte("old"), 0o600))
		got := messagehub(t, "", "backup", "--url", server.URL, file)
		server.Close()
		require.NotZero(t, got.status, name)
		require.Contains(t, got.err, c.want, name)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, "old", string(text), name)
		require.NoFileExists(t, file+".part", name)
	}
}
