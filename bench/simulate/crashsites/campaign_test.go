//go:build unix

package crashsites

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A runRecord is the result of one run. A campaign is a file of records, one per line, so that it can be interrupted and
// resumed.
type runRecord struct {
	Commit  string
	Place   hubSetup
	Stage   stage
	Seed    uint64
	Kills   []killRecord
	Missed  []string `json:",omitempty"`
	Events  int
	Bundles int
	Mended  int64
	Seconds float64
	Failed  string `json:",omitempty"`
}

type killRecord struct {
	Step  string
	When  When
	Times int
}

// A crashCampaign counts the kills after which all checks passed.
type crashCampaign struct {
	file   string
	target int // kills for each crash site

	mu      sync.Mutex
	records []runRecord
	counts  map[crashSite]int
}

// openCampaign opens a campaign, and reads the records that its file already has.
func openCampaign(file string, target int) (*crashCampaign, error) {
	c := &crashCampaign{file: file, target: target, counts: make(map[crashSite]int)}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var r runRecord
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s: %w; repair or remove the file", file, err)
		}
		c.takeRecord(&r)
	}
	return c, nil
}

func (c *crashCampaign) takeRecord(r *runRecord) {
	c.records = append(c.records, *r)
	if r.Failed != "" {
		return
	}
	for _, k := range r.Kills {
		c.counts[siteOf(r.Place, r.Stage, k)] += k.Times
	}
}

func siteOf(p hubSetup, s stage, k killRecord) crashSite {
	for _, c := range crashSites(p, s) {
		if string(c.Step) == k.Step && c.When == k.When {
			return c
		}
	}
	return crashSite{} // a crash site that was removed from the code
}

// wantedSites returns the crash sites with fewer kills than the target.
func (c *crashCampaign) wantedSites(p hubSetup, s stage) (wanted []crashSite) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, site := range crashSites(p, s) {
		if c.counts[site] < c.target {
			wanted = append(wanted, site)
		}
	}
	return wanted
}

// addRecord writes a record, and returns the number of kills so far and the
// target.
func (c *crashCampaign) addRecord(r *runRecord) (done, of int, err error) {
	line, err := json.Marshal(r)
	if err != nil {
		return 0, 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.takeRecord(r)
	file, err := os.OpenFile(c.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, 0, err
	}
	_, err = file.Write(append(line, '\n'))
	for _, p := range []hubSetup{embedded, apart} {
		for _, s := range stages {
			for _, site := range crashSites(p, s) {
				done += min(c.counts[site], c.target)
				of += c.target
			}
		}
	}
	return done, of, errors.Join(err, file.Close())
}

// formatReport returns the campaign as a Markdown page.
func (c *crashCampaign) formatReport() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var commits []string
	var kills, events, bundles, runs int
	var repaired int64
	var seconds float64
	var failed []string
	for i := range c.records {
		r := &c.records[i]
		if !slices.Contains(commits, r.Commit) {
			commits = append(commits, r.Commit)
		}
		if r.Failed != "" {
			failed = append(failed, fmt.Sprintf("%s, %s, seed %d", r.Place, r.Stage, r.Seed))
			continue
		}
		for _, k := range r.Kills {
			kills += k.Times
		}
		runs++
		events, bundles, repaired, seconds = events+r.Events, bundles+r.Bundles, repaired+r.Mended, seconds+r.Seconds
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Crash sites

Written by `+"`make crash-sites`"+`; do not edit. The package comment explains the figures.

- commit: %s
- machine: %d cores, %s/%s
- Go: %s
- %d kills by SIGKILL in %d runs, %.0f s of work, %.2f s per kill
- %d events in %d bundles: no event was lost or in two bundles, and the order was kept; every run was drained
- checks found no damage; they repaired %d hints, and then found nothing
- failed runs: %s

The number of kills just before and just after each step:

| step | embedded, before | after | apart, before | after |
|---|---|---|---|---|
`, strings.Join(commits, ", "), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(),
		kills, runs, seconds, seconds/float64(max(kills, 1)), events, bundles, repaired, joinOrNone(failed))
	for _, s := range stages {
		all := stepsOf(apart, s)
		if len(all) == 0 { // stages with objects have only one setup
			all = stepsOf(embedded, s)
		}
		for _, step := range all {
			name := string(step)
			switch s {
			case living, pushing, storing:
			case marking:
				name += ", of deleted content"
			case crawling:
				name += ", of a crawl"
			case patching:
				name += ", of a patch"
			case forgetting:
				name += ", of a retention"
			case relaying:
				name += ", of the topic"
			case sweeping:
				name += ", of a sweep"
			case watching:
				name += ", of watches"
			case tailing:
				name += ", with tails"
			}
			fmt.Fprintf(&b, "| %s |", name)
			for _, p := range []hubSetup{embedded, apart} {
				for _, when := range []When{Before, After} {
					text := "-"
					if slices.Contains(stepsOf(p, s), step) {
						text = fmt.Sprint(c.counts[crashSite{p, s, step, when}])
					}
					fmt.Fprintf(&b, " %s |", text)
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func joinOrNone(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, "; ")
}

// commit returns the tested commit, read from git once.
var commit = sync.OnceValue(func() string {
	out, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	changed, err := exec.Command("git", "status", "--porcelain", "--", ":/*.go", ":/go.mod").Output()
	text := strings.TrimSpace(string(out))
	if err == nil && len(changed) > 0 {
		text += " and changes"
	}
	return text
})
