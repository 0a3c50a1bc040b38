package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain"
)

// showDeliveries prints a table of deliveries.
func (p *process) showDeliveries(id domain.SubscriptionID, texts []json.RawMessage) error {
	if len(texts) == 0 {
		_, err := fmt.Fprintf(p.out, "%s has no such deliveries\n", id)
		return err
	}
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DELIVERY\tSTATE\tATTEMPTS\tDUE\tEVENT\tTYPE\tLAST ANSWER")
	for _, text := range texts {
		var d hubclient.MessageDelivery
		if err := json.Unmarshal(text, &d); err != nil {
			return fmt.Errorf("the answer cannot be read: %w", err)
		}
		event, kind := "?", "?"
		if d.Event != nil {
			event, kind = shorten(d.Event.ID, 40), shorten(d.Event.Type, 30)
		}
		due, answer := "-", "-"
		if !d.Due.IsZero() {
			due = d.Due.UTC().Format(time.RFC3339)
		}
		if d.Last != nil {
			answer = shorten(answerOf(d.Last), 60)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", terminal.Printable(d.ID), terminal.Printable(d.State), d.Attempts, due, event, kind, answer)
	}
	return table.Flush()
}

func shorten(text string, limit int) string {
	if text == "" {
		return "-"
	}
	return terminal.Clip(terminal.Printable(text), limit)
}

// answerOf describes how an attempt ended.
func answerOf(a *hubclient.Attempt) string {
	switch {
	case a.Error != "":
		return a.Error
	case a.Status == 0:
		return "no answer"
	}
	return fmt.Sprintf("status %d", a.Status)
}

// showDelivery prints a delivery, followed by one line for each attempt.
func (p *process) showDelivery(d *hubclient.MessageDelivery) error {
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(table, "%s\t%s\n", name, terminal.Printable(value))
		}
	}
	line("delivery", d.ID)
	line("state", d.State)
	if d.Inferred {
		line("", "no attempt is stored any longer; the state follows from the progress of the subscription and its filter")
	}
	if d.Event != nil {
		line("event", d.Event.ID)
		line("type", d.Event.Type)
		line("source", d.Event.Source)
	}
	if !d.Published.IsZero() {
		line("published", d.Published.UTC().Format(time.RFC3339Nano))
	}
	line("attempts", fmt.Sprint(d.Attempts))
	if !d.Due.IsZero() {
		line("next attempt", d.Due.UTC().Format(time.RFC3339))
	}
	line("reason", d.Reason)
	for i := range d.History {
		a := &d.History[i]
		took := time.Duration(a.Duration * float64(time.Millisecond)).Round(time.Microsecond)
		line(fmt.Sprintf("attempt %d", a.Number), fmt.Sprintf("%s, %s: %s", a.Began.UTC().Format(time.RFC3339), took, answerOf(a)))
	}
	return table.Flush()
}

func (d *deliveriesCommand) showExplanation(x *hubclient.Explanation) error {
	p := d.p
	event := ""
	if e := x.Delivery.Event; e != nil {
		event = fmt.Sprintf(" of %s (%s)", shorten(e.ID, 60), shorten(e.Type, 60))
	}
	fmt.Fprintf(p.out, "%s%s is %s.\n", terminal.Printable(x.Delivery.ID), event, terminal.Printable(x.Delivery.State))
	for _, sentence := range x.Sentences {
		fmt.Fprintln(p.out, terminal.Printable(sentence))
	}
	for i, a := range x.Actions {
		if i == 0 {
			fmt.Fprintln(p.out, "\nYou can:")
		}
		action := cmp.Or(d.commandFor(a.Method, a.Path), a.Method+" "+a.Path)
		fmt.Fprintf(p.out, "  %s: %s\n", terminal.Printable(action), terminal.Printable(a.Text))
	}
	return nil
}

// commandFor returns the command that sends a request about a subscription or a delivery, or "" if
// no command does. These commands need the actor, so it returns "" if an operator omitted --actor.
func (d *deliveriesCommand) commandFor(method, path string) string {
	parts := strings.Split(strings.TrimPrefix(path, "/v1/"), "/")
	if d.actor == "" || method != http.MethodPost || len(parts) != 3 {
		return ""
	}
	things, id, verb := parts[0], parts[1], parts[2]
	isKnown := false
	switch things + " " + verb {
	case "subscriptions resume", "subscriptions test":
		_, err := domain.ParseSubscriptionID(id)
		isKnown = err == nil
	case "deliveries replay":
		_, err := domain.ParseDeliveryID(id)
		isKnown = err == nil
	}
	if !isKnown {
		return ""
	}
	command := fmt.Sprintf("%s %s %s %s --actor %s", programName(d.p.args[0]), things, verb, id, d.actor)
	of := &d.p.access
	for _, flag := range []struct{ name, value, otherwise string }{
		{"url", d.url, hubclient.DefaultURL}, {"token-file", of.tokenFile, ""}, {"ca", of.ca, ""}, {"cert", of.cert, ""}, {"key", of.key, ""},
	} {
		if flag.value != flag.otherwise {
			command += " --" + flag.name + " " + terminal.ShellWord(flag.value)
		}
	}
	return command
}
