package page

import (
	"fmt"
	"strings"
)

// countTargets returns the part of a page with the numbers of met and missed targets. It counts
// them in the tables of the other parts.
func countTargets(parts []string) string {
	targets, missed, unfinished := 0, "", ""
	for _, part := range parts[1:] {
		name := heading(part)
		if name == targetsHeading || name == pricesHeading {
			continue
		}
		if strings.Contains(part, "\n"+notComplete) {
			unfinished += fmt.Sprintf("\nScenario %s was not completed: it may have more.\n", name)
		}
		for line := range strings.Lines(part) {
			cells := strings.Split(line, " | ")
			if len(cells) < 5 || strings.TrimSpace(cells[3]) == "" || strings.Contains(line, "| target |") || strings.Contains(line, "---") {
				continue
			}
			targets++
			if strings.Contains(cells[4], "MISSED") {
				missed += fmt.Sprintf("| %s | %s | %s | **%s** | %s |\n", name, strings.TrimPrefix(cells[0], "| "), cells[1], cells[2], cells[3])
			}
		}
	}
	verdict := "No targets"
	switch count := strings.Count(missed, "\n"); {
	case count > 0:
		verdict = fmt.Sprintf("Targets missed: %d of %d", count, targets)
	case targets > 0:
		verdict = fmt.Sprintf("All targets are met, %d of %d", targets, targets)
	}
	text := targetsHeading + "\n\n" + verdict + ".\n" + unfinished
	if missed != "" {
		text += "\n| missed in | layout | metric | value | target |\n| --- | --- | --- | ---: | --- |\n" + missed
	}
	return text
}
