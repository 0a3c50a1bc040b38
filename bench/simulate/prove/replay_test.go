package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplay_RunsASeedOrOneSimulationOfIt(t *testing.T) {
	whole, err := parseSeed("7022")
	require.NoError(t, err)
	require.Contains(t, replayArgs(whole, "3,4"), "-simulate.only=")
	require.Contains(t, replayArgs(whole, "3,4"), "-simulate.drop=3,4")
	part, err := parseSeed("7022/mailboxes")
	require.NoError(t, err)
	require.Contains(t, replayArgs(part, ""), "-simulate.from=7022")
	require.Contains(t, replayArgs(part, ""), "-simulate.only=mailboxes")
}

func TestReplay_ExplainsAWrongSeed(t *testing.T) {
	for _, text := range []string{"x", "-1", "7022/", "7022,7023", "/mailboxes"} {
		err := runCommand(t.Context(), []string{"-replay", text})
		require.ErrorContains(t, err, "want a number such as 7022, or a number and a simulation such as 7022/mailboxes", text)
	}
}

func TestDrop_NeedsAReplay(t *testing.T) {
	_, err := parseFlags([]string{"-drop", "3"})
	require.ErrorContains(t, err, "-drop needs -replay")
	_, err = parseFlags([]string{"-replay", "1", "-drop", "3"})
	require.NoError(t, err)
}
