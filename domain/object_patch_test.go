package domain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
)

func TestFactsRememberTheLastPatches(t *testing.T) {
	var facts domain.ObjectFacts
	for n := range byte(10) {
		id := func(n byte) domain.JobID {
			return domain.NewJobID(domain.PatchJob, objecttest.FirstMoment, [10]byte{n})
		}
		require.False(t, facts.HasPatch(id(n)))
		facts.NotePatch(id(n))
		for before := range n + 1 {
			require.Equal(t, n-before < 4, facts.HasPatch(id(before)), "%d after %d", before, n)
		}
	}
}
