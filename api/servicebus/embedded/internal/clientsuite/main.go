// Command clientsuite runs the tests of the Go clients, in the module versions of go.mod,
// against the emulator, and prints how many passed:
//
//	azservicebus         its live tests: package root, internal and admin
//	go-amqp              its integration tests
//
// The live tests connect to amqps://localhost:5671 and https://localhost:443, so each test runs
// in an isolated network with a separate emulator, which requires Linux. The program copies the
// modules from the module cache, which is read-only, and changes one line of the copy, so that the
// credential does not require Azure.
//
// The exit status is 0 if all tests passed except the known failures, whose reasons are listed. The
// arguments are the names of the tests to run; without arguments, all tests run.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == insideFlag {
		os.Exit(runInside(ctx, os.Args[2:])) //nolint:gocritic // no deferred call is lost
	}
	if err := runSuites(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "clientsuite:", err)
		stop()
		os.Exit(1)
	}
}

func runSuites(ctx context.Context, only []string) (err error) {
	if runtime.GOOS != "linux" {
		return errors.New("the tests need isolated networks, which only Linux has")
	}
	dir, err := os.MkdirTemp("", "clientsuite-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	emulator := filepath.Join(dir, "messagehub")
	if err := newCommand(ctx, "", "go", "build", "-o", emulator, "github.com/messagehub/messagehub/cmd/messagehub").Run(); err != nil {
		return fmt.Errorf("build the emulator: %w", err)
	}
	unexplained := 0
	for _, s := range suites {
		failed, err := s.runTests(ctx, dir, emulator, only)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		unexplained += failed
	}
	if unexplained > 0 {
		return fmt.Errorf("%d tests failed that should pass", unexplained)
	}
	return nil
}

// newCommand returns a command that runs in dir and writes to stderr.
func newCommand(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // arguments of this program
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd
}

// A testResult is the result of one test.
type testResult int

const (
	passed testResult = iota
	skipped
	failed
)

// runTests runs the tests of a suite and prints how many passed. It returns the number of failed tests, except those
// in s.known. If only is not empty, it runs only these tests, and s.known has no effect.
func (s *suite) runTests(ctx context.Context, dir, emulator string, only []string) (unexplained int, err error) {
	binary, names, err := s.compileTests(ctx, dir)
	if err != nil {
		return 0, err
	}
	if len(only) > 0 {
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(only, name) })
	}
	verdicts := make([]testResult, len(names))
	outputs := make([]string, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4 * runtime.NumCPU()) // run more tests than there are CPUs, because tests mostly wait
	for i, name := range names {
		g.Go(func() error {
			verdicts[i], outputs[i] = s.runIsolated(ctx, emulator, binary, name)
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	counts := map[testResult]int{}
	for i, name := range names {
		counts[verdicts[i]]++
		if verdicts[i] != failed {
			continue
		}
		if why, known := s.known[name]; known && len(only) == 0 {
			fmt.Printf("FAIL %s: %s\n", name, why)
			continue
		}
		unexplained++
		fmt.Printf("%s\nFAIL %s\n", outputs[i], name)
	}
	fmt.Printf("%s: %d of %d passed", s.name, counts[passed], len(names))
	if counts[skipped] > 0 {
		fmt.Printf(", %d skipped themselves", counts[skipped])
	}
	fmt.Println()
	return unexplained, nil
}

// runIsolated runs one test in an isolated network.
func (s *suite) runIsolated(ctx context.Context, emulator, binary, name string) (testResult, string) {
	self, err := os.Executable()
	if err != nil {
		return failed, err.Error()
	}
	cmd := exec.CommandContext(ctx, self, insideFlag, s.id, emulator, binary, name) //nolint:gosec // this program
	cmd.Dir = filepath.Dir(binary)
	isolateNetwork(cmd)
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		return failed, string(out) + err.Error()
	case strings.Contains(string(out), "--- SKIP: "+name+" "):
		return skipped, ""
	case !strings.Contains(string(out), "--- PASS: "+name+" "):
		return failed, string(out) + "the test did not run"
	}
	return passed, ""
}
