package page

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/record"
	"github.com/messagehub/messagehub/bench/report"
)

// Write writes r to a page for people, RESULTS.md, which shows the plots that WritePlots
// has written into a folder.
func Write(r *report.Report, path, plots string) error {
	from, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return err
	}
	to, err := filepath.Abs(plots)
	if err != nil {
		return err
	}
	link, err := filepath.Rel(from, to)
	if err != nil {
		return err
	}
	return record.WriteFile(path, []byte(markdown(r, filepath.ToSlash(link))))
}

// markdown returns the page; plots is the folder of the plots as seen from there.
func markdown(r *report.Report, plots string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What the bench measured\n\n`go run ./bench/compare` wrote this; do not edit it.\n\n")
	size := "whole"
	if r.Quick {
		size = "quick: smaller and shorter than the whole"
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
	writeTargets(&b, r)
	pictures := pictures(r.Curves())
	for _, s := range r.Sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n", s.Scenario, capital(strings.TrimSuffix(s.About, ".")))
		if s.Err != nil {
			fmt.Fprintf(&b, "\n**Not complete:** %s\n", cell(s.Err.Error()))
		}
		if len(s.Figures) > 0 {
			b.WriteString("\n| layout | metric | value | target | |\n| --- | --- | ---: | --- | --- |\n")
		}
		for _, f := range s.Figures {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", cell(f.Layout), cell(f.Metric), amount(f), report.FormatTarget(f.Target), r.Mark(f))
		}
		for _, p := range pictures {
			if p.scenario == s.Scenario {
				fmt.Fprintf(&b, "\n![%s](%s/%s)\n", p.title(), plots, p.file())
			}
		}
	}
	writePrices(&b, r.Curves())
	return b.String()
}

// writeTargets begins with what is missed.
func writeTargets(b *strings.Builder, r *report.Report) {
	fmt.Fprintf(b, "\n## Targets\n\n%s.\n", capital(r.Verdict()))
	for _, s := range r.Sections {
		if s.Err != nil {
			fmt.Fprintf(b, "\nScenario %s was not completed: it may have more.\n", s.Scenario)
		}
	}
	missed := r.Missed()
	if len(missed) == 0 {
		return
	}
	b.WriteString("\n| missed in | layout | metric | value | target |\n| --- | --- | --- | ---: | --- |\n")
	for _, f := range missed {
		fmt.Fprintf(b, "| %s | %s | %s | **%s** | %s |\n", cell(f.Scenario), cell(f.Layout), cell(f.Metric), amount(f), report.FormatTarget(f.Target))
	}
}

// amount is a value with its unit.
func amount(f figure.Figure) string {
	return strings.TrimSpace(report.FormatNumber(f.Value) + " " + cell(f.Unit))
}

// cell keeps a text in its cell of a table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}

// capital begins a sentence.
func capital(s string) string {
	_, size := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:size]) + s[size:]
}
