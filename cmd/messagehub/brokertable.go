package main

import (
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain"
)

func (p *process) showMessages(channel string, all []*brokerclient.StoredMessage) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(p.out, "channel %s has no such messages\n", channel)
		return err
	}
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MESSAGE\tPRIORITY\tSTATUS\tRECEIVED\tPRODUCER\tID OF THE PRODUCER\tTYPE")
	for _, m := range all {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", terminal.Printable(m.ID), m.Priority, terminal.Printable(m.Status),
			m.Received.UTC().Format(time.RFC3339), terminal.Printable(m.Producer), shorten(m.ProducerMessageID, 40), shorten(m.ContentType, 40))
	}
	return table.Flush()
}

// showMessage prints a message, followed by one line for each of its jobs.
func (p *process) showMessage(channel string, m *brokerclient.StoredMessage) error {
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(table, "%s\t%s\n", name, terminal.Printable(value))
		}
	}
	line("message", m.ID)
	line("channel", channel)
	line("status", m.Status)
	line("priority", fmt.Sprint(m.Priority))
	line("producer", m.Producer)
	line("id of the producer", m.ProducerMessageID)
	line("received", m.Received.UTC().Format(time.RFC3339Nano))
	line("type", m.ContentType)
	for _, name := range slices.Sorted(maps.Keys(m.Metadata)) {
		line("header", name+": "+m.Metadata[name])
	}
	line("payload", terminal.CountOf(int64(len(m.Payload)), "byte")+"; --payload prints it")
	if err := table.Flush(); err != nil {
		return err
	}
	if len(m.Jobs) == 0 {
		_, err := fmt.Fprintln(p.out, "\nno consumer was registered before the message")
		return err
	}
	fmt.Fprintln(p.out)
	fmt.Fprintln(table, "CONSUMER\tSTATUS\tATTEMPTS\tDUE\tLAST ANSWER")
	for i := range m.Jobs {
		j := &m.Jobs[i]
		due := "-"
		if !j.Due.IsZero() {
			due = j.Due.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", terminal.Printable(j.Consumer), terminal.Printable(j.Status), j.Attempts, due, lastAnswer(j))
	}
	return table.Flush()
}

// lastAnswer describes how a job's last attempt ended.
func lastAnswer(j *brokerclient.Job) string {
	if len(j.History) == 0 {
		return "-"
	}
	a := &j.History[len(j.History)-1]
	switch {
	case a.Error != "":
		return shorten(a.Error, 60)
	case a.Status == 0:
		return "no answer"
	}
	return fmt.Sprintf("status %d", a.Status)
}

func (p *process) showDeadLetters(consumer domain.PartyID, all []*brokerclient.Job) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(p.out, "%s of %s has no dead letters\n", consumer, consumer.Channel())
		return err
	}
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MESSAGE\tATTEMPTS\tLAST ATTEMPT\tLAST ANSWER")
	for _, j := range all {
		last := "-"
		if n := len(j.History); n > 0 {
			last = j.History[n-1].Began.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", terminal.Printable(j.Message), j.Attempts, last, lastAnswer(j))
	}
	return table.Flush()
}

func (p *process) showBundle(consumer domain.PartyID, b *brokerclient.Bundle) error {
	fmt.Fprintf(p.out, "bundle %s of %s\n\n", terminal.Printable(b.ID), terminal.CountOf(int64(len(b.Messages)), "message"))
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MESSAGE\tPRIORITY\tRECEIVED\tTYPE\tBYTES")
	for i := range b.Messages {
		m := &b.Messages[i]
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%d\n", terminal.Printable(m.ID), m.Priority, m.Received.UTC().Format(time.RFC3339), shorten(m.ContentType, 40), len(m.Payload))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.out, "\nconfirm them with: messagehub broker dequeue %s %s %s\n", consumer.Channel(), consumer, terminal.Printable(b.ID))
	return err
}
