package domain

import (
	"slices"
	"strings"
)

// maxPatches is the maximum number of job ids in ObjectFacts.Patches. After a crash, a job is
// resumed within minutes. With a limit of 1, a second job's id would replace the first job's id,
// and the first patch would be applied twice.
const maxPatches = 4

// HasPatch reports whether the given patch job has already changed f.
func (f *ObjectFacts) HasPatch(job JobID) bool {
	return slices.Contains(strings.Fields(f.Patches), job.UUID())
}

// NotePatch records that the given patch job has changed f.
func (f *ObjectFacts) NotePatch(job JobID) {
	all := append(strings.Fields(f.Patches), job.UUID())
	f.Patches = strings.Join(all[max(len(all)-maxPatches, 0):], " ")
}
