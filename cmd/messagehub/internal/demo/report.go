package demo

import (
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/messagehub/messagehub/bench/ledger"
)

// printReport prints the figures of each actor, and whether all events were
// received.
func (d *Demo) printReport(v *ledger.Verdict) {
	out := d.Out
	fmt.Fprintf(out, "Sent in %s, drained in %s, %d actors at a time.\n\n",
		d.sending.Round(100*time.Millisecond), d.draining.Round(100*time.Millisecond), actorsAtOnce)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cells ...any) {
		for _, c := range cells {
			fmt.Fprintf(table, "%v\t", c)
		}
		fmt.Fprintln(table)
	}
	row("actor", "", "role", "clients", "events", "bundles", "KB", "peek p50", "p99", "dequeue p50", "p99", "RU")
	var events, bundles int
	var bytes int64
	var peeks, dequeues []time.Duration
	var units float64
	var heaviest tally
	for i, a := range d.market.Actors {
		t, u := d.tallies[i], d.meter.unitsOf(a.GLN)
		row(a.GLN, a.Name, a.Role, clientsText(i), t.events, t.bundles, t.bytes/1024,
			milliseconds(percentileOf(t.peeks, 50)), milliseconds(percentileOf(t.peeks, 99)),
			milliseconds(percentileOf(t.dequeues, 50)), milliseconds(percentileOf(t.dequeues, 99)), fmt.Sprintf("%.0f", u))
		events, bundles, bytes, units = events+t.events, bundles+t.bundles, bytes+t.bytes, units+u
		if t.largest > heaviest.largest {
			heaviest.largest, heaviest.largestPeek = t.largest, t.largestPeek
		}
		peeks, dequeues = append(peeks, t.peeks...), append(dequeues, t.dequeues...)
	}
	row("all", "", "", "", events, bundles, bytes/1024, milliseconds(percentileOf(peeks, 50)), milliseconds(percentileOf(peeks, 99)),
		milliseconds(percentileOf(dequeues, 50)), milliseconds(percentileOf(dequeues, 99)), fmt.Sprintf("%.0f", units))
	_ = table.Flush() // standard output: an error cannot be reported

	sent, background := d.meter.unitsOf(causeSend), d.meter.unitsOf(causeBackground)
	fmt.Fprintf(out, "\nTimes are milliseconds of whole HTTP exchanges, bodies included. RU are the request units of an actor's\n")
	fmt.Fprintf(out, "requests, as the embedded engine counts them; sending took %.0f RU (%.2f an event), background work %.0f, in total %.0f.\n",
		sent, sent/float64(max(1, d.Events+d.Backlog)), background, sent+background+units)
	fmt.Fprintf(out, "The largest bundle had %d events; its Peek took %s ms.\n\n", heaviest.largest, milliseconds(heaviest.largestPeek))
	fmt.Fprint(out, v.Details())
	fmt.Fprintln(out, v)
}

// clientsText describes how an actor fetches its data.
func clientsText(actor int) string {
	if isCalled(actor) {
		return "called"
	}
	return strconv.Itoa(1 + countIf(hasTwoClients(actor)))
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
