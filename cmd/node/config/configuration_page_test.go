package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the table of settings into the page")

const (
	configurationPage = "../../../deploy/handbook/configuration.md"
	tableBegin        = "## Every setting\n\n"
	tableEnd          = "\n## "
)

// TestConfigurationPage_HasTheTableOfKeys compares the handbook's table of keys
// with the keys of this package. `make pages` writes the table.
func TestConfigurationPage_HasTheTableOfKeys(t *testing.T) {
	text, err := os.ReadFile(configurationPage)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), tableBegin)
	require.True(t, found, "%s has no heading for the table", configurationPage)
	_, after, found := strings.Cut(rest, tableEnd)
	require.True(t, found, "%s has no section after the table", configurationPage)
	want := before + tableBegin + settingsTable() + tableEnd + after
	if *update {
		require.NoError(t, os.WriteFile(configurationPage, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(text), "run make pages")
}

// settingsTable returns a Markdown table of all keys.
func settingsTable() string {
	var b strings.Builder
	b.WriteString("| key | flag | default | meaning |\n| --- | --- | --- | --- |\n")
	c := Default()
	for _, k := range keys {
		flagCell, defaultCell := "", ""
		if k.flag {
			flagCell = "`--" + flagName(k.name) + "`"
		}
		if text := k.in(&c).String(); text != "" {
			defaultCell = "`" + text + "`"
		}
		usage := strings.ReplaceAll(strings.ReplaceAll(k.usage, "`", ""), "|", `\|`)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.name, flagCell, defaultCell, usage)
	}
	return b.String()
}
