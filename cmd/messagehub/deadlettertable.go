package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/terminal"
)

func (p *process) showDeadLetterQueues(queues []hubclient.DeadLetterQueue) error {
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "QUEUE\tDEAD LETTERS\tSENT AGAIN\tUSE")
	for i := range queues {
		q := &queues[i]
		count, resend := "?", "yes"
		if q.DeadLetters != nil {
			count = fmt.Sprint(*q.DeadLetters)
		}
		if q.NoResend != "" {
			resend = "no"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", terminal.Printable(q.Queue), count, resend, shorten(q.Use, 50))
	}
	return table.Flush()
}

func (p *process) showLettersOfQueue(queue string, texts []json.RawMessage) error {
	if len(texts) == 0 {
		_, err := fmt.Fprintf(p.out, "%s has no such dead letters\n", terminal.Printable(queue))
		return err
	}
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NUMBER\tENQUEUED\tREASON\tSESSION\tBYTES\tMESSAGE ID")
	for _, text := range texts {
		var d hubclient.DeadLetter
		if err := json.Unmarshal(text, &d); err != nil {
			return fmt.Errorf("the answer cannot be read: %w", err)
		}
		session := "-"
		if d.Session != nil {
			session = shorten(*d.Session, 36)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\n", terminal.Printable(d.SequenceNumber), d.Enqueued.UTC().Format(time.RFC3339), shorten(d.Reason, 24), session, d.Bytes, shorten(d.MessageID, 36))
	}
	return table.Flush()
}

func (p *process) showDeadLetter(d *hubclient.DeadLetter) error {
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(p.out, "%-14s %s\n", name, printableLines(text))
		}
	}
	line("number", d.SequenceNumber)
	line("message id", d.MessageID)
	if d.Session != nil {
		line("session", *d.Session)
	}
	line("enqueued", d.Enqueued.UTC().Format(time.RFC3339))
	line("reason", d.Reason)
	line("description", d.Description)
	line("deliveries", fmt.Sprint(d.DeliveryCount))
	line("content type", d.ContentType)
	line("subject", d.Subject)
	line("sent again by", d.ResentBy)
	for _, name := range slices.Sorted(maps.Keys(d.Properties)) {
		if name != "DeadLetterReason" && name != "DeadLetterErrorDescription" {
			line("property", name+" = "+d.Properties[name])
		}
	}
	what := ""
	if d.IsCut {
		what = ", of which this is the beginning"
	}
	if d.Text == nil {
		_, err := fmt.Fprintf(p.out, "\nbody, in base64, %s%s:\n%s\n", terminal.CountOf(d.Bytes, "byte"), what, terminal.Printable(d.Base64))
		return err
	}
	_, err := fmt.Fprintf(p.out, "\nbody, %s%s:\n%s\n", terminal.CountOf(d.Bytes, "byte"), what, printableLines(*d.Text))
	return err
}

// printableLines applies terminal.Printable to each line of text.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = terminal.Printable(strings.TrimSuffix(lines[i], "\r"))
	}
	return strings.Join(lines, "\n")
}

func (p *process) showDeadLetterRecords(records []hubclient.DeadLetterRecord) error {
	if len(records) == 0 {
		_, err := fmt.Fprintln(p.out, "no order of an operator is recorded for the dead letters of this queue")
		return err
	}
	for i := range records {
		r := &records[i]
		about := terminal.CountOf(int64(r.Count), "dead letter")
		if r.SequenceNumber != "" {
			about = "dead letter " + r.SequenceNumber
		}
		if r.Reason != "" {
			about += " (" + r.Reason + ")"
		}
		outcome := r.Outcome
		if outcome == "" {
			outcome = "without an outcome: it is being carried out, or its node has died"
		}
		fmt.Fprintf(p.out, "%s  %s %s: %s\n    by %s: %s\n", r.When.UTC().Format(time.RFC3339), terminal.Printable(r.What), terminal.Printable(about), terminal.Printable(outcome), terminal.Printable(r.Who), terminal.Printable(r.Why))
	}
	return nil
}
