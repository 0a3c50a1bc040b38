package client

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestContainerSpec_RefusesIndexesThatLagBehind parses policies that accounts may have and the embedded
// engine refuses.
func TestContainerSpec_RefusesIndexesThatLagBehind(t *testing.T) {
	const list = `"includedPaths":[{"path":"/recipient/?"},{"path":"/kind/?"},{"path":"/more/?"}],"excludedPaths":[{"path":"/*"}]`
	spec := &ContainerSpec{Name: "bundles", PartitionKey: "/recipient", Expires: true, Index: []IndexPath{{Path: "/kind/?"}}}
	for policy, want := range map[string]string{
		`{"indexingMode":"lazy","automatic":true,` + list + `}`:        "indexing mode is lazy, want consistent",
		`{"indexingMode":"consistent","automatic":false,` + list + `}`: "indexing mode is manual (automatic: false), want consistent",
	} {
		s := parsedContainer(t, `{"id":"bundles","partitionKey":{"kind":"Hash","paths":["/recipient"],"version":2},"defaultTtl":-1,"indexingPolicy":`+policy+`}`)
		found := spec.compare(s)
		require.Len(t, found, 1)
		require.ErrorContains(t, found[0], want)
		body, changes, err := spec.correct(s, false)
		require.NoError(t, err)
		require.Len(t, changes, 1)
		corrected := parsedContainer(t, string(body))
		for _, m := range spec.compare(corrected) {
			require.True(t, m.Warning, m.Text)
		}
		require.Len(t, corrected.Indexing.Included, 3, "paths of others stay")
	}
}

func parsedContainer(t *testing.T, text string) *containerState {
	t.Helper()
	s := &containerState{raw: []byte(text)}
	require.NoError(t, json.Unmarshal(s.raw, s))
	return s
}
