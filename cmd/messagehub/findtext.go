package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// Widths in characters: of the time column of a history, and of a line.
const (
	timeColumn = len("2006-01-02T15:04:05.000Z")
	findWidth  = 100
)

// searchedText says how many mailboxes were searched.
func searchedText(l *hubclient.SearchExtent) string {
	text := terminal.CountOf(int64(l.Mailboxes), "mailbox")
	if l.Mailboxes != 1 {
		text = strings.TrimSuffix(text, "xs") + "xes"
	}
	if l.Unread > 0 {
		text += fmt.Sprintf(", of which %s could not be read", terminal.CountOf(int64(l.Unread), "part"))
	}
	return text
}

// findText formats the results of a search as text.
func findText(f *hubclient.Found) string {
	var b strings.Builder
	for i := range f.Results {
		if i > 0 {
			b.WriteByte('\n')
		}
		writeResult(&b, &f.Results[i])
	}
	if len(f.Results) == 0 {
		kinds := strings.Join(f.Looked.Kinds, ", ")
		switch {
		case kinds == "":
			writeWrapped(&b, "", "nothing found")
		case f.Looked.Mailboxes > 0:
			writeWrapped(&b, "", fmt.Sprintf("nothing found as %s, in %s", kinds, searchedText(&f.Looked)))
		default:
			writeWrapped(&b, "", "nothing found as "+kinds)
		}
	}
	for _, d := range f.Looked.Damage {
		writeWrapped(&b, "not read: ", strings.TrimPrefix(d.Actor+": "+d.Reason, ": "))
	}
	for _, note := range f.Looked.Notes {
		writeWrapped(&b, "note: ", note)
	}
	return b.String()
}

func writeResult(b *strings.Builder, r *hubclient.FoundResult) {
	head := fmt.Sprintf("%s: %s", r.Title, r.State)
	if r.Actor != "" {
		head += ", actor " + r.Actor
	}
	fmt.Fprintln(b, terminal.Printable(head))
	for i := range r.Steps {
		step := &r.Steps[i]
		writeWrapped(b, "  "+timeCell(step.At)+"  ", step.Text)
		if len(step.Details) > 0 {
			details := make([]string, len(step.Details))
			for j, d := range step.Details {
				details[j] = d.Name + " " + d.Value
			}
			writeWrapped(b, strings.Repeat(" ", timeColumn+4), strings.Join(details, "; "))
		}
	}
	for i := range r.Waits {
		wait := &r.Waits[i]
		cause := "  waits: " + wait.Cause
		if wait.Since != nil {
			cause += " since " + wait.Since.UTC().Format(time.RFC3339)
		}
		fmt.Fprintln(b, terminal.Printable(cause))
		writeWrapped(b, "    ", wait.Text)
		if wait.Next != "" {
			writeWrapped(b, "    next: ", wait.Next)
		}
	}
	for _, note := range r.Notes {
		writeWrapped(b, "  note: ", note)
	}
}

// timeCell formats a time with the width timeColumn; nil is printed as "-".
func timeCell(t *time.Time) string {
	if t == nil {
		return fmt.Sprintf("%-*s", timeColumn, "-")
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// writeWrapped writes begin followed by a text, in lines of at most findWidth
// characters, unless a single word is longer.
func writeWrapped(b *strings.Builder, begin, text string) {
	line, indent := begin, strings.Repeat(" ", len(begin))
	isEmpty := true
	for _, word := range strings.Fields(terminal.Printable(text)) {
		if !isEmpty && len(line)+1+len(word) > findWidth {
			fmt.Fprintln(b, strings.TrimRight(line, " "))
			line, isEmpty = indent, true
		}
		if !isEmpty {
			line += " "
		}
		line, isEmpty = line+word, false
	}
	fmt.Fprintln(b, strings.TrimRight(line, " "))
}
