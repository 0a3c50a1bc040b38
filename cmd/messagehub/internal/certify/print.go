package certify

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/messagehub/messagehub/cmd/terminal"
)

// maxAnswer is the maximum number of runes of an answer in the table.
const maxAnswer = 60

// HasFailed reports whether a check of level must has failed.
func HasFailed(results []Result) bool {
	for _, r := range results {
		if r.Outcome == Failed && r.Level == Must {
			return true
		}
	}
	return false
}

// Print prints a table of results, followed by the advice for each failure.
func Print(w io.Writer, url string, results []Result) error {
	fmt.Fprintf(w, "%s\n\n", url)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "THE RECEIVER\tLEVEL\tRESULT\tANSWER")
	counts := make(map[Outcome]int)
	musts := 0
	for _, r := range results {
		counts[r.Outcome]++
		if r.Answer == notAccepted {
			continue // the first row already says why these checks were skipped
		}
		outcome := string(r.Outcome)
		if r.Outcome == Failed {
			outcome = "FAILED"
			if r.Level == Must {
				musts++
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.Check, r.Level, outcome, terminal.Clip(terminal.Printable(r.Answer), maxAnswer))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%d ok, %d failed (%d of them a must), %d not checked\n", counts[Passed], counts[Failed], musts, counts[NotChecked])
	if slices.ContainsFunc(results, func(r Result) bool { return r.Answer == notSigned }) {
		fmt.Fprintln(w, "The receiver accepts calls without a signature, so it accepts forged calls, too. Sign calls, and check the receiver with\n--secret-file or --hmac-key.")
	}
	printAdvice(w, results)
	return nil
}

// printAdvice prints each piece of advice once, with the names of the failed
// checks to which it applies.
func printAdvice(w io.Writer, results []Result) {
	checks := make(map[string][]string)
	var order []string
	for _, r := range results {
		if r.Outcome != Failed {
			continue
		}
		if checks[r.Advice] == nil {
			order = append(order, r.Advice)
		}
		checks[r.Advice] = append(checks[r.Advice], r.Check)
	}
	if len(order) > 0 {
		fmt.Fprintln(w, "\nWhat to do")
	}
	for _, advice := range order {
		fmt.Fprintf(w, "\n- %s\n", strings.Join(checks[advice], "\n- "))
		for _, line := range wrap(advice, 96) {
			fmt.Fprintf(w, "    %s\n", line)
		}
	}
}

// wrap splits text into lines of at most width bytes, at spaces.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
