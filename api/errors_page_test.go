package api_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/guide"
)

// problemSection matches the heading and the first line of a section about a problem.
var problemSection = regexp.MustCompile(`(?m)^### (\S+)\n\n(.+)\n`)

func TestErrorsPage_HasEachProblemOfTheTable(t *testing.T) {
	text, err := guide.Pages.ReadFile("errors.md")
	require.NoError(t, err)
	onPage := make(map[string]string)
	for _, match := range problemSection.FindAllStringSubmatch(string(text), -1) {
		require.NotContains(t, onPage, match[1], "a second section")
		onPage[match[1]] = match[2]
	}
	want := make(map[string]string)
	for name, p := range api.Problems() {
		want[name] = fmt.Sprintf("**%d** %s.", p.Status, p.Title)
		if p.HasRetryAfter {
			want[name] += " Has `Retry-After`."
		}
	}
	require.Equal(t, want, onPage)
}

func TestErrorsPage_SaysWhatTheClientDoesNext(t *testing.T) {
	text, err := guide.Pages.ReadFile("errors.md")
	require.NoError(t, err)
	for _, section := range strings.Split(string(text), "\n### ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		require.Contains(t, body, "\nNext: ", name)
	}
}
