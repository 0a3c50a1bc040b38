package domain

import (
	"slices"
	"strings"
)

// maxPatches is the number of patch jobs that facts remember. A job that was interrupted by a
// crash is resumed within minutes. If facts remembered only one, a second job would hide the
// first, and the first patch would be applied twice.
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
