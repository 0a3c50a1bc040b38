// Command mutants checks that tests fail when the hub breaks its rules. The hub's guarantees depend on rules, and each
// rule has a mutant: a patch of the shipped code that breaks the rule, as an author might who does not know the reason
// for the rule. The simulation of package simulate must fail for the mutant. If the simulation does not cover the code,
// the patch names another test, which must fail. If a mutant survives, a guarantee is not tested.
//
// The source tree is not changed: a patch is applied in memory, and the go command reads the result in place of the
// file (-overlay). A patch must fit exactly. So a change of the patched code makes the test of this package fail, and
// the author of the change must review the rule.
//
// Seeds are tested in ascending order from 0, so the number of seeds needed to kill a mutant is the same each time.
// Verdicts are saved in a state file under the hash of the binary: an interrupted campaign resumes, and only changed
// mutants are tested again. The campaign first runs the tests against the unchanged hub, for which no test may fail.
//
// The result is RESULTS.md. The exit status is 0 if all mutants were killed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// wholeResults is the file with the results of all mutants.
var wholeResults = filepath.Join("bench", "simulate", "mutants", "RESULTS.md")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c := &mutantCampaign{}
	flag.IntVar(&c.seeds, "seeds", 2000, "number of seeds after which a mutant has survived")
	flag.IntVar(&c.control, "control", 200, "number of seeds with which the unchanged hub must not fail")
	flag.IntVar(&c.processes, "processes", runtime.NumCPU(), "number of concurrent simulations")
	flag.DurationVar(&c.patience, "patience", 10*time.Minute, "time limit of a process, after which it has failed")
	state := flag.String("state", filepath.Join("bin", "mutants.json"), "the `file`, from the root of the module, that remembers what was found")
	results := flag.String("results", wholeResults, "the `file`, from the root of the module, for the result; with only, another one than that of all mutants")
	only := flag.String("only", "", "try only mutants whose name contains one of these `words`, with commas between them")
	build := flag.Bool("build", false, "see whether the mutants compile, and no more")
	flag.Parse()
	err := runCommand(ctx, c, *state, *results, *only, *build)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func runCommand(ctx context.Context, c *mutantCampaign, state, results, only string, build bool) (err error) {
	all, err := readMutants()
	if err != nil {
		return err
	}
	if c.root, err = moduleRoot(ctx); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "mutants-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	chosen := slices.Clone(all)
	if only != "" {
		words := strings.Split(only, ",")
		chosen = slices.DeleteFunc(chosen, func(m *mutant) bool {
			return !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(m.name, word) })
		})
	}
	if build {
		return c.buildAll(ctx, chosen)
	}
	if c.memory, err = openMemory(filepath.Join(c.root, state)); err != nil {
		return err
	}
	verdicts, err := c.runAll(ctx, chosen)
	if err != nil {
		return err
	}
	if only == "" || results != wholeResults {
		if err := os.WriteFile(filepath.Join(c.root, results), []byte(resultTable(ctx, chosen, verdicts)), 0o600); err != nil {
			return err
		}
	}
	return survivorError(verdicts)
}

// moduleRoot returns the root folder of the module that the patches change.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module; run this inside it: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
