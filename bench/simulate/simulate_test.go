//go:debug randseednop=0

package simulate

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/coverage"
)

var (
	from  = flag.Uint64("simulate.from", 0, "first seed")
	seeds = flag.Uint64("simulate.seeds", 0, "number of seeds; 0: a few, and those that failed before")
	drop  = flag.String("simulate.drop", "", "comma-separated numbers of faults to leave out")
	show  = flag.Bool("simulate.trace", false, "print the traces")
	twice = flag.Bool("simulate.twice", false, "run each seed twice and compare the traces")
	only  = flag.String("simulate.only", "", "the only simulation that runs: mailboxes, push, broker, subscriptions, watches or ledger; empty: all kinds of the seed")
	out   = flag.String("simulate.out", "", "file for the totals")
)

// runTotals are the sums of the results over several seeds.
type runTotals struct {
	From      uint64         `json:"from"`
	Seeds     uint64         `json:"seeds"`
	Steps     int            `json:"steps"`
	Faulted   int            `json:"faulted"`
	Seconds   float64        `json:"seconds"`
	Coverage  map[string]int `json:"sometimes"`
	Histories int            `json:"histories"`
	Failed    []uint64       `json:"failed"`
	Differing []uint64       `json:"differing"`
}

// TestSeeds runs seeds and checks all invariants. Package prove runs it for campaigns. With MESSAGEHUB_SEEDS_PROVED=1,
// TestSeeds skips the seeds that failed before and most other seeds. A caller that sets this variable also runs package
// prove, whose build repeats seeds exactly.
func TestSeeds(t *testing.T) {
	var all []seedRun
	few := uint64(2)
	if os.Getenv("MESSAGEHUB_SEEDS_PROVED") == "" {
		all, few = readSavedSeeds(t), 12
	}
	if *seeds > 0 {
		all, few = nil, *seeds
	}
	for seed := *from; seed < *from+few; seed++ {
		all = append(all, seedRun{seed, Kind(*only)})
	}
	sum := runTotals{From: *from, Seeds: uint64(len(all)), Coverage: coverage.New()}
	began := time.Now()
	for _, one := range all {
		t.Run(fmt.Sprint(one.seed), func(t *testing.T) { sum.runSeeds(t, one) })
	}
	sum.Seconds = time.Since(began).Seconds()
	if *out != "" {
		line, err := json.Marshal(sum)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(*out, append(line, '\n'), 0o600))
	}
	t.Logf("%d steps of %d seeds, %d of them faulted, %.0f steps/s", sum.Steps, len(all), sum.Faulted, float64(sum.Steps)/sum.Seconds)
}

// stuckAfter is the time limit for one seed. The longest seed takes seconds, or minutes on a busy machine.
const stuckAfter = 5 * time.Minute

// A seedRun is one simulation of a seed, or all simulations of the seed if kind is empty.
type seedRun struct {
	seed uint64
	kind Kind
}

// String returns the argument with which prove repeats the run.
func (s seedRun) String() string {
	if s.kind == "" {
		return strconv.FormatUint(s.seed, 10)
	}
	return fmt.Sprintf("%d/%s", s.seed, s.kind)
}

func (sum *runTotals) runSeeds(t *testing.T, one seedRun) {
	seed := one.seed
	stuck := time.AfterFunc(stuckAfter, func() { panic(fmt.Sprintf("seed %d: no progress", seed)) })
	defer stuck.Stop()
	o := Options{Seed: seed, Drop: parseDropped(t), Trace: *show, Only: one.kind}
	r := Simulate(t, o)
	sum.Steps, sum.Faulted, sum.Histories = sum.Steps+r.Steps, sum.Faulted+r.Faulted, sum.Histories+r.Histories
	for what, n := range r.Coverage {
		sum.Coverage[what] += n
	}
	if *show {
		fmt.Println(strings.Join(r.Trace, "\n"))
	}
	if *twice {
		if again := Simulate(t, o); again.Sum != r.Sum || again.Steps != r.Steps {
			sum.Differing = append(sum.Differing, seed)
			t.Errorf("seed %d: two runs left different traces", seed)
		}
	}
	if r.Err == nil {
		return
	}
	sum.Failed = append(sum.Failed, seed)
	t.Errorf("seed %d: %v", seed, r.Err)
	if *show || t.Context().Err() != nil {
		return
	}
	stuck.Reset(stuckAfter)
	o, r = Shrink(t, o, r)
	t.Logf("With %d faults left: %v\n%s\nTo repeat it: go run ./bench/simulate/prove -replay %s -drop %s",
		len(r.Happened), r.Err, strings.Join(lastLines(r.Trace, 300), "\n"), one, joinNumbers(o.Drop))
}

// lastLines returns the last n lines.
func lastLines(lines []string, n int) []string { return lines[max(0, len(lines)-n):] }

func parseDropped(t *testing.T) (numbers []int) {
	for _, text := range strings.FieldsFunc(*drop, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		numbers = append(numbers, n)
	}
	return numbers
}

func joinNumbers(numbers []int) string {
	if len(numbers) == 0 {
		return `""`
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ",")
}

// readSavedSeeds returns the seeds that failed before.
func readSavedSeeds(t *testing.T) (found []seedRun) {
	file, err := os.Open("testdata/seeds.txt")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		text, _, _ := strings.Cut(cmp.Or(strings.TrimSpace(lines.Text()), "#"), " ")
		if strings.HasPrefix(text, "#") {
			continue
		}
		number, kind, _ := strings.Cut(text, "/")
		seed, err := strconv.ParseUint(number, 10, 64)
		require.NoError(t, err)
		found = append(found, seedRun{seed, Kind(kind)})
	}
	return found
}
