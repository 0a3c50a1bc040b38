package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPerformancePage_HasFiguresOfTheBench compares each figure on the page
// with the file that the bench writes.
func TestPerformancePage_HasFiguresOfTheBench(t *testing.T) {
	root := moduleRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "deploy", "handbook", "performance.md"))
	require.NoError(t, err)
	results, err := os.ReadFile(filepath.Join(root, "bench", "RESULTS.md"))
	require.NoError(t, err)
	figures := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		figures++
		scenario, metric, value := strings.Trim(strings.TrimSpace(cells[1]), "`"), strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])
		_, section, found := strings.Cut(string(results), "\n## "+scenario+"\n")
		require.True(t, found, "no scenario %s", scenario)
		section, _, _ = strings.Cut(section, "\n## ")
		require.Contains(t, section, "| "+metric+" | "+value+" |", "scenario %s", scenario)
	}
	require.Greater(t, figures, 10)
}
