package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/messagehub/messagehub/bench/simulate/seeded"
)

//go:embed patches/*.patch
var files embed.FS

// A mutant is the hub with one rule broken.
type mutant struct {
	name      string
	rule      string // the rule, and the behaviour of the mutant
	invariant string // the invariant that the rule protects
	killer    killer
	patches   []patch
}

// A killer is a test that must fail for a mutant.
type killer struct {
	pkg     string // package of the test, such as ./cosmos
	pattern string // regular expression for the name of the test, as for go test -run
	seeded  bool   // true if the test is the simulation
}

var simulation = killer{pkg: "./bench/simulate", pattern: "^TestSeeds$", seeded: true}

func (k killer) String() string {
	if k.seeded {
		return "simulate"
	}
	return "go test " + k.pkg + " -run " + k.pattern
}

// readMutants returns all mutants, sorted by file name.
func readMutants() ([]*mutant, error) {
	entries, err := files.ReadDir("patches")
	if err != nil {
		return nil, err
	}
	var all []*mutant
	for _, e := range entries {
		text, err := files.ReadFile("patches/" + e.Name())
		if err != nil {
			return nil, err
		}
		m, err := parseMutant(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		m.name = strings.TrimSuffix(e.Name(), ".patch")
		all = append(all, m)
	}
	return all, nil
}

// parseMutant reads a patch and the lines above it:
//
//	Rule: the rule and the mutation, on several lines if needed,
//	  all but the first indented
//	Invariant: the invariant that does not hold without the rule
//	Killer: simulate, or go test PACKAGE -run PATTERN
func parseMutant(text string) (*mutant, error) {
	preamble, patches, err := parseDiff(text)
	if err != nil {
		return nil, err
	}
	m := &mutant{patches: patches}
	for line := range strings.Lines(strings.ReplaceAll(preamble, "\n  ", " ")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Rule":
			m.rule = value
		case "Invariant":
			m.invariant = value
		case "Killer":
			if m.killer, err = parseKiller(value); err != nil {
				return nil, err
			}
		case "":
		default:
			return nil, fmt.Errorf("%q is neither Rule, Invariant nor Killer", line)
		}
	}
	if m.rule == "" || m.invariant == "" || m.killer.pkg == "" {
		return nil, errors.New("a line Rule, Invariant or Killer is missing above the patch")
	}
	return m, nil
}

func parseKiller(text string) (killer, error) {
	if text == "simulate" {
		return simulation, nil
	}
	words := strings.Fields(text)
	if len(words) != 5 || words[0] != "go" || words[1] != "test" || words[3] != "-run" {
		return killer{}, fmt.Errorf("killer %q: want simulate, or go test PACKAGE -run PATTERN", text)
	}
	return killer{pkg: words[2], pattern: words[4]}, nil
}

// patchedFiles returns the patched content of each file that m changes, by path.
func (m *mutant) patchedFiles(root string) (map[string]string, error) {
	changed := make(map[string]string)
	for i := range m.patches {
		p := &m.patches[i]
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p.path)))
		if err != nil {
			return nil, fmt.Errorf("mutant %s: %w", m.name, err)
		}
		if changed[p.path], err = p.applyTo(string(source)); err != nil {
			return nil, fmt.Errorf("mutant %s: %w", m.name, err)
		}
	}
	return changed, nil
}

// writeFiles writes the patched files into dir. It returns a map from each original path to the path of the patched
// file.
func (m *mutant) writeFiles(root, dir string) (map[string]string, error) {
	changed, err := m.patchedFiles(root)
	if err != nil {
		return nil, err
	}
	replace := make(map[string]string)
	for path, source := range changed {
		instead := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(instead, []byte(source), 0o600); err != nil {
			return nil, err
		}
		replace[filepath.Join(root, filepath.FromSlash(path))] = instead
	}
	return replace, nil
}

// writeOverlay writes the file for the flag -overlay, and returns its name and the build tags. If repeats is true and
// package seeded supports this version of Go, the file also contains the overlay of package seeded.
func writeOverlay(ctx context.Context, dir string, replace map[string]string, repeats bool) (name, tags string, err error) {
	if repeats {
		name, err = seeded.Overlay(ctx, dir, replace)
		if !errors.Is(err, seeded.ErrOther) {
			return name, seeded.Tag, err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", "", err
	}
	name = filepath.Join(dir, "overlay.json")
	return name, "", os.WriteFile(name, text, 0o600)
}
