package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// survivorError returns an error that names the surviving mutants.
func survivorError(verdicts []knownVerdict) error {
	var names []string
	for _, v := range verdicts {
		if !v.Killed {
			names = append(names, v.Mutant)
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("%d mutants survive: %s", len(names), strings.Join(names, ", "))
	}
	return nil
}

// resultTable returns the results of all mutants as a Markdown table.
func resultTable(ctx context.Context, all []*mutant, verdicts []knownVerdict) string {
	var b strings.Builder
	killed, seeds := 0, []int{}
	for i, m := range all {
		if !verdicts[i].Killed {
			continue
		}
		killed++
		if m.killer.seeded {
			seeds = append(seeds, verdicts[i].Seeds)
		}
	}
	slices.Sort(seeds)
	fmt.Fprintf(&b, "# Mutants: the hub without one of its rules\n\nWritten by `make mutants`; do not edit.\n\n")
	fmt.Fprintf(&b, "- commit: %s\n- machine: %d cores, %s/%s\n- Go: %s\n\n", currentCommit(ctx), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	fmt.Fprintf(&b, "%d of %d mutants were killed, %d of them by the simulation", killed, len(all), len(seeds))
	if len(seeds) > 0 {
		fmt.Fprintf(&b, ": half of these within %d seeds, the last within %d", seeds[(len(seeds)-1)/2], seeds[len(seeds)-1])
	}
	b.WriteString(". Each patch shows what its mutant leaves out.\nSeeds are tried from 0. Seconds are the wall-clock time of the search.\n\n")
	b.WriteString("| mutant | the rule, and what the mutant does instead | invariant | killed by | seeds to kill | seconds |\n|---|---|---|---|---|---|\n")
	for i, m := range all {
		v := verdicts[i]
		by, toKill := v.By, "-"
		switch {
		case !v.Killed:
			by = "**no test**"
			if m.killer.seeded {
				toKill = fmt.Sprintf("> %d", v.Survived)
			}
		case m.killer.seeded:
			toKill = fmt.Sprint(v.Seeds)
		}
		fmt.Fprintf(&b, "| [%s](patches/%s.patch) | %s | %s | %s | %s | %.1f |\n", m.name, m.name, m.rule, m.invariant, by, toKill, v.Seconds)
	}
	return b.String()
}

// currentCommit returns the abbreviated hash of the checked-out commit, with a suffix if the tree has uncommitted
// changes. If git fails, currentCommit returns "unknown".
func currentCommit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	id := strings.TrimSpace(string(out))
	if changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", "*.go", "go.mod", "*.patch").Output(); err != nil || len(changed) > 0 {
		id += ", and changes"
	}
	return id
}
