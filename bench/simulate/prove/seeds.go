package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/bench/record"
)

const seedsHeader = `# Seeds that have failed: the seed, the commit at which it failed, and what was
# wrong. They are run with every test of the simulation. Of 217/mailboxes only
# that part runs.
`

// A savedSeed is a seed that failed before.
type savedSeed struct {
	seed uint64
	part string // name of the only simulation to run; "" means all simulations
}

// parseSeed parses a seed such as 7022, or one simulation of a seed such as 7022/mailboxes.
func parseSeed(text string) (savedSeed, error) {
	number, part, hasPart := strings.Cut(text, "/")
	seed, err := strconv.ParseUint(number, 10, 64)
	if err != nil || hasPart && part == "" {
		return savedSeed{}, fmt.Errorf("%q is no seed: want a number such as 7022, or a number and a simulation such as 7022/mailboxes", text)
	}
	return savedSeed{seed, part}, nil
}

// readSeeds returns the seeds in a file. If the file does not exist, the result is empty.
func readSeeds(path string) ([]savedSeed, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var seeds []savedSeed
	at := 0
	for line := range strings.Lines(string(text)) {
		at++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		one, err := parseSeed(fields[0])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, at, err)
		}
		if !slices.Contains(seeds, one) {
			seeds = append(seeds, one)
		}
	}
	return seeds, nil
}

// saveSeed adds the seed of f to the file, unless the file already contains that seed.
func saveSeed(path string, f failure) error {
	seeds, err := readSeeds(path)
	if err != nil || slices.ContainsFunc(seeds, func(one savedSeed) bool { return one.seed == f.Seed }) {
		return err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = []byte(seedsHeader), os.MkdirAll(filepath.Dir(path), 0o750)
	}
	if err != nil {
		return err
	}
	what := strings.Join(strings.Fields(f.What), " ")
	return record.WriteFile(path, fmt.Appendf(text, "%d %s %s\n", f.Seed, strings.ReplaceAll(f.Commit, " ", "-"), what))
}
