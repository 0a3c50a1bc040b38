package console

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// shownRecords is the maximum number of records on a page.
const shownRecords = 200

// records shows the records of operators' orders for the mailbox of an actor.
func (v *visit) records() error {
	actor, err := v.actor()
	if err != nil {
		return err
	}
	found, err := v.opts.Operator.Records(v.ctx(), actor, shownRecords)
	if err != nil {
		return err
	}
	t := tableView{
		caption: "Orders, the newest first, in UTC",
		columns: []column{{title: "When"}, {title: "What"}, {title: "Who"}, {title: "Why"}, {title: "About"}, {title: "Events", isNumber: true}},
		empty:   "No operator has given an order about this mailbox.",
	}
	for i := range found {
		t.rows = append(t.rows, rowOfRecord(actor, &found[i]))
	}
	done := findOrder(v.r.URL.Query().Get("done"))
	return v.show(&view{
		title: "Records of", about: actor.String(),
		body: []g.Node{
			g.Iff(done != nil && len(found) > 0, func() g.Node {
				return notice(good, h.P(g.Text("The order was carried out: "+done.name+". Its record is the first below.")))
			}),
			t.render(),
			g.If(len(found) == shownRecords, h.P(g.Text("Older records: messagehub queue records "), code(actor.String()))),
			h.P(h.A(h.Href(link("mailboxes", actor.String())), g.Text("The mailbox"))),
		},
	})
}

func rowOfRecord(actor domain.ActorID, r *hub.Record) []g.Node {
	about, events := g.Node(g.Text("the mailbox")), int64(r.Events)
	switch {
	case r.Lost != nil:
		about = g.Group{bdi(r.Lost.Cabinet.Origin.String()), g.Text(", "), bdi(r.Lost.Cabinet.ContentType.String())}
		events = r.Lost.Events
	case r.Bundle != (domain.BundleID{}):
		about = g.Group{g.Text("bundle "), bundleAnchor(actor, r.Bundle), g.Text(" of "), bdi(r.Group.String())}
	}
	count := number(events)
	if events == 0 {
		count = g.Text("–")
	}
	return []g.Node{moment(r.When), g.Text(r.What), bdi(r.Who), bdi(r.Why), about, count}
}
