package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/messagehub/messagehub/cmd/terminal"
)

// Responses of a hub below /v1/admin/queues. The types contain only the members
// that tables need.

type storedQueue struct {
	Recipient string `json:"recipient"`
	Frozen    bool   `json:"frozen"`
	Freeze    *struct {
		When time.Time `json:"when"`
		Who  string    `json:"who"`
		Why  string    `json:"why"`
	} `json:"freeze"`
	Watermark int64 `json:"watermark"`
	Reserved  int64 `json:"reserved"`
	Saving    bool  `json:"saving"`
	Groups    []struct {
		Group      string        `json:"group"`
		Generation int64         `json:"generation"`
		Waiting    int64         `json:"waiting"`
		Open       *storedBundle `json:"open"`
	} `json:"groups"`
	Cabinets []storedCabinet `json:"cabinets"`
}

type storedCabinet struct {
	Origin       string `json:"origin"`
	ContentType  string `json:"contentType"`
	Received     int64  `json:"received"`
	Acknowledged int64  `json:"acknowledged"`
	Last         int64  `json:"last"`
	Through      int64  `json:"through"`
	Floor        int    `json:"floor"`
	Drawers      []struct {
		ID       string `json:"id"`
		Ordinal  int    `json:"ordinal"`
		First    int64  `json:"first"`
		Events   int    `json:"events"`
		Weight   int64  `json:"weight"`
		Sealed   bool   `json:"sealed"`
		Position int    `json:"position"`
	} `json:"drawers"`
}

type storedBundle struct {
	BundleID string    `json:"bundleId"`
	Events   int       `json:"events"`
	Opened   time.Time `json:"opened"`
	Domain   *struct {
		Answered bool   `json:"answered"`
		Failures int    `json:"failures"`
		Reason   string `json:"reason"`
		Text     string `json:"text"`
		Marked   bool   `json:"marked"`
	} `json:"domain"`
}

type storedRecords struct {
	Records []struct {
		When     time.Time `json:"when"`
		Who      string    `json:"who"`
		Why      string    `json:"why"`
		What     string    `json:"what"`
		Group    string    `json:"group"`
		BundleID string    `json:"bundleId"`
		Events   int       `json:"events"`

		Lost *storedLoss `json:"lost"`
	} `json:"records"`
}

type storedLoss struct {
	Origin      string `json:"origin"`
	ContentType string `json:"contentType"`
	Events      int64  `json:"events"`
	First       int64  `json:"first"`
	Last        int64  `json:"last"`
	Slots       []struct {
		Drawer  string `json:"drawer"`
		Ordinal int    `json:"ordinal"`
		From    int    `json:"from"`
		To      int    `json:"to"`
	} `json:"slots"`
}

// String describes the lost events, with one line for each range of slots.
func (l *storedLoss) String() string {
	text := fmt.Sprintf("%s of %s %s, with sequences from %d to %d", terminal.CountOf(l.Events, "event"),
		terminal.Printable(l.Origin), terminal.Printable(l.ContentType), l.First, l.Last)
	for _, s := range l.Slots {
		text += fmt.Sprintf("\n    slots %d to %d of drawer %d (%s)", s.From, s.To-1, s.Ordinal, terminal.Printable(s.Drawer))
	}
	return text
}

// drawersShown is the maximum number of drawers per cabinet in a table. --json
// prints all drawers.
const drawersShown = 8

// isUnknown reports whether nothing was ever stored for the recipient of the
// queue.
func (q *storedQueue) isUnknown() bool {
	for i := range q.Groups {
		if g := &q.Groups[i]; g.Generation > 0 || g.Open != nil {
			return false
		}
	}
	return q.Watermark == 0 && q.Reserved == 0 && !q.Saving && !q.Frozen && len(q.Cabinets) == 0
}

// showQueue prints a queue in at most 100 columns, unless it contains extremely
// large numbers.
func (p *process) showQueue(q *storedQueue) error {
	state := ""
	if q.Frozen {
		state += ", frozen"
	}
	if q.Saving {
		state += ", events are being stored"
	}
	fmt.Fprintf(p.out, "%s\nsequence %d visible, %d reserved%s\n", q.Recipient, q.Watermark, q.Reserved, state)
	if f := q.Freeze; f != nil {
		fmt.Fprintf(p.out, "frozen at %s by %s: %s\n", f.When.UTC().Format(time.RFC3339), terminal.Printable(f.Who), terminal.Printable(f.Why))
	}
	fmt.Fprintln(p.out)
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "GROUP\tWAITING\tGATE\tOPEN BUNDLE\tEVENTS\tOPENED")
	for i := range q.Groups {
		g := &q.Groups[i]
		open := "-\t-\t-"
		if b := g.Open; b != nil {
			open = fmt.Sprintf("%s\t%d\t%s", b.BundleID, b.Events, b.Opened.UTC().Format(time.RFC3339))
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", terminal.Clip(g.Group, 14), g.Waiting, g.Generation, open)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range q.Groups {
		p.showDomain(q.Groups[i].Open)
	}
	if len(q.Cabinets) == 0 {
		return nil
	}
	fmt.Fprintln(p.out)
	fmt.Fprintln(table, "CABINET\tCONTENT TYPE\tRECEIVED\tWAITING\tTHROUGH\tLAST\tDRAWERS")
	for i := range q.Cabinets {
		c := &q.Cabinets[i]
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\n", terminal.Clip(c.Origin, 16), terminal.Clip(c.ContentType, 24), c.Received, c.Received-c.Acknowledged, c.Through, c.Last, len(c.Drawers))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return p.showDrawers(table, q)
}

// showDomain prints why a bundle is waiting for its domain. It prints nothing
// if the bundle is not waiting.
func (p *process) showDomain(b *storedBundle) {
	if b == nil || b.Domain == nil || b.Domain.Answered {
		return
	}
	d := b.Domain
	if d.Failures == 0 {
		fmt.Fprintf(p.out, "\n%s waits for its domain to make the content\n", b.BundleID)
		return
	}
	fmt.Fprintf(p.out, "\n%s waits for its domain, which has failed %d times in a row\n    %s %s\n", b.BundleID, d.Failures, terminal.Printable(d.Reason), terminal.Printable(d.Text))
	if d.Marked {
		fmt.Fprintf(p.out, "    repair the domain, or: queue release | skip %s %s --why ...\n", "ACTOR", b.BundleID)
	}
}

// showDrawers prints those drawers that contain waiting events.
func (p *process) showDrawers(table *tabwriter.Writer, q *storedQueue) error {
	shown, more := 0, 0
	for i := range q.Cabinets {
		c := &q.Cabinets[i]
		rows := 0
		for j := range c.Drawers {
			d := &c.Drawers[j]
			if d.Events == 0 || d.Position >= d.Events {
				continue
			}
			if rows++; rows > drawersShown {
				more++
				continue
			}
			if shown++; shown == 1 {
				fmt.Fprintln(table, "\nDRAWER\tCABINET\tNO\tFIRST\tEVENTS\tDONE\tKB\tSEALED")
			}
			sealed := "-"
			if d.Sealed {
				sealed = "sealed"
			}
			fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", d.ID, terminal.Clip(c.Origin, 14), d.Ordinal, d.First, d.Events, d.Position, d.Weight, sealed)
		}
	}
	err := table.Flush()
	if more > 0 {
		fmt.Fprintf(p.out, "and %d more drawers; --json shows all\n", more)
	}
	return err
}

func (p *process) showRecords(r *storedRecords) error {
	if len(r.Records) == 0 {
		_, err := fmt.Fprintln(p.out, "no order of an operator is recorded for this queue")
		return err
	}
	for _, e := range r.Records {
		about := ""
		if e.BundleID != "" {
			about = fmt.Sprintf(" %s of %s (%d events)", e.BundleID, e.Group, e.Events)
		}
		if e.Lost != nil {
			about = " " + e.Lost.String()
		}
		fmt.Fprintf(p.out, "%s  %s%s\n    by %s: %s\n", e.When.UTC().Format(time.RFC3339), e.What, about, terminal.Printable(e.Who), terminal.Printable(e.Why))
	}
	return nil
}
