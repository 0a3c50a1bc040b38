package domain

import (
	"slices"
	"strings"
)

// maxPatches is the limit for the job ids in ObjectFacts.Patches. If a crash interrupts a job, the
// job is resumed within minutes. With a limit of 1, the id of a second job would replace the id of
// the first, and the first patch would be applied twice.
const maxPatches = 4

// HasPatch reports whether a patch job has changed the facts.
func (f *ObjectFacts) HasPatch(job JobID) bool {
	return slices.Contains(strings.Fields(f.Patches), job.UUID())
}

// NotePatch records that a patch job has changed the facts.
func (f *ObjectFacts) NotePatch(job JobID) {
	all := append(strings.Fields(f.Patches), job.UUID())
	f.Patches = strings.Join(all[max(len(all)-maxPatches, 0):], " ")
}
