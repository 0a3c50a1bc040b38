package node_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// upgradingPage is the handbook page that lists all formats for operators.
const upgradingPage = "../../deploy/handbook/upgrading.md"

// A formatRow is a row of a table of formats on the page.
type formatRow struct {
	part, kind    string
	format, level int // level is 0 for a file format
}

// formatRows returns the rows of all tables of formats.
func formatRows(t *testing.T) (rows []formatRow) {
	t.Helper()
	text, err := os.ReadFile(upgradingPage)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 7 && len(cells) != 5 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		format, err := strconv.Atoi(cells[2])
		if err != nil {
			continue // a heading
		}
		row := formatRow{part: cells[0], kind: cells[1], format: format}
		if len(cells) == 7 {
			row.level, err = strconv.Atoi(cells[3])
			require.NoError(t, err, line)
		}
		require.NotContains(t, cells, "", line)
		rows = append(rows, row)
	}
	return rows
}

func TestUpgradingPage_HasEveryFormatOfTheCode(t *testing.T) {
	var want, have []formatRow
	for area, kinds := range node.Formats() {
		for kind, highest := range kinds {
			for format := 1; format <= highest; format++ {
				want = append(want, formatRow{part: area, kind: kind, format: format})
			}
		}
	}
	for name, format := range node.FileFormats() {
		want = append(want, formatRow{part: name, format: format})
	}
	for _, row := range formatRows(t) {
		require.LessOrEqual(t, row.level, node.HighestLevel(), "%v", row)
		row.level = 0
		if _, isFile := node.FileFormats()[row.part]; isFile {
			row.kind = "" // this column describes files instead of a kind of documents
		}
		have = append(have, row)
	}
	require.ElementsMatch(t, want, have)
}

// Higher formats than these require a new level, so that no node writes them
// while an older node runs.
func TestLevel1_HasTheFormatsOfVersionsBeforeLevels(t *testing.T) {
	highest := map[string]int{"events head": 3, "objects job": 2}
	for _, row := range formatRows(t) {
		if row.level == 1 {
			require.LessOrEqual(t, row.format, max(highest[row.part+" "+row.kind], 1), "%v", row)
		}
	}
}
