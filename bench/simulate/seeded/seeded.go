// Package seeded makes the choices of the Go runtime repeatable.
//
// The runtime chooses at random which ready case of a select runs, which of several timers with the same deadline
// fires first, and where the iteration over a map begins. On a busy machine, a goroutine may be preempted because its
// thread was not scheduled for 10 ms, or acquire a mutex first because it has waited for 1 ms. A simulation that must
// produce the same trace for the same seed has to control these choices, in libraries too. So the simulation is built
// with a few lines of the standard library changed:
//
//   - select and timers draw from a random state that the simulation sets before it begins,
//   - the iteration over a map always begins at the same place, because libraries iterate over maps on first use,
//   - the time limits of preemption and mutexes never expire,
//   - the children of a context are cancelled in the order of their creation,
//   - memory is allocated instead of mapped, because the check for runnable goroutines may miss a goroutine in a
//     system call,
//   - the simulation can check whether another goroutine can run.
//
// GOROOT is not modified: the flag -overlay of the go command substitutes the changed files.
//
// If a version of Go does not contain the expected lines, [Overlay] returns an error. A simulation built without the
// overlay checks the same rules, and most of its traces are repeatable, but not all.
package seeded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Tag is the build tag for builds with the overlay.
const Tag = "seeded"

// A sourceEdit replaces a line that occurs exactly once in its file.
type sourceEdit struct{ file, old, new string }

var changes = []sourceEdit{
	{"runtime/rand.go", "\tglobalRand.state.Init(*seed)\n", "\tclear(seed[:])\n\tseed[0] = 1\n\tglobalRand.state.Init(*seed)\n"},
	{"runtime/rand.go", "func maps_rand() uint64 {\n\treturn rand()\n}\n", `func maps_rand() uint64 {
	return 1
}

// choices is the state from which choice draws.
var choices uint64

//go:linkname seedChoices github.com/messagehub/messagehub/bench/simulate/scheduler.seedChoices
func seedChoices(seed uint64) { choices = seed }

// choice is SplitMix64.
//
//go:nosplit
func choice() uint64 {
	choices += 0x9e3779b97f4a7c15
	z := choices
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
`},
	{"runtime/proc.go", "const forcePreemptNS = 10 * 1000 * 1000 // 10ms\n", "const forcePreemptNS = 3600 * 1000 * 1000 * 1000 // an hour\n"},
	{"runtime/proc.go", "func runqempty(pp *p) bool {\n", `//go:linkname settled github.com/messagehub/messagehub/bench/simulate/scheduler.settled
func settled() bool { return runqempty(getg().m.p.ptr()) && sched.runq.empty() }

func runqempty(pp *p) bool {
`},
	{"internal/sync/mutex.go", "\tstarvationThresholdNs = 1e6\n", "\tstarvationThresholdNs = 1e18\n"},
	{"context/context.go", "\tchildren map[canceler]struct{} //", "\tchildren map[canceler]uint64 //"},
	{"context/context.go", "make(map[canceler]struct{})", "make(map[canceler]uint64)"},
	{"context/context.go", "\t\t\tp.children[child] = struct{}{}\n", "\t\t\tp.children[child] = births.Add(1)\n"},
	{"context/context.go", "\tfor child := range c.children {\n\t\t// NOTE: acquiring the child's lock while holding parent's lock.\n", `	for len(c.children) > 0 {
		var child canceler
		for other, born := range c.children {
			if child == nil || born < c.children[child] {
				child = other
			}
		}
		delete(c.children, child)
`},
	{"context/context.go", "// A canceler is a context type", `// births numbers all children, so that they can be cancelled in their order.
var births atomic.Uint64

// A canceler is a context type`},
	{"syscall/syscall_linux.go", "\treturn mapper.Mmap(fd, offset, length, prot, flags)\n", "\tif fd < 0 {\n\t\treturn make([]byte, length), nil\n\t}\n\treturn mapper.Mmap(fd, offset, length, prot, flags)\n"},
	{"syscall/syscall_linux.go", "\treturn mapper.Munmap(b)\n", "\tif err := mapper.Munmap(b); err != EINVAL {\n\t\treturn err\n\t}\n\treturn nil\n"},
	{"runtime/time.go", "\t\t\tt.rand = cheaprand()\n", "\t\t\tt.rand = uint32(choice())\n"},
	{"runtime/select.go", "\t\tj := cheaprandn(uint32(norder + 1))\n", "\t\tj := uint32(choice() % uint64(norder+1))\n"},
}

// ErrOther reports that this version of Go does not contain the lines that the overlay replaces.
var ErrOther = errors.New("this version of Go has a different runtime")

// Overlay writes the changed files and the file for the flag -overlay into dir, and returns the path of the file for
// -overlay. That file also contains the entries of more, which map a path to the file that replaces it.
func Overlay(ctx context.Context, dir string, more map[string]string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("query GOROOT from the go command: %w", err)
	}
	replace := make(map[string]string)
	for path, in := range more {
		replace[path] = in
	}
	texts := make(map[string][]byte)
	for _, c := range changes {
		path := filepath.Join(strings.TrimSpace(string(root)), "src", filepath.FromSlash(c.file))
		if texts[path] == nil {
			if texts[path], err = os.ReadFile(path); err != nil {
				return "", err
			}
		}
		if bytes.Count(texts[path], []byte(c.old)) != 1 {
			return "", fmt.Errorf("%w: %s does not contain the line %q", ErrOther, path, c.old)
		}
		texts[path] = bytes.Replace(texts[path], []byte(c.old), []byte(c.new), 1)
	}
	for path, text := range texts {
		replace[path] = filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(replace[path], text, 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, overlay, 0o600)
}

// Environment returns the environment variables for a process built with the overlay. They disable preemption and
// limit the process to one processor.
func Environment() []string {
	return append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
}
