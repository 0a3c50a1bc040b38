package console

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
)

// mailbox shows what is stored for an actor: its groups, and its cabinets with their drawers.
func (v *visit) mailbox() error {
	actor, err := v.actor()
	if err != nil {
		return err
	}
	found, err := v.opts.Operator.Inspect(v.ctx(), actor)
	if err != nil {
		return err
	}
	state := badge(good, "not frozen")
	freezing := "freeze"
	if found.Frozen {
		state, freezing = badge(warn, "frozen"), "thaw"
		freeze, err := v.opts.Operator.FindFreeze(v.ctx(), actor)
		if err != nil {
			return err
		}
		if freeze != nil {
			state = g.Group{state, g.Text(" by "), bdi(freeze.Who), g.Text(", "), moment(freeze.When), g.Text(": "), bdi(freeze.Why)}
		}
	}
	saving := "none is unfinished"
	if found.Saving {
		saving = "one is under way, or was interrupted"
	}
	body := []g.Node{
		facts(
			fact{"State", state}, fact{"Saves", g.Text(saving)},
			fact{"Highest sequence that Peeks see", number(int64(found.Watermark))}, fact{"Highest sequence that Saves have taken", number(int64(found.Reserved))},
		),
		h.Ul(
			h.Class("actions"),
			h.Li(h.A(h.Href(link("mailboxes", actor.String(), "records")), g.Text("Records of operators"))),
			g.If(v.mayOrder(), h.Li(h.A(h.Href(link("mailboxes", actor.String(), "orders", freezing)), g.Text(findOrder(freezing).button)))),
		),
		h.H2(g.Text("Groups")),
	}
	if len(found.Groups) == 0 {
		body = append(body, h.P(h.Class("empty"), g.Text("No event was ever stored here.")))
	}
	for i := range found.Groups {
		group := &found.Groups[i]
		body = append(body, v.group(actor, group, found.Frozen))
	}
	notices, err := v.notices(actor)
	if err != nil {
		return err
	}
	body = append(body, h.H2(g.Text("Notices")), notices)
	if len(found.Cabinets) > 0 {
		body = append(body, h.H2(g.Text("Cabinets")))
	}
	for i := range found.Cabinets {
		body = append(body, v.cabinet(actor, &found, i))
	}
	return v.show(&view{title: "Mailbox of", about: actor.String(), body: body})
}

// group shows a group and its gate.
func (v *visit) group(actor domain.ActorID, group *repository.InspectedGroup, isFrozen bool) g.Node {
	open := group.Open
	all := []fact{{"Waiting events", number(group.Waiting)}}
	var actions []g.Node
	orderLink := func(order string, query ...string) g.Node {
		return h.Li(h.A(h.Href(withQuery(link("mailboxes", actor.String(), "orders", order), query...)), g.Text(findOrder(order).button)))
	}
	if open == nil {
		all = append(all, fact{"Open bundle", g.Text("none")})
		if group.Generation > 0 { // at least one bundle was opened in the group
			actions = append(actions, orderLink("replay", "group", group.Group.String()))
		}
	} else {
		all = append(all,
			fact{"Open bundle", bundleAnchor(actor, open.ID)}, fact{"Opened", g.Group{moment(open.Opened), g.Text(" (" + age(open.Opened, v.opts.Clock()) + " ago)")}},
			fact{"Origin", bdi(open.Cabinet.Origin.String())}, fact{"Content type", bdi(open.Cabinet.ContentType.String())},
			fact{"Events", number(int64(open.Count))}, fact{"Numbers", g.Text(groupDigits(int64(open.First)) + " to " + groupDigits(int64(open.Last)))},
		)
		if open.Content == domain.Request {
			all = append(all, v.factsOfDomain(open)...)
		}
		actions = append(actions, orderLink("release", "bundle", open.ID.String()), orderLink("skip", "bundle", open.ID.String()))
	}
	all = append(all, fact{"Generation of the gate", g.Text(strconv.FormatInt(group.Generation, 10))})
	return h.Section(
		h.Class("group"), h.H3(bdi(group.Group.String())), h.P(g.Text(effectOfGate(group, isFrozen))), facts(all...),
		g.If(v.mayOrder(), h.Ul(h.Class("actions"), g.Group(actions))),
	)
}

// effectOfGate returns a sentence that says how a Peek of the group will end.
func effectOfGate(group *repository.InspectedGroup, isFrozen bool) string {
	switch open := group.Open; {
	case isFrozen:
		return "The mailbox is frozen: Peek and Dequeue fail until it is thawed."
	case open != nil && open.LacksContent():
		return "The open bundle has no content yet: a Peek asks the domain for it. Later events wait until the bundle is dequeued."
	case open != nil:
		return "A bundle is open: each Peek returns it until the actor dequeues it. Later events wait until then."
	case group.Waiting > 0:
		return "No bundle is open: the next Peek opens one with the first events that wait."
	}
	return "No bundle is open, and nothing waits."
}

// factsOfDomain returns the state of the content request for an open bundle, and the time of the
// next request.
func (v *visit) factsOfDomain(b *domain.Bundle) []fact {
	all := []fact{{"Domain", stateOfDomain(b)}}
	if !b.LacksContent() {
		return all
	}
	all = append(all, fact{"Failures in a row", number(int64(b.ContentFailure.Failures))})
	now := v.opts.Clock()
	next := "with the next Peek of the actor"
	if pending, isPending := v.opts.Operator.PendingRequest(b.Cabinet.Recipient, b.ID); isPending {
		next = "under way on this node"
		if pending.Peeks > 0 {
			next += ", for " + strconv.Itoa(pending.Peeks) + pluralOf(pending.Peeks, " Peek", " Peeks")
		}
		if left := pending.Until.Sub(now); left > 0 {
			next += "; the domain has " + duration(left) + " left"
		} else {
			next += "; the domain is late"
		}
	}
	return append(all, fact{"Next attempt", g.Text(next)})
}

// stateOfDomain returns the state of the content request for a bundle.
func stateOfDomain(b *domain.Bundle) g.Node {
	t := b.ContentFailure
	reason := func() g.Node {
		return g.Group{g.Text(" " + strconv.Itoa(t.Failures) + pluralOf(t.Failures, " failure: ", " failures in a row, the last one: ")), bdi(t.Reason), g.Text(" "), bdi(t.Text)}
	}
	switch {
	case !b.LacksContent():
		return badge(good, "has sent the content")
	case t.NeedsOperator():
		return g.Group{badge(bad, "needs an operator"), reason()}
	case t.Failures > 0:
		return g.Group{badge(warn, "fails"), reason()}
	case b.Gone:
		return badge(warn, "has sent content that was deleted")
	}
	return badge(mild, "is asked for the content")
}

// cabinet shows a cabinet with its drawers.
func (v *visit) cabinet(actor domain.ActorID, found *hub.Inspection, i int) g.Node {
	c := &found.Cabinets[i]
	t := tableView{
		caption: "Drawers that are retained",
		columns: []column{{title: "Drawer"}, {title: "First number", isNumber: true}, {title: "Events", isNumber: true}, {title: "Weight in KB", isNumber: true}, {title: "Acknowledged", isNumber: true}, {title: "State"}},
		empty:   "No drawer is retained.",
	}
	var boxes []g.Node
	for _, d := range c.Drawers {
		state := badge(mild, "open")
		if d.Sealed {
			state = badge(good, "sealed")
		}
		t.rows = append(t.rows, []g.Node{
			code(d.ID), number(int64(d.First)), number(int64(d.Events)), number(int64(d.Weight)), number(int64(d.Position)), state,
		})
		boxes = append(boxes, h.Meter(h.Class("drawer"), h.Aria("label", "Drawer "+strconv.Itoa(d.Ordinal)+", acknowledged events"), g.Attr("min", "0"), h.Max(strconv.Itoa(max(1, d.Events))), h.Value(strconv.Itoa(d.Position))))
	}
	return h.Section(
		h.Class("cabinet"),
		h.H3(bdi(c.Cabinet.Origin.String()), g.Text(", "), bdi(c.Cabinet.ContentType.String())),
		facts(
			fact{"Group", bdi(c.Group.String())}, fact{"Received", number(c.Received)}, fact{"Acknowledged", number(c.Acknowledged)},
			fact{"Waiting", number(c.Received - c.Acknowledged)}, fact{"Acknowledged up to", number(int64(c.AcknowledgedThrough))}, fact{"Last number", number(int64(c.Last))},
		),
		h.Div(h.Class("drawers"), g.Group(boxes)),
		h.Details(h.Summary(g.Text("Drawers")), t.render()),
		g.If(v.mayOrder() && c.Received > c.Acknowledged, h.P(h.A(
			h.Href(withQuery(link("mailboxes", actor.String(), "orders", "abandon"), "origin", c.Cabinet.Origin.String(), "contentType", c.Cabinet.ContentType.String())),
			g.Text("Abandon events that the store has lost"),
		))),
	)
}
