package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
	"github.com/messagehub/messagehub/domain/hub"
)

// newStoppedFolder returns the data folder of a stopped hub. It contains one
// event for each of n actors, each in a separate page.
func newStoppedFolder(t *testing.T, n int) string {
	t.Helper()
	data, settings := dataFolder(t), filepath.Join(t.TempDir(), "hub.yaml")
	require.NoError(t, os.WriteFile(settings, []byte("cosmos: {tail-events: 0}\n"), 0o600))
	h := startHub(t, "--data", data, "--config", settings)
	var lines strings.Builder
	for i := range n {
		lines.WriteString(strings.Replace(event(i+1, ""), actorA, fmt.Sprintf("actor-%d", i), 1))
	}
	require.Equal(t, 0, messagehub(t, lines.String(), "send", "--url", h.url(t), "-").status)
	require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())
	return data
}

// eachFound calls do for each document that a query finds in a container of a
// data folder.
func eachFound(t *testing.T, data, container, query string, do func(c *azcosmos.ContainerClient, key azcosmos.PartitionKey, id string)) {
	t.Helper()
	engine, err := embedded.Open(embedded.Options{Dir: filepath.Join(data, "cosmos")})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	credential, err := azcosmos.NewKeyCredential(engine.Key())
	require.NoError(t, err)
	client, err := azcosmos.NewClientWithKey(engine.Endpoint(), credential, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: engine.Transport()}})
	require.NoError(t, err)
	defer client.Close()
	c, err := client.NewContainer("messagehub", container)
	require.NoError(t, err)
	found := 0
	for pager := c.NewQueryItemsPager(query, azcosmos.NewPartitionKey(), nil); pager.More(); {
		page, err := pager.NextPage(t.Context())
		require.NoError(t, err)
		for _, item := range page.Items {
			var doc struct{ ID, PartitionKey string }
			require.NoError(t, json.Unmarshal(item, &doc))
			do(c, azcosmos.NewPartitionKeyString(doc.PartitionKey), doc.ID)
			found++
		}
	}
	require.Positive(t, found)
}

// losePointers damages every catalog entry: its sequence exceeds those of all
// events in the drawer.
func losePointers(t *testing.T, data string) {
	t.Helper()
	eachFound(t, data, "catalog", "SELECT * FROM c WHERE IS_DEFINED(c.nextSequence)", func(c *azcosmos.ContainerClient, key azcosmos.PartitionKey, id string) {
		var ops azcosmos.PatchOperations
		ops.AppendSet("/nextSequence", 1_000_000)
		_, err := c.PatchItem(t.Context(), key, id, ops, nil)
		require.NoError(t, err)
	})
}

func TestCheck_OfIntactDataIsClean(t *testing.T) {
	data := newStoppedFolder(t, 3)
	want := "check: clean\n  3 recipients, 3 cabinets, 3 drawers, 3 events retained, 0 open bundles\n"
	require.Equal(t, result{0, want, ""}, messagehub(t, "", "check", "--data", data))
	require.Equal(t, result{0, want, ""}, messagehub(t, "", "check", "--data", data, "--repair", "--verbose"))
	one := messagehub(t, "", "check", "--data", data, "--actor", "actor-1")
	require.Equal(t, result{0, "check: clean\n  1 recipient, 1 cabinet, 1 drawer, 1 event retained, 0 open bundles\n", ""}, one)
	var report hub.CheckReport
	require.NoError(t, json.Unmarshal([]byte(messagehub(t, "", "check", "--data", data, "--json").out), &report))
	require.Equal(t, hub.CheckReport{Recipients: 3, Cabinets: 3, Drawers: 3, Events: 3, Findings: []hub.Finding{}}, report)

	h := startHub(t, "--data", data)
	used := messagehub(t, "", "check", "--data", data)
	require.Equal(t, result{1, "", "messagehub: data folder " + data + ": a hub, or another check, uses it; check inside the hub with messagehub check --url URL, such as http://127.0.0.1:8081\n"}, used)
	require.Equal(t, result{0, want, ""}, messagehub(t, "", "check", "--url", h.url(t)))
	require.Equal(t, one, messagehub(t, "", "check", "--url", h.url(t), "--actor", "actor-1"))
}

func TestCheck_ReportsWhyItCannotRun(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	require.Equal(t, result{1, "", "messagehub: data folder " + none + ": no hub has kept anything there; name its folder with --data\n"},
		messagehub(t, "", "check", "--data", none))
	_, err := os.Stat(none)
	require.ErrorIs(t, err, os.ErrNotExist, "and makes nothing")
	settings := filepath.Join(t.TempDir(), "hub.yaml")
	require.NoError(t, os.WriteFile(settings, []byte("in-memory: true\n"), 0o600))
	require.Equal(t, result{1, "", "messagehub: in-memory = true: such a hub stores nothing; name a running one with --url to check inside it\n"},
		messagehub(t, "", "check", "--config", settings))
	require.Equal(t, result{1, "", "messagehub: No such route (404): The store of this hub cannot be checked.\n"},
		messagehub(t, "", "check", "--url", memoryHub(t, nil)))

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `{"progress":{"recipients":1}}`)
	}))
	defer server.Close()
	got := messagehub(t, "", "check", "--url", server.URL)
	require.Equal(t, 1, got.status)
	require.Empty(t, got.out, "half a check is no report")
	require.Contains(t, got.err, "the response is incomplete")
}

func TestCheck_RepairsLostPointers(t *testing.T) {
	data := newStoppedFolder(t, 2)
	losePointers(t, data)
	found := messagehub(t, "", "check", "--data", data)
	require.Equal(t, 1, found.status)
	require.Empty(t, found.err)
	require.Contains(t, found.out, "check: 2 findings, 0 of them repaired\n")
	require.Contains(t, found.out, "  repairable    H10  entry-high           2 of 2 recipients, such as actor-")
	require.Contains(t, found.out, "To repair what can be repaired, run the same command with --repair.")
	listed := messagehub(t, "", "check", "--data", data, "--verbose")
	require.Equal(t, 2, strings.Count(listed.out, "H10 entry-high: actor-"))

	h := startHub(t, "--data", data)
	var report hub.CheckReport
	repaired := messagehub(t, "", "check", "--url", h.url(t), "--repair", "--json")
	require.Equal(t, 0, repaired.status, "nothing is wrong any more: %s%s", repaired.out, repaired.err)
	require.NoError(t, json.Unmarshal([]byte(repaired.out), &report))
	require.EqualValues(t, 2, report.Repaired)
	require.Len(t, report.Findings, 2)
	require.True(t, report.Findings[0].Repaired)
	again := messagehub(t, "", "check", "--url", h.url(t))
	require.Equal(t, 0, again.status, again.out+again.err)
}

func TestCheck_ReportsDamageWithAdviceUntilItIsRepaired(t *testing.T) {
	data := newStoppedFolder(t, 2)
	eachFound(t, data, "cabinet", "SELECT * FROM c WHERE IS_DEFINED(c.events)", func(c *azcosmos.ContainerClient, key azcosmos.PartitionKey, id string) {
		_, err := c.DeleteItem(t.Context(), key, id, nil)
		require.NoError(t, err)
	})
	for _, args := range [][]string{{}, {"--repair"}} {
		got := messagehub(t, "", append([]string{"check", "--data", data}, args...)...)
		require.Equal(t, 1, got.status)
		require.Contains(t, got.out, "DAMAGE")
		require.Contains(t, got.out, "page-missing")
		require.Contains(t, got.out, "restore a backup")
		require.Less(t, strings.Count(got.out, "\n"), 24, "one screen")
	}
}

func TestCheck_CompletesARepairThatWasKilled(t *testing.T) {
	const actors = 6
	data := newStoppedFolder(t, actors)
	random := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		losePointers(t, data)
		repair := exec.Command(program(t), "check", "--data", data, "--repair")
		repair.Env = cleanEnviron()
		require.NoError(t, repair.Start())
		_ = clock.Sleep(t.Context(), time.Duration(random.IntN(800))*time.Millisecond) // a random time
		_ = repair.Process.Kill()                                                      // fails only if the repair has already ended
		_ = repair.Wait()

		repaired := messagehub(t, "", "check", "--data", data, "--repair")
		require.Equal(t, 0, repaired.status, repaired.out+repaired.err)
		clean := messagehub(t, "", "check", "--data", data)
		require.Equal(t, 0, clean.status, clean.out+clean.err)
		require.True(t, strings.HasPrefix(clean.out, "check: clean\n"), clean.out)
	}
	url := startHub(t, "--data", data).url(t)
	for i := range actors {
		require.Equal(t, 0, messagehub(t, "", "peek", "--url", url, "--actor", fmt.Sprintf("actor-%d", i)).status)
	}
}

func TestCheck_OfAHubUnderLoadIsClean(t *testing.T) {
	h := startHub(t, "--data", t.TempDir())
	url := h.url(t)
	remote, err := hubclient.New(url)
	require.NoError(t, err)
	defer remote.Close()
	stop := make(chan struct{})
	var load errgroup.Group
	for i := range 3 {
		load.Go(func() error { return useHub(t.Context(), remote, fmt.Sprintf("actor-%d", i), stop) })
	}
	for range 2 {
		got := messagehub(t, "", "check", "--url", url, "--repair")
		require.Equal(t, 0, got.status, got.out+got.err)
		require.True(t, strings.HasPrefix(got.out, "check: clean\n"), "what is under way is no finding: %s", got.out)
	}
	close(stop)
	require.NoError(t, load.Wait())
	quiet := messagehub(t, "", "check", "--url", url)
	require.Equal(t, 0, quiet.status, quiet.out+quiet.err)
}

// useHub sends, peeks and dequeues until stop is closed.
func useHub(ctx context.Context, remote *hubclient.Client, actor string, stop <-chan struct{}) error {
	for n := 1; ; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		line := strings.TrimSpace(strings.Replace(event(n, ""), actorA, actor, 1))
		if _, err := remote.SendEvents(ctx, []byte("["+line+"]")); err != nil {
			return err
		}
		if n%3 != 0 {
			continue
		}
		id, _, err := remote.Peek(ctx, actor, hubclient.PeekOptions{})
		if err == nil && id != "" {
			_, err = remote.Dequeue(ctx, actor, id)
		}
		if err != nil {
			return err
		}
	}
}

func TestCheck_DoesNotDelayTheStopOfAHub(t *testing.T) {
	data := newStoppedFolder(t, 200)
	losePointers(t, data) // makes the repair take some time
	h := startHub(t, "--data", data)
	url := h.url(t)
	begun := make(chan struct{})
	over := make(chan error, 1)
	go func() {
		remote, err := hubclient.New(url)
		if err == nil {
			defer remote.Close()
			remote.Token = operatorToken
			first := true
			_, err = remote.Check(context.Background(), hub.CheckOptions{Progress: func(hub.CheckReport) {
				if first {
					first = false
					close(begun)
				}
			}})
		}
		over <- err
	}()
	select {
	case <-begun:
	case err := <-over:
		require.NoError(t, err, "the check ended before it began")
	}
	require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())
	require.NotContains(t, h.stderrText(), "cut off")
	ended := <-over
	refused, ok := errors.AsType[*hubclient.Problem](ended)
	require.True(t, ok, "%v", ended)
	require.Equal(t, "Not ready", refused.Title)
}

// A scriptedCheck simulates a check. It reports recipients page by page.
type scriptedCheck struct {
	pages int
	stop  int // number of the page before which the check stops; 0 if it completes
	asked []string
}

func (s *scriptedCheck) check(_ context.Context, opts hub.CheckOptions) (hub.CheckReport, error) {
	s.asked = append(s.asked, opts.Resume)
	report := hub.CheckReport{Findings: []hub.Finding{}}
	at := 0
	if opts.Resume != "" {
		at = int(opts.Resume[0] - '0')
	}
	for ; at < s.pages; at++ {
		if s.stop > 0 && at == s.stop {
			return report, errors.New("out of reach")
		}
		report.Recipients += 100
		opts.Progress(report) // a report in the middle of a page; a resumed check reads the whole page again
		report.Found++
		report.Findings = append(report.Findings, hub.Finding{Kind: "entry-high", Where: fmt.Sprint(at)})
		report.Resume = fmt.Sprint(at + 1)
		opts.Progress(report)
	}
	report.Resume = ""
	return report, nil
}

func TestCheck_ResumesAfterAnInterruption(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	var out, errs bytes.Buffer
	run := func(s *scriptedCheck, of string) error {
		out.Reset()
		errs.Reset()
		c := &checkCommand{p: &process{out: &out, err: &errs}, resume: file, json: true}
		return c.run(t.Context(), of, hub.CheckOptions{}, s.check)
	}
	s := &scriptedCheck{pages: 3, stop: 1}
	require.EqualError(t, run(s, "here"), "out of reach; the same command resumes after 100 recipients")
	require.Empty(t, out.String())
	require.EqualError(t, run(s, "elsewhere"), "--resume: "+file+" belongs to a check of here without --repair; remove the file, or name another one")

	s.stop = 0
	require.ErrorIs(t, run(s, "here"), exitError(1))
	require.Equal(t, []string{"", "1"}, s.asked)
	require.Equal(t, "resuming after 100 recipients\n", errs.String())
	var report hub.CheckReport
	require.NoError(t, json.Unmarshal(out.Bytes(), &report))
	require.EqualValues(t, 300, report.Recipients)
	require.EqualValues(t, 3, report.Found)
	require.Len(t, report.Findings, 3)
	require.Empty(t, report.Resume)
	_, err := os.Stat(file)
	require.ErrorIs(t, err, os.ErrNotExist, "it is complete")

	require.NoError(t, os.WriteFile(file, []byte("notes"), 0o600))
	require.EqualError(t, run(s, "here"), "--resume: "+file+" is not a state that a check wrote; remove the file, or name another one")
}
