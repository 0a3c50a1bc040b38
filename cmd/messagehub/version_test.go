package main

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionAsJSON_HasCommitFormatsAndModules(t *testing.T) {
	got := messagehub(t, "", "version", "--json")
	require.Equal(t, 0, got.status, got.err)
	var report buildReport
	require.NoError(t, json.Unmarshal([]byte(got.out), &report))
	require.Equal(t, "dev", report.Version)
	require.Equal(t, runtime.Version(), report.Go)
	require.NotEmpty(t, report.Commit)
	require.NotEmpty(t, report.Date)
	require.Equal(t, 3, report.Formats["events"]["head"])
	require.NotEmpty(t, report.Modules["github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"])
}
