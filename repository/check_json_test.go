package repository_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository"
)

func TestCheckReport_HasBothNamesOfRepairedInJSON(t *testing.T) {
	report := repository.CheckReport{Found: 2, Repaired: 1, Findings: []repository.Finding{
		{Rule: "H5", Kind: "pointer", Recipient: "a", Where: "head", Text: "too low", Repaired: true},
		{Rule: "H2", Kind: "overlap", Recipient: "a", Where: "gate", Text: "two bundles", Damage: true},
	}}
	text, err := json.Marshal(&report)
	require.NoError(t, err)
	require.JSONEq(t, `{"recipients":0,"cabinets":0,"drawers":0,"events":0,"open":0,"found":2,"repaired":1,"mended":1,"findings":[
		{"rule":"H5","kind":"pointer","recipient":"a","where":"head","text":"too low","damage":false,"repaired":true,"mended":true},
		{"rule":"H2","kind":"overlap","recipient":"a","where":"gate","text":"two bundles","damage":true,"repaired":false,"mended":false}]}`, string(text))
	var back repository.CheckReport
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, report, back)
}

func TestCheckReport_OfAnOlderHubIsRead(t *testing.T) {
	var report repository.CheckReport
	require.NoError(t, json.Unmarshal([]byte(`{"found":1,"mended":1,"findings":[{"rule":"H5","kind":"pointer","mended":true}]}`), &report))
	require.True(t, report.Clean())
	require.True(t, report.Findings[0].Repaired)
}

func TestCheckReport_LeavesOutFindingsThatAreNil(t *testing.T) {
	text, err := json.Marshal(repository.CheckReport{})
	require.NoError(t, err)
	require.NotContains(t, string(text), "findings")
	text, err = json.Marshal(repository.CheckReport{Findings: []repository.Finding{}})
	require.NoError(t, err)
	require.Contains(t, string(text), `"findings":[]`)
}
