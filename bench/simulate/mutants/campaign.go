package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// A mutantCampaign tests mutants one after the other.
type mutantCampaign struct {
	seeds     int
	control   int
	processes int
	patience  time.Duration

	root   string // folder of the module
	dir    string // folder for built binaries
	memory *verdictMemory
}

// buildAll returns an error that lists the mutants that do not compile.
func (c *mutantCampaign) buildAll(ctx context.Context, chosen []*mutant) error {
	var faults []error
	for i, m := range chosen {
		fmt.Fprintf(os.Stderr, "[%d/%d] %s\n", i+1, len(chosen), m.name)
		if _, err := c.buildTests(ctx, m, m.killer.pkg); err != nil {
			faults = append(faults, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.Join(faults...)
}

// runAll tests the unchanged hub, and then the chosen mutants.
func (c *mutantCampaign) runAll(ctx context.Context, chosen []*mutant) ([]knownVerdict, error) {
	if err := c.tryControl(ctx, chosen); err != nil {
		return nil, err
	}
	var verdicts []knownVerdict
	for i, m := range chosen {
		v, err := c.tryMutant(ctx, m, fmt.Sprintf("[%d/%d] %s", i+1, len(chosen), m.name), c.seeds)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "[%d/%d] %s: %s\n", i+1, len(chosen), m.name, v)
		verdicts = append(verdicts, v)
	}
	return verdicts, nil
}

// tryControl runs the tests of the chosen mutants against the unchanged hub. It returns an error if a test fails,
// because a failure of that test against a mutant would then have no meaning.
func (c *mutantCampaign) tryControl(ctx context.Context, chosen []*mutant) error {
	done := make(map[killer]bool)
	for _, m := range chosen {
		if done[m.killer] {
			continue
		}
		done[m.killer] = true
		asItIs := &mutant{name: "as it is, with " + m.killer.String(), killer: m.killer}
		v, err := c.tryMutant(ctx, asItIs, asItIs.name, c.control)
		if err != nil {
			return err
		}
		if v.Killed {
			return fmt.Errorf("the hub %s: %s; repair that first", asItIs.name, v)
		}
	}
	return nil
}

// tryMutant runs the killer of m against m, unless the verdict is known.
func (c *mutantCampaign) tryMutant(ctx context.Context, m *mutant, name string, seeds int) (knownVerdict, error) {
	binary, err := c.buildTests(ctx, m, m.killer.pkg)
	if err != nil {
		return knownVerdict{}, err
	}
	defer func() { _ = os.Remove(binary) }() // an error is ignored, because the campaign removes the whole folder at its end
	hash, err := hashOf(binary)
	if err != nil {
		return knownVerdict{}, err
	}
	v := c.memory.verdictOf(m.name, hash)
	if v.Killed || v.Survived >= seeds || !m.killer.seeded && v.Survived > 0 {
		return v, nil
	}
	if m.killer.seeded {
		s := &seedSearch{mutantCampaign: c, binary: binary, name: name, verdict: v, upTo: seeds}
		return s.runSearch(ctx)
	}
	began := time.Now()
	out, failed, err := c.runBinary(ctx, binary, m.killer.pkg, 0, "-test.run", m.killer.pattern, "-test.count=1")
	if err != nil {
		return v, err
	}
	v.Seconds = time.Since(began).Seconds()
	v.Killed, v.Survived = failed, 1
	if failed {
		v.By, v.Survived = failedTest(out), 0
	}
	return v, c.memory.noteVerdict(v)
}

// buildTests compiles the tests of a package against m, and returns the binary.
func (c *mutantCampaign) buildTests(ctx context.Context, m *mutant, pkg string) (string, error) {
	dir, err := os.MkdirTemp(c.dir, "")
	if err != nil {
		return "", err
	}
	replace, err := m.writeFiles(c.root, dir)
	if err != nil {
		return "", err
	}
	instead, tags, err := writeOverlay(ctx, dir, replace, pkg == simulation.pkg)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(c.dir, "mutant.test")
	// With -trimpath and without a version-control stamp, the same code always compiles to the same binary.
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-buildvcs=false", "-vet=off", "-tags", tags, "-overlay", instead, "-o", binary, pkg) //nolint:gosec // the arguments come from the patches of this repository
	cmd.Dir = c.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mutant %s does not compile: %w\n%s", m.name, err, out)
	}
	return binary, nil
}

// runBinary runs a test binary in the folder of its package, and reports whether the test failed. threads is the
// maximum number of processors; 0 means no limit.
func (c *mutantCampaign) runBinary(ctx context.Context, binary, pkg string, threads int, args ...string) (out string, failed bool, err error) {
	cmd := exec.CommandContext(ctx, binary, append(args, "-test.timeout", c.patience.String())...) //nolint:gosec // buildTests made the binary
	cmd.Dir = filepath.Join(c.root, filepath.FromSlash(pkg))
	cmd.Env = append(os.Environ(), "MESSAGEHUB_EVERY_CASE=1")
	if threads > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("GOMAXPROCS=%d", threads))
	}
	before := rapidFailures(cmd.Dir)
	text, err := cmd.CombinedOutput()
	for _, file := range rapidFailures(cmd.Dir) {
		if !slices.Contains(before, file) {
			_ = os.Remove(file) // best effort
		}
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", false, ctx.Err()
	case errors.As(err, &exit):
		return string(text), true, nil
	case err != nil:
		return "", false, fmt.Errorf("run %s: %w", binary, err)
	}
	return string(text), false, nil
}

// rapidFailures returns the files in which rapid saved the inputs of failed tests. They must be removed, because a
// later run of a test begins with its saved inputs. An input that failed for one mutant may fail for the next mutant
// for an unrelated reason.
func rapidFailures(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, "testdata", "rapid", "*", "*.fail")) // the pattern is valid
	return files
}

func hashOf(file string) (hash string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
