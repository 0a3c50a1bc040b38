package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// showSubscriptions prints a table of subscriptions.
func (p *process) showSubscriptions(actor string, all []*hubclient.Subscription) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(p.out, "%s has no subscriptions\n", actor)
		return err
	}
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SUBSCRIPTION\tTOPIC\tSTATE\tSIGNED\tCALLS")
	for _, s := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", s.ID, terminal.Clip(terminal.Printable(s.Topic), 20), stateOf(s), yesNo(s.Signed), terminal.Clip(terminal.Printable(s.CallbackURL), 60))
	}
	return table.Flush()
}

func stateOf(s *hubclient.Subscription) string {
	if s.Delivery != nil {
		return s.Delivery.State
	}
	if s.Paused {
		return "paused"
	}
	return "active"
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// showSubscription prints a subscription, one member per line.
func (p *process) showSubscription(s *hubclient.Subscription) error {
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(table, "%s\t%s\n", name, terminal.Printable(value))
		}
	}
	line("subscription", s.ID.String())
	line("owner", s.Owner.String())
	line("state", stateOf(s))
	line("topic", s.Topic)
	line("calls", s.Method+" "+s.CallbackURL)
	line("encoding", s.Encoding)
	for _, name := range slices.Sorted(maps.Keys(s.FormFields)) {
		line("form field", name+"="+s.FormFields[name])
	}
	if len(s.FormFields) > 0 {
		line("message in field", s.PayloadFormField)
	}
	line("signed", yesNo(s.Signed))
	line("HMAC key id", s.HMACKeyID)
	line("filter", s.Filter)
	for _, name := range slices.Sorted(maps.Keys(s.Attachments)) {
		line("attachment", name+"="+s.Attachments[name])
	}
	for _, name := range s.HeaderNames {
		line("header", name)
	}
	if s.IsSync {
		line("delivery", "sync: senders wait for the only attempt")
	}
	if s.MaxRate > 0 {
		line("at most", strconv.FormatFloat(s.MaxRate, 'f', -1, 64)+" calls per second")
	}
	if s.MaxConcurrency > 0 {
		line("at most", strconv.Itoa(s.MaxConcurrency)+" calls at the same time")
	}
	if s.IsOrdered {
		line("order", "one call at a time, in the order of the events")
	}
	if d := s.Delivery; d != nil {
		if !d.Until.IsZero() {
			line("no calls before", d.Until.UTC().Format(time.RFC3339))
		}
		line("failures", fmt.Sprintf("%d in a row", d.Failures))
		for _, w := range d.Warnings {
			line("warning", w.Detail)
		}
		line("events", fmt.Sprintf("%d delivered, %d filtered, %d waiting, %d dead letters, %d expired", d.Delivered, d.Filtered, d.Waiting, d.Dead, d.Expired))
	}
	line("created", s.Created.UTC().Format(time.RFC3339))
	if len(s.Unknown) > 0 {
		line("unknown members", strings.Join(s.Unknown, ", "))
	}
	return table.Flush()
}
