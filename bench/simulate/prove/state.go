package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/messagehub/messagehub/bench/record"
)

// A testedTree is a tested commit and the machine on which it was tested.
type testedTree struct {
	Commit  string `json:"commit"`
	Machine string `json:"machine"`
	Go      string `json:"go"`
}

// A campaignState is the saved state of a campaign.
type campaignState struct {
	Origins  []testedTree `json:"origins"` // tested commits; more than one only after -continue
	Commands []string     `json:"commands"`
	Began    string       `json:"began"`
	From     *uint64      `json:"from,omitempty"` // the first seed of the last run
	Wall     float64      `json:"wallSeconds"`    // wall-clock time during which processes ran

	Seeds     spans            `json:"seeds"` // seeds that were run
	Steps     int64            `json:"steps"`
	Faulted   int64            `json:"faulted"` // steps with a fault
	Seconds   float64          `json:"seconds"` // running time, summed over all processes
	Histories int64            `json:"histories"`
	Coverage  map[string]int64 `json:"sometimes"` // number of times that each rare state was reached

	Twice     spans    `json:"twice"`     // seeds that were run twice
	Differing []uint64 `json:"differing"` // seeds whose two runs differ

	Failed []failure `json:"failed"`
}

// A failure is a seed that failed on a commit.
type failure struct {
	Seed   uint64 `json:"seed"`
	Commit string `json:"commit"`
	What   string `json:"what"`
	Mended string `json:"mended,omitempty"` // first commit on which the seed did not fail
}

// loadState returns the state in the file at path, or a new state if the file does not exist.
func loadState(path string) (*campaignState, error) {
	s := &campaignState{Coverage: make(map[string]int64)}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not the state of a campaign: move it, or choose another file: %w", path, err)
	}
	return s, nil
}

// resumeOrNew returns the state at path if that state belongs to this commit or canCombine is true. Otherwise resumeOrNew
// renames the file and returns a new state.
func resumeOrNew(path string, here testedTree, canCombine bool) (*campaignState, error) {
	s, err := loadState(path)
	if err != nil {
		return nil, err
	}
	known := slices.Contains(s.Origins, here)
	same := len(s.Origins) == 1 && known && !strings.HasSuffix(here.Commit, record.Changes)
	if len(s.Origins) > 0 && !same && !canCombine {
		if err := os.Rename(path, path+".before"); err != nil {
			return nil, fmt.Errorf("rename the state of another commit: %w", err)
		}
		if s, err = loadState(path); err != nil {
			return nil, err
		}
		known = false
	}
	if !known {
		s.Origins = append(s.Origins, here)
	}
	return s, nil
}

// beginRun records the beginning of a run.
func (s *campaignState) beginRun(from uint64, command string) {
	s.From = &from
	if s.Began == "" {
		s.Began = time.Now().UTC().Format(time.DateOnly)
	}
	if !slices.Contains(s.Commands, command) {
		s.Commands = append(s.Commands, command)
	}
}

// saveTo writes s to path atomically.
func (s *campaignState) saveTo(path string) error {
	text, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	return record.WriteFile(path, append(text, '\n'))
}

// addTotals adds the totals of a piece. It adds only fresh pieces to the sums, so that no seed counts twice.
func (s *campaignState) addTotals(p seedPiece, t totals) {
	switch p.kind {
	case saved:
		return
	case twice:
		s.Twice = s.Twice.withSpan(p.span)
		s.Differing = append(s.Differing, t.Differing...)
		return
	case fresh:
		s.Seeds = s.Seeds.withSpan(p.span)
	}
	s.Steps += t.Steps
	s.Faulted += t.Faulted
	s.Seconds += t.Seconds
	s.Histories += t.Histories
	for name, n := range t.Coverage {
		s.Coverage[name] += n
	}
}

// addFailure records a failed seed, once for each commit.
func (s *campaignState) addFailure(f failure) {
	if !slices.ContainsFunc(s.Failed, func(known failure) bool { return known.Seed == f.Seed && known.Commit == f.Commit }) {
		s.Failed = append(s.Failed, f)
	}
}

// markRepaired records that a seed does not fail on a commit. It ignores seeds whose two runs differ.
func (s *campaignState) markRepaired(seed uint64, commit string) {
	if slices.Contains(s.Differing, seed) {
		return
	}
	for i := range s.Failed {
		if f := &s.Failed[i]; f.Seed == seed && f.Commit != commit && f.Mended == "" {
			f.Mended = commit
		}
	}
}

// countFailing returns the number of failures that are not repaired.
func (s *campaignState) countFailing() (n int) {
	for _, f := range s.Failed {
		if f.Mended == "" {
			n++
		}
	}
	return n
}

// rarestStates returns the rare states, the rarest first.
func (s *campaignState) rarestStates() []string {
	names := make([]string, 0, len(s.Coverage))
	for name := range s.Coverage {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if s.Coverage[a] != s.Coverage[b] {
			return int(max(min(s.Coverage[a]-s.Coverage[b], 1), -1))
		}
		return strings.Compare(a, b)
	})
	return names
}
