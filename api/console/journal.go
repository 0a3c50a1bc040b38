package console

import (
	"context"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/journal"
)

// A Journal records orders that do not concern a mailbox. [journal.Journal] implements it.
type Journal interface {
	// CarryOut records an order, calls do, and records the outcome.
	CarryOut(ctx context.Context, subject journal.Subject, what, about string, by hub.AdminAction, do func(context.Context) error) error
	// Records returns up to limit records of a subject, newest first.
	Records(ctx context.Context, subject journal.Subject, limit int) ([]journal.Record, error)
}

// showRecords shows the records of orders that concern a subject. back is the path of the subject's
// page.
func (v *visit) showRecords(title, about string, subject journal.Subject, back string) error {
	found, err := v.opts.Journal.Records(v.ctx(), subject, shownRecords)
	if err != nil {
		return err
	}
	t := tableView{
		caption: "Orders, the newest first, in UTC",
		columns: []column{{title: "When"}, {title: "What"}, {title: "Who"}, {title: "Why"}, {title: "About"}, {title: "Outcome"}},
		empty:   "No operator has given an order about this.",
	}
	for i := range found {
		r := &found[i]
		outcome := bdi(r.Outcome)
		if r.Outcome == "" {
			outcome = g.Text("not known; it is under way, or its node has ended")
		}
		t.rows = append(t.rows, []g.Node{moment(r.When), g.Text(r.What), bdi(r.Who), bdi(r.Why), bdi(r.About), outcome})
	}
	return v.show(&view{title: title, about: about, body: []g.Node{
		g.If(v.r.URL.Query().Get("done") != "" && len(found) > 0, notice(good, h.P(g.Text("The order was carried out. Its record is the first below.")))),
		t.render(),
		h.P(h.A(h.Href(back), g.Text("Back to the page"))),
	}})
}

// actionLinks returns a list of links. It omits nil links, which orderLink returns if the operator
// may not give the order.
func actionLinks(links ...g.Node) g.Node {
	return h.Ul(h.Class("actions"), g.Map(links, func(n g.Node) g.Node {
		if n == nil {
			return nil
		}
		return h.Li(n)
	}))
}

// orderLink returns a link to the form of an order, or nil if the operator may not give orders.
func (v *visit) orderLink(href, text string) g.Node {
	if !v.mayOrder() {
		return nil
	}
	return h.A(h.Href(href), g.Text(text))
}
