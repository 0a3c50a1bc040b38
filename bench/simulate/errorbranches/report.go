package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A packageReport is the result for one package.
type packageReport struct {
	path       string
	reached    int
	unreached  []branch
	impossible []string
}

func reportPackage(p *parsedPackage, by profile, impossible *exceptions) (*packageReport, error) {
	r := &packageReport{path: p.path}
	for _, b := range p.findBranches() {
		reached, err := by.isReached(b.file, b.at)
		switch reason, ok := impossible.reasonFor(b); {
		case err != nil:
			return nil, err
		case reached && ok:
			return nil, fmt.Errorf("%s is listed as impossible but was reached: remove it from the list", b.nameInList())
		case reached:
			r.reached++
		case ok:
			r.impossible = append(r.impossible, fmt.Sprintf("%s: %s", b.nameInList(), reason))
		default:
			r.unreached = append(r.unreached, b)
		}
	}
	return r, nil
}

func (r *packageReport) reachedPercent() float64 {
	of := r.reached + len(r.unreached)
	if of == 0 {
		return 100
	}
	return 100 * float64(r.reached) / float64(of)
}

func (r *packageReport) printTo(to io.Writer) {
	_, _ = fmt.Fprintf(to, "%s: %d of %d error branches reached, %.1f %%; %d more are impossible\n",
		r.path, r.reached, r.reached+len(r.unreached), r.reachedPercent(), len(r.impossible))
	for _, b := range r.unreached {
		_, _ = fmt.Fprintf(to, "\t%s:%d (%s): %s\n", fromHere(b.at.Filename), b.at.Line, b.function, b.firstLine())
	}
	for _, line := range r.impossible {
		_, _ = fmt.Fprintf(to, "\timpossible: %s\n", line)
	}
}

// fromHere returns the path of a file relative to the working directory if possible, or otherwise the path unchanged.
func fromHere(file string) string {
	here, err := os.Getwd()
	if err != nil {
		return file
	}
	short, err := filepath.Rel(here, file)
	if err != nil {
		return file
	}
	return short
}

// nameInList returns the name of the branch in impossible.txt. The name stays valid until the function changes.
func (b *branch) nameInList() string { return b.file + " " + b.function }

// firstLine returns the first source line of the branch.
func (b *branch) firstLine() string {
	text, err := os.ReadFile(b.at.Filename)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(text), "\n")
	return strings.TrimSpace(lines[b.at.Line-1])
}

// exceptions holds the branches that cannot be reached, with the reasons.
type exceptions struct {
	reasons map[string]string // keyed by the end of the file's path and the function
	used    map[string]bool
}

// readImpossible reads a list with one branch per line: file, function and number, reason.
//
//	cosmos/format.go encoded#1 strings, numbers and times always have a JSON
func readImpossible(path string) (*exceptions, error) {
	e := &exceptions{make(map[string]string), make(map[string]bool)}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) < 3 {
			return nil, fmt.Errorf("%s:%d: want a file, a function with a number, and the reason", path, number)
		}
		e.reasons[fields[0]+" "+fields[1]] = strings.Join(fields[2:], " ")
	}
	return e, nil
}

func (e *exceptions) reasonFor(b branch) (reason string, ok bool) {
	file := b.file
	for { // paths in the list do not contain the module path
		if reason, ok := e.reasons[file+" "+b.function]; ok {
			e.used[file+" "+b.function] = true
			return reason, true
		}
		_, rest, found := strings.Cut(file, "/")
		if !found || path.Base(file) == file {
			return "", false
		}
		file = rest
	}
}

// staleError returns an error if the list names a branch that does not exist in the packages.
func (e *exceptions) staleError(packages []*parsedPackage) error {
	var all []error
	for name := range e.reasons {
		file, _, _ := strings.Cut(name, " ")
		judged := slices.ContainsFunc(packages, func(p *parsedPackage) bool {
			return strings.HasSuffix("/"+p.path, "/"+path.Dir(file))
		})
		if judged && !e.used[name] {
			all = append(all, fmt.Errorf("%s is listed as impossible, but there is no such error branch", name))
		}
	}
	return errors.Join(all...)
}
