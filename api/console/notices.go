package console

import (
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/domain"
)

// shownNotices is the maximum number of notices on a page.
const shownNotices = 20

// audiences maps each kind of recipient of notices to its text on the page.
var audiences = map[domain.Audience]string{
	domain.ForDomain: "the domain", domain.ForSubscribers: "subscriptions of the actor",
	domain.ForWatchers: "watches of the bundle", domain.ForWatchersOfRemoval: "watches of the bundle, which was removed",
}

// notices returns the notices in the outbox of an actor.
func (v *visit) notices(actor domain.ActorID) (g.Node, error) {
	report, err := v.opts.Operator.Notices(v.ctx(), actor)
	if err != nil {
		return nil, err
	}
	if len(report.Waiting) == 0 {
		return h.P(h.Class("empty"), g.Text("No notice waits: all were delivered.")), nil
	}
	now := v.opts.Clock()
	t := tableView{
		caption: "Notices that wait, the first ones of each group, in UTC",
		columns: []column{{title: "Bundle"}, {title: "For"}, {title: "Group"}, {title: "Origin"}, {title: "Left"}, {title: "Waits"}},
	}
	var oldest time.Time
	for i := range report.Waiting {
		n := &report.Waiting[i]
		if oldest.IsZero() || n.Since.Before(oldest) {
			oldest = n.Since
		}
		if i < shownNotices {
			t.rows = append(t.rows, []g.Node{
				bundleAnchor(actor, n.Bundle), g.Text(audiences[n.Audience]), bdi(n.Group.String()), bdi(n.Origin.String()), moment(n.Since), g.Text(age(n.Since, now)),
			})
		}
	}
	stuck := g.Node(badge(good, "none"))
	if report.Stuck.Notices > 0 {
		stuck = g.Group{badge(bad, strconv.Itoa(report.Stuck.Notices)), g.Text(" since " + age(report.Stuck.Oldest, now))}
	}
	return g.Group{
		h.P(g.Text("A Dequeue creates notices for the domain, for subscriptions and for watches. The hub delivers them immediately. If a delivery fails, it logs the error, and retries about every ten seconds.")),
		facts(
			fact{"Waiting", number(int64(len(report.Waiting)))}, fact{"Oldest", g.Text(age(oldest, now))},
			fact{"This node could not deliver", stuck},
		),
		t.render(),
	}, nil
}
