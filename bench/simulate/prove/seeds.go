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
# wrong. They are run with every test of the simulation, for ever.
`

// readSeeds returns the seeds in a file, none if there is no file.
func readSeeds(path string) ([]uint64, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var seeds []uint64
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		seed, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: want a seed first: %w", path, number, err)
		}
		if !slices.Contains(seeds, seed) {
			seeds = append(seeds, seed)
		}
	}
	return seeds, nil
}

// saveSeed adds a seed to the file, unless it is there.
func saveSeed(path string, f failure) error {
	seeds, err := readSeeds(path)
	if err != nil || slices.Contains(seeds, f.Seed) {
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
