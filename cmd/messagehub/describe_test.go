package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A separate program generates man pages from the description, so the
// description must contain every command and flag.
func TestCommands_AreDescribedWithTheirFlags(t *testing.T) {
	got := messagehub(t, "", "commands")
	require.Equal(t, 0, got.status, got.err)
	var root describedCommand
	require.NoError(t, json.Unmarshal([]byte(got.out), &root))
	commands := make(map[string]describedCommand)
	for _, c := range root.Commands {
		commands[c.Use] = c
	}
	require.NotContains(t, commands, "commands", "a hidden command has no page")
	require.Contains(t, commands["serve"].Flags, describedFlag{
		Name: "listen", Type: "string", Default: "127.0.0.1:8080", Usage: flagUsage(t, commands["serve"], "listen"),
	})
	require.Len(t, commands["emulator"].Commands, 3)
	require.Equal(t, 2, messagehub(t, "", "commands", "now").status)
}

func flagUsage(t *testing.T, c describedCommand, name string) string {
	t.Helper()
	for _, f := range c.Flags {
		if f.Name == name {
			require.Contains(t, f.Usage, "`HOST:PORT`")
			return f.Usage
		}
	}
	t.Fatalf("%s has no flag %s", c.Use, name)
	return ""
}
