package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A patch holds the changes that a unified diff makes to one file.
type patch struct {
	path  string // path of the file relative to the module root, with slashes
	hunks []hunk
}

// A hunk is a block of lines and its replacement.
type hunk struct {
	before, after string
}

var hunkHeader = regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// parseDiff parses a unified diff that changes existing files. A diff that creates or removes a file is not supported.
// The preamble is the text above the first file, unchanged.
func parseDiff(text string) (preamble string, patches []patch, err error) {
	preamble, diff, found := strings.Cut(text, "\n--- ")
	if !found {
		return "", nil, errors.New("it changes no file: no line begins with ---")
	}
	lines := strings.SplitAfter("--- "+diff, "\n")
	for at := 0; at < len(lines) && lines[at] != ""; {
		p := patch{path: strings.TrimSpace(strings.TrimPrefix(lines[at], "--- a/"))}
		if at+1 >= len(lines) || lines[at] != "--- a/"+p.path+"\n" || lines[at+1] != "+++ b/"+p.path+"\n" {
			return "", nil, fmt.Errorf("%q does not begin the changes of a file: want --- a/path and +++ b/path", lines[at])
		}
		at += 2
		for at < len(lines) && strings.HasPrefix(lines[at], "@@") {
			h, n, err := parseHunk(lines[at:])
			if err != nil {
				return "", nil, fmt.Errorf("%s: %w", p.path, err)
			}
			p.hunks, at = append(p.hunks, h), at+n
		}
		if len(p.hunks) == 0 {
			return "", nil, fmt.Errorf("%s: nothing is changed", p.path)
		}
		patches = append(patches, p)
	}
	return preamble, patches, nil
}

// parseHunk parses the hunk at the beginning of lines, and returns the number of lines in the hunk.
func parseHunk(lines []string) (h hunk, n int, err error) {
	m := hunkHeader.FindStringSubmatch(lines[0])
	if m == nil {
		return h, 0, fmt.Errorf("%q does not begin a hunk", lines[0])
	}
	before, after := hunkLength(m[1]), hunkLength(m[2])
	for n = 1; before > 0 || after > 0; n++ {
		if n == len(lines) || lines[n] == "" {
			return h, 0, fmt.Errorf("the hunk %q is cut off", lines[0])
		}
		mark, line := lines[n][0], lines[n][1:]
		if mark == ' ' || mark == '-' {
			h.before += line
			before--
		}
		if mark == ' ' || mark == '+' {
			h.after += line
			after--
		}
		if !strings.ContainsRune(" -+", rune(mark)) || before < 0 || after < 0 {
			return h, 0, fmt.Errorf("the hunk %q does not have the lines that its header says, at %q", lines[0], lines[n])
		}
	}
	return h, n, nil
}

// hunkLength parses the number of lines in a hunk header. A header omits the number if it is 1.
func hunkLength(text string) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return 1
}

// applyTo returns source with the changes of p. The lines of each hunk must occur exactly once in source. Line numbers
// in the hunks are ignored, because they change with the code above a hunk.
func (p *patch) applyTo(source string) (string, error) {
	for i, h := range p.hunks {
		switch at := findLines(source, h.before); len(at) {
		case 1:
			source = source[:at[0]] + h.after + source[at[0]+len(h.before):]
		case 0:
			return "", fmt.Errorf("hunk %d: %s does not have these lines; update the mutant:\n%s", i+1, p.path, h.before)
		default:
			return "", fmt.Errorf("hunk %d: %s has these lines in %d places; add context lines:\n%s", i+1, p.path, len(at), h.before)
		}
	}
	return source, nil
}

// findLines returns each offset in source at which the text lines begins.
func findLines(source, lines string) (at []int) {
	for line := 0; line < len(source); {
		if strings.HasPrefix(source[line:], lines) {
			at = append(at, line)
		}
		next := strings.IndexByte(source[line:], '\n')
		if next < 0 {
			break
		}
		line += next + 1
	}
	return at
}
