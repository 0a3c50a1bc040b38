package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/energymarket"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// TestRollingUpgradeLosesNothing replaces the hubs of one account one after
// another, first by the next version and then by the old version, while domains
// send and actors fetch. No event may be lost, duplicated or reordered, and
// requests may fail only with 503 and Retry-After.
//
// By default it replaces two hubs of this version, with a small load. If
// MESSAGEHUB_ROLLING_RESULTS names a file, the test writes its results to the
// file. It then replaces three hubs, with 500 events per second for 50 actors.
// It builds the last release from the commit in .ci/last-release (or
// MESSAGEHUB_ROLLING_BASE), and upgrades MESSAGEHUB_ROLLING_TIMES times (default
// 10) to this version and back.
func TestRollingUpgradeLosesNothing(t *testing.T) {
	r := &rollingRun{
		before: thisBuild(t), after: thisBuild(t), nodes: 2, actors: 6, senders: 2, rate: 100, times: 1,
		steady: 500 * time.Millisecond, delay: 200 * time.Millisecond,
	}
	results := os.Getenv("MESSAGEHUB_ROLLING_RESULTS")
	if results != "" {
		r.before = lastRelease(t)
		r.nodes, r.actors, r.senders, r.rate, r.steady, r.delay = 3, 50, 10, 500, 30*time.Second, time.Second
		r.times = int(number(t, "MESSAGEHUB_ROLLING_TIMES", 10))
		r.wayBack, r.pause = true, time.Second
	}
	r.run(t)
	text := r.report()
	t.Logf("%s", text)
	if results != "" {
		require.NoError(t, os.WriteFile(results, []byte(text), 0o600))
	}
	require.True(t, r.verdict.OK(), "%s\n%s", r.verdict.String(), r.verdict.Details())
	require.Empty(t, r.wrongAnswers(), "a request failed otherwise than with 503 and Retry-After")
	if results != "" {
		require.LessOrEqual(t, r.worst("while hubs are replaced"), 3*r.worst("before"), "p99")
	}
}

// A hubBuild is a built version of the program.
type hubBuild struct {
	name     string
	path     string
	canDelay bool // canDelay means that the build supports --drain-delay
}

// thisBuild returns the build of this version.
func thisBuild(t *testing.T) hubBuild {
	return hubBuild{"this version", program(t), true}
}

// lastRelease builds the last release from its commit.
func lastRelease(t *testing.T) hubBuild {
	t.Helper()
	commit := os.Getenv("MESSAGEHUB_ROLLING_BASE")
	top, err := filepath.Abs("../..")
	require.NoError(t, err)
	if commit == "" {
		text, err := os.ReadFile(filepath.Join(top, ".ci", "last-release"))
		require.NoError(t, err)
		commit = strings.TrimSpace(string(text))
	}
	dir := t.TempDir()
	archive := exec.Command("git", "-C", top, "archive", "--format=tar", "--output", filepath.Join(dir, "source.tar"), commit)
	out, err := archive.CombinedOutput()
	require.NoError(t, err, "%s", out)
	source := filepath.Join(dir, "source")
	require.NoError(t, os.Mkdir(source, 0o700))
	out, err = exec.Command("tar", "-xf", filepath.Join(dir, "source.tar"), "-C", source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	path := filepath.Join(dir, "messagehub")
	compile := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-X main.version="+commit[:12], "-o", path, "./cmd/messagehub")
	compile.Dir = source
	out, err = compile.CombinedOutput()
	require.NoError(t, err, "%s", out)
	help, err := exec.Command(path, "serve", "--help").Output()
	require.NoError(t, err)
	return hubBuild{"release " + commit[:12], path, strings.Contains(string(help), "--drain-delay")}
}

// A rollingRun is a rolling upgrade with its load and results.
type rollingRun struct {
	before, after hubBuild
	nodes         int
	actors        int
	senders       int
	rate          int // events per second
	times         int
	wayBack       bool // after each upgrade, also replace the hubs by the old version
	steady        time.Duration
	delay         time.Duration // value of --drain-delay
	pause         time.Duration // pause after each replaced hub
	began         time.Time
	took          time.Duration
	replaced      int
	environ       []string
	balancer      *balancer
	names         []string // names of the actors
	*rollingLoad
}

func (r *rollingRun) run(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var engines busRun
	engines.newEngines(t)
	for _, entry := range engines.environ {
		if !strings.HasPrefix(entry, "MESSAGEHUB_DOMAINS=") {
			r.environ = append(r.environ, entry)
		}
	}
	for i := range r.actors {
		r.names = append(r.names, energymarket.NewGLN(fmt.Sprintf("579%09d", i)))
	}
	r.balancer = newBalancer(r.nodes)
	defer r.balancer.close()
	hubs := make([]*rollingHub, r.nodes)
	for i := range hubs {
		hubs[i] = &rollingHub{data: filepath.Join(t.TempDir(), "data"), index: i}
		require.NoError(t, r.start(t, hubs[i], r.before))
	}
	r.rollingLoad = newRollingLoad(r)
	r.setPhase("before")
	load, loading := errgroup.WithContext(ctx)
	r.begin(loading, load)

	r.began = time.Now()
	require.NoError(t, clock.Sleep(loading, r.steady))
	r.setPhase("while hubs are replaced")
	err := r.replaceAll(loading, t, hubs)
	r.took = time.Since(r.began)
	r.setPhase("after")
	r.endSending()
	if ended := load.Wait(); ended != nil {
		err = ended
	}
	require.NoError(t, err)
	for _, h := range hubs {
		require.NoError(t, h.process.stop(t, syscall.SIGTERM), h.process.stderrText())
	}
	r.verdict = r.ledger.Check()
	r.check(t)
}

// replaceAll replaces all hubs by the next version and, if wayBack is true,
// then by the old version.
func (r *rollingRun) replaceAll(ctx context.Context, t *testing.T, hubs []*rollingHub) error {
	for range r.times {
		for _, next := range []hubBuild{r.after, r.before}[:map[bool]int{true: 2, false: 1}[r.wayBack]] {
			for _, h := range hubs {
				if err := r.replace(ctx, t, h, next); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// replace stops a hub with SIGTERM, and starts another build instead. If the
// running build does not support --drain-delay, the balancer first removes the
// hub, as operators had to do.
func (r *rollingRun) replace(ctx context.Context, t *testing.T, h *rollingHub, next hubBuild) error {
	if !h.build.canDelay {
		r.balancer.removeHub(h.index)
	}
	if err := h.process.stop(t, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop a hub of %s: %w\n%s", h.build.name, err, h.process.stderrText())
	}
	r.replaced++
	if err := r.start(t, h, next); err != nil {
		return err
	}
	return clock.Sleep(ctx, r.pause)
}

// A rollingHub is one hub of a rollingRun.
type rollingHub struct {
	index   int
	data    string
	build   hubBuild
	process *hubProcess
}

// start starts a build of a hub, and adds the hub to the balancer.
func (r *rollingRun) start(t *testing.T, h *rollingHub, b hubBuild) error {
	args := []string{b.path, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "", "--data", h.data, "--log-level", "warn", "--log-format", "json"}
	if b.canDelay {
		args = append(args, "--drain-delay", r.delay.String())
	}
	h.build = b
	h.process = spawnCommand(t, append([]string{tokenVariable + "=" + operatorToken}, r.environ...), args...)
	if err := h.process.waitReady(); err != nil {
		return fmt.Errorf("start a hub of %s: %w", b.name, err)
	}
	r.balancer.addHub(h.index, h.process.url(t))
	return nil
}

// check checks the store, and fails if there are findings.
func (r *rollingRun) check(t *testing.T) {
	t.Helper()
	c := exec.Command(r.after.path, "check", "--json")
	c.Env = append(cleanEnviron(), r.environ...)
	c.Dir = t.TempDir()
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	var report map[string]any
	require.NoError(t, json.Unmarshal(out, &report), "%s", out)
}

// report returns the results as a Markdown page.
func (r *rollingRun) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Rolling upgrade\n\n`make rolling-upgrade` wrote this. %s, %d CPUs, %s.\n\n", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.Version())
	way := ""
	if r.wayBack {
		way = ", each time with the way back"
	}
	fmt.Fprintf(&b, "%d hubs on the three emulators, all processes on one machine, from %s to %s, %d times%s: %d hubs were replaced by SIGTERM and a start in %s.\n",
		r.nodes, r.before.name, r.after.name, r.times, way, r.replaced, r.took.Round(time.Second))
	if !r.before.canDelay {
		b.WriteString("A hub of the former is taken out of the load balancer before its SIGTERM. One of the latter is not: it has a\n`drain-delay` of " + r.delay.String() + ", and the load balancer asks `/readyz` every " + probeEvery.String() + ".\n")
	}
	fmt.Fprintf(&b, "\n%d senders sent %d events to %d actors, %.0f a second (%d asked for).\n\n", r.senders, r.sentEvents(), r.actors, float64(r.sentEvents())/r.took.Seconds(), r.rate)
	fmt.Fprintf(&b, "| | |\n| --- | --- |\n| lost | %d |\n| doubled | %d |\n| reordered | %d |\n| other faults | %d |\n\n", len(r.verdict.Lost), len(r.verdict.Duplicated), len(r.verdict.Disorder), len(r.verdict.Faults))
	b.WriteString(r.answersTable())
	b.WriteString(r.latencyTable())
	fmt.Fprintf(&b, "\nThe longest p99 of the three, while hubs are replaced, is %.2f times that before.\n",
		float64(r.worst("while hubs are replaced"))/float64(max(r.worst("before"), 1)))
	return b.String()
}
