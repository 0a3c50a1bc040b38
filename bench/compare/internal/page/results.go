package page

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/record"
	"github.com/messagehub/messagehub/bench/report"
)

// Write writes r as a page for people, RESULTS.md. The page shows the plots that
// WritePlots has written into a folder.
func Write(r *report.Report, path, plots string) error {
	link, err := linkTo(path, plots)
	if err != nil {
		return err
	}
	return record.WriteFile(path, []byte(markdown(r, link)))
}

// linkTo returns the path of the folder of plots relative to the page.
func linkTo(path, plots string) (string, error) {
	from, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(plots)
	if err != nil {
		return "", err
	}
	link, err := filepath.Rel(from, to)
	return filepath.ToSlash(link), err
}

// markdown returns the page; plots is the relative path of the folder of plots.
func markdown(r *report.Report, plots string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What the bench measured\n\nWritten by `go run ./bench/compare`; do not edit.\n\n")
	size := "full"
	if r.Quick {
		size = "quick: smaller and shorter than the full size"
	}
	for _, fact := range [][2]string{
		{"command", "`" + r.Command + "`"},
		{"date", fmt.Sprintf("%s, took %s", r.Began.UTC().Format("2006-01-02 15:04 UTC"), r.Took.Round(time.Second))},
		{"commit", r.Commit},
		{"machine", r.Machine},
		{"Go", r.Go},
		{"seed", fmt.Sprint(r.Seed)},
		{"size", size},
		{"account", r.Where},
	} {
		fmt.Fprintf(&b, "- %s: %s\n", fact[0], fact[1])
	}
	fmt.Fprintf(&b, "\n%s\n", r.Origin())
	parts := []string{b.String()}
	for _, section := range r.Sections {
		parts = append(parts, sectionText(r, section, plots))
	}
	parts = slices.Insert(parts, 1, countTargets(parts))
	if prices := priceList(r.Curves()); prices != "" {
		parts = append(parts, prices)
	}
	return strings.Join(parts, betweenParts)
}

// betweenParts joins the parts of a page: the first part describes the run, and each later part
// begins with its heading.
const betweenParts = "\n## "

// sectionText returns the part of the page about one scenario.
func sectionText(r *report.Report, s *report.Section, plots string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s.\n", s.Scenario, capitalize(strings.TrimSuffix(s.About, ".")))
	if s.Err != nil {
		fmt.Fprintf(&b, "\n%s %s\n", notComplete, tableCell(s.Err.Error()))
	}
	if len(s.Figures) > 0 {
		b.WriteString("\n| layout | metric | value | target | |\n| --- | --- | ---: | --- | --- |\n")
	}
	for _, f := range s.Figures {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", tableCell(f.Layout), tableCell(f.Metric), amountText(f), report.FormatTarget(f.Target), r.Mark(f))
	}
	for _, p := range groupPictures(s.Curves) {
		fmt.Fprintf(&b, "\n![%s](%s/%s)\n", p.titleText(), plots, p.fileName())
	}
	return b.String()
}

const notComplete = "**Not complete:**"

// amountText returns a value with its unit.
func amountText(f figure.Figure) string {
	return strings.TrimSpace(report.FormatNumber(f.Value) + " " + tableCell(f.Unit))
}

// tableCell escapes a text for a cell of a table.
func tableCell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}

// capitalize returns s with an upper-case first letter.
func capitalize(s string) string {
	_, size := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:size]) + s[size:]
}
