package domain

import (
	"slices"
	"strings"
)

// maxPatches is how many patch jobs facts remember. A job that a crash has interrupted is resumed within
// minutes; with one, a second job would hide the first, and its patch would be applied twice.
const maxPatches = 4

// HasPatch reports whether a patch job has changed the facts.
func (f *ObjectFacts) HasPatch(job JobID) bool {
	return slices.Contains(strings.Fields(f.Patches), job.UUID())
}

// NotePatch notes that a patch job has changed the facts.
func (f *ObjectFacts) NotePatch(job JobID) {
	all := append(strings.Fields(f.Patches), job.UUID())
	f.Patches = strings.Join(all[max(len(all)-maxPatches, 0):], " ")
}
