package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/docs"
)

func TestHelp_PrintsEachPage(t *testing.T) {
	for _, page := range docs.Pages() {
		got := messagehub(t, "", "help", page.Topic)
		require.Equal(t, result{0, page.Plain(), ""}, got)
		require.Contains(t, got.out, "# "+page.Title+"\n")
	}
}

func TestHelp_PrintsTheSectionOfAnAlert(t *testing.T) {
	for _, name := range []string{"MessageHubDown", "MessageHubGuessedTokens"} {
		got := messagehub(t, "", "help", name)
		require.Equal(t, 0, got.status, got.err)
		require.Regexp(t, `^## `+name+`: `, got.out)
		require.Contains(t, got.out, "**Do:**")
		require.Equal(t, 1, strings.Count("\n"+got.out, "\n## "))
	}
	require.Equal(t, exitUsage, messagehub(t, "", "help", "MessageHub").status)
}

func TestHelp_PrintsTheHelpOfACommand(t *testing.T) {
	for _, args := range [][]string{{"serve"}, {"queue"}, {"queue", "skip"}, {"broker", "sync"}} {
		require.Equal(t, messagehub(t, "", append(args, "--help")...), messagehub(t, "", append([]string{"help"}, args...)...))
	}
}

func TestHelp_ListsPagesAndCommands(t *testing.T) {
	for _, args := range [][]string{{}, {"help"}, {"--help"}} {
		got := messagehub(t, "", args...)
		require.Equal(t, 0, got.status)
		require.Contains(t, got.out, "\n  serve ")
		for _, page := range docs.Pages() {
			require.Regexp(t, `\n  `+page.Topic+` +`+page.Title+`\n`, got.out)
		}
	}
	require.NotContains(t, messagehub(t, "", "help", "serve").out, "Pages of the handbook")
}

func TestHelp_RefusesAnUnknownTopic(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"instal"}, `no topic and no command "instal"; did you mean install?`},
		{[]string{"srve"}, `no topic and no command "srve"; did you mean serve?`},
		{[]string{"weather"}, `no topic and no command "weather"; messagehub help lists both`},
		{[]string{"queue", "melt"}, `no topic and no command "queue melt"; messagehub help lists both`},
		{[]string{"install", "azure"}, `no topic and no command "install azure"; messagehub help lists both`},
	} {
		require.Equal(t, result{2, "", "messagehub: " + tc.want + "\nmessagehub: see messagehub help --help\n"},
			messagehub(t, "", append([]string{"help"}, tc.args...)...))
	}
}

func TestHelp_CompletesTopicsAndCommands(t *testing.T) {
	got := messagehub(t, "", "__complete", "help", "")
	require.Contains(t, got.out, "\ninstall\tInstalling a hub\n")
	require.Contains(t, got.out, "\nserve\tRun the hub\n")
	require.Contains(t, messagehub(t, "", "__complete", "help", "queue", "").out, "\nskip\t")
	require.NotContains(t, messagehub(t, "", "__complete", "help", "queue", "").out, "install")
}

func TestTopics_AreNotNamesOfCommands(t *testing.T) {
	for _, page := range docs.Pages() {
		found, _, err := (&process{args: []string{"messagehub"}}).root().Find([]string{page.Topic})
		require.True(t, err != nil || !found.HasParent(), "page %s could not be printed: messagehub help %s is the help of the command", page.Topic, page.Topic)
	}
}
