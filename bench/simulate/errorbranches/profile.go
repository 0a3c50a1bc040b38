package main

import (
	"bufio"
	"cmp"
	"fmt"
	"go/token"
	"os"
	"slices"
	"strings"
)

// A sourcePosition is a position in a source file.
type sourcePosition struct{ line, column int }

func (p sourcePosition) comparePositions(other sourcePosition) int {
	return cmp.Or(cmp.Compare(p.line, other.line), cmp.Compare(p.column, other.column))
}

// A coverBlock is a sequence of statements without a branch.
type coverBlock struct {
	from, to sourcePosition
	reached  bool
}

// A profile holds the blocks of each file, sorted by position.
type profile map[string][]coverBlock

// readProfiles merges several profiles.
func readProfiles(paths []string) (profile, error) {
	blocks := make(map[string]map[[2]sourcePosition]bool)
	for _, path := range paths {
		if err := readProfile(path, blocks); err != nil {
			return nil, err
		}
	}
	p := make(profile)
	for file, of := range blocks {
		for at, reached := range of {
			p[file] = append(p[file], coverBlock{at[0], at[1], reached})
		}
		slices.SortFunc(p[file], func(a, b coverBlock) int { return a.from.comparePositions(b.from) })
	}
	return p, nil
}

func readProfile(path string, blocks map[string]map[[2]sourcePosition]bool) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // closing a file opened for reading loses no data
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		line := lines.Text()
		if strings.HasPrefix(line, "mode: ") {
			continue
		}
		colon := strings.LastIndexByte(line, ':')
		var from, to sourcePosition
		var statements, count int
		_, err := fmt.Sscanf(line[colon+1:], "%d.%d,%d.%d %d %d", &from.line, &from.column, &to.line, &to.column, &statements, &count)
		if colon < 0 || err != nil {
			return fmt.Errorf("%s:%d is not a line of a coverage profile: %q", path, number, line)
		}
		name := line[:colon]
		if blocks[name] == nil {
			blocks[name] = make(map[[2]sourcePosition]bool)
		}
		at := [2]sourcePosition{from, to}
		blocks[name][at] = blocks[name][at] || count > 0
	}
	return lines.Err()
}

// isReached reports whether the statement at the given position was reached.
func (p profile) isReached(file string, position token.Position) (reached bool, err error) {
	at := sourcePosition{position.Line, position.Column}
	var inner *coverBlock // the last block that begins before the position and ends after it
	for i := range p[file] {
		if b := &p[file][i]; b.from.comparePositions(at) <= 0 && b.to.comparePositions(at) > 0 {
			inner = b
		}
	}
	if inner == nil {
		return false, fmt.Errorf("no profile has %s:%d: create one from the current code, with -coverpkg", file, position.Line)
	}
	return inner.reached, nil
}
