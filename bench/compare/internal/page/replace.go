package page

import (
	"fmt"
	"os"
	"strings"

	"github.com/messagehub/messagehub/bench/record"
	"github.com/messagehub/messagehub/bench/report"
)

// Replace replaces the scenarios of r in an existing page, and counts the targets of the page
// again. Each replaced scenario contains the time of its measurement. The other scenarios and the
// price list are not changed, so one scenario can be measured again without the others.
func Replace(r *report.Report, path, plots string) error {
	link, err := linkTo(path, plots)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	parts := strings.Split(string(text), betweenParts)
	for _, s := range r.Sections {
		part := sectionText(r, s, link) + fmt.Sprintf("\nMeasured on %s at commit %s, by `%s`.\n",
			r.Began.UTC().Format("2006-01-02 15:04 UTC"), r.Commit, r.Command)
		parts = replacePart(parts, s.Scenario, part)
	}
	for i := range parts {
		if heading(parts[i]) == targetsHeading {
			parts[i] = countTargets(parts)
		}
	}
	return record.WriteFile(path, []byte(strings.Join(parts, betweenParts)))
}

const (
	targetsHeading = "Targets"
	pricesHeading  = "Price list"
)

func heading(part string) string {
	line, _, _ := strings.Cut(part, "\n")
	return line
}

// replacePart replaces the part with the same heading. It inserts a new part before the price list.
func replacePart(parts []string, name, part string) []string {
	at := len(parts)
	for i := range parts {
		switch heading(parts[i]) {
		case name:
			parts[i] = part
			return parts
		case pricesHeading:
			at = i
		}
	}
	return append(parts[:at:at], append([]string{part}, parts[at:]...)...)
}
