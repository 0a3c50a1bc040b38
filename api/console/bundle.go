package console

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
)

// bundlePage is the maximum number of events of a bundle on one page.
const bundlePage = 200

// bundleKinds maps the state of a bundle to the style of its badge.
var bundleKinds = map[repository.BundleState]badgeKind{
	repository.BundleOpen: warn, repository.BundleDequeued: good, repository.BundleSkipped: bad, repository.BundleReleased: mild,
}

// linkToBundle returns the path of a bundle's page.
func linkToBundle(actor domain.ActorID, id domain.BundleID) string {
	return link("mailboxes", actor.String(), "bundles", id.String())
}

// bundleAnchor returns a link to a bundle's page.
//
//go:noinline
func bundleAnchor(actor domain.ActorID, id domain.BundleID) g.Node {
	return h.A(h.Href(linkToBundle(actor, id)), code(id.String()))
}

// bundle shows a bundle with its events, without their payloads.
func (v *visit) bundle() error {
	actor, err := v.actor()
	if err != nil {
		return err
	}
	id, err := v.bundleID()
	if err != nil {
		return err
	}
	from, err := v.offset()
	if err != nil {
		return err
	}
	b, err := v.opts.Operator.Bundle(v.ctx(), actor, id)
	if err != nil {
		return err
	}
	body := []g.Node{
		v.factsOfBundle(b),
		g.If(b.Frozen, notice(warn, h.P(g.Text("The mailbox is frozen: its actor can neither peek nor dequeue.")))),
		h.Ul(
			h.Class("actions"),
			h.Li(h.A(h.Href(link("mailboxes", actor.String())), g.Text("The mailbox"))),
			h.Li(h.A(h.Href(withQuery(link("find"), "id", id.String(), "actor", actor.String())), g.Text("What has happened to it"))),
			g.If(v.mayOrder(), g.Group{
				g.If(b.HasEvents() && !b.IsUnanswered(), h.Li(h.A(h.Href(linkToBundle(actor, id)+"/look"), g.Text("Look at its body")))),
				g.If(b.State == repository.BundleOpen, g.Group{
					h.Li(h.A(h.Href(withQuery(link("mailboxes", actor.String(), "orders", "release"), "bundle", id.String())), g.Text(findOrder("release").button))),
					h.Li(h.A(h.Href(withQuery(link("mailboxes", actor.String(), "orders", "skip"), "bundle", id.String())), g.Text(findOrder("skip").button))),
				}),
			}),
		),
		h.H2(g.Text("Events")),
	}
	events, err := v.eventsOfBundle(b, from)
	if err != nil {
		return err
	}
	return v.show(&view{title: "Bundle", about: id.String(), body: append(body, events...)})
}

// offset returns the index of the first event on the page, which it reads from the query.
func (v *visit) offset() (int, error) {
	text := v.r.URL.Query().Get("from")
	if text == "" {
		return 0, nil
	}
	from, err := strconv.Atoi(text)
	if err != nil || from < 0 {
		return 0, domain.Errorf(domain.Invalid, "from: want a number of events, got %q", domain.Shorten(text))
	}
	return from, nil
}

// factsOfBundle returns what is stored about a bundle, without its events.
func (v *visit) factsOfBundle(b *hub.RetainedBundle) g.Node {
	now := v.opts.Clock()
	all := []fact{
		{"State", badge(bundleKinds[b.State], string(b.State))},
		{"Actor", anchor(link("mailboxes", b.Cabinet.Recipient.String()), b.Cabinet.Recipient.String())},
		{"Group", bdi(b.Group.String())},
		{"Origin", bdi(b.Cabinet.Origin.String())},
		{"Content type", bdi(b.Cabinet.ContentType.String())},
		{"Document types", bdi(b.MessageType())},
		{"Events", number(int64(b.Count))},
		{"Weight in KB", number(int64(b.Weight))},
		{"Numbers", g.Text(groupDigits(int64(b.First)) + " to " + groupDigits(int64(b.Last)))},
		{"Composed by the first Peek", g.Group{moment(b.Opened), g.Text(" (" + age(b.Opened, now) + " ago)")}},
	}
	if b.State != repository.BundleOpen {
		all = append(all, fact{"Closed", g.Group{moment(b.Closed), g.Text(" (" + age(b.Closed, now) + " ago)")}})
	}
	if !b.Peeked.IsZero() {
		all = append(all, fact{"Trace of that Peek", h.A(h.Href(withQuery(link("find"), "id", b.Peeked.TraceID.String())), code(b.Peeked.TraceID.String()))})
	}
	all = append(all, fact{"Content", g.Text(string(b.Content) + ", as " + string(b.Format))})
	if b.Body.Length > 0 {
		all = append(all, fact{"Bytes of the body", number(b.Body.Length)})
	}
	if b.Content == domain.Request {
		all = append(all, fact{"Domain", stateOfDomain(&b.Bundle)})
	}
	return facts(all...)
}

// eventsOfBundle returns a page of the events of a bundle, in order, starting at index from.
func (v *visit) eventsOfBundle(b *hub.RetainedBundle, from int) ([]g.Node, error) {
	if !b.HasEvents() {
		return []g.Node{h.P(h.Class("empty"), g.Text("The events of the bundle are no longer retained."))}, nil
	}
	t := tableView{
		caption: "Events in the order in which the actor gets them, in UTC",
		columns: []column{{title: "Event"}, {title: "Number", isNumber: true}, {title: "Document type"}, {title: "Weight in KB", isNumber: true}, {title: "Bundled with others"}, {title: "Bytes of the payload", isNumber: true}, {title: "Saved"}},
		empty:   "The bundle has no events in this part.",
	}
	from = min(from, b.Count)
	actor, index := b.Cabinet.Recipient, 0
	for e, err := range b.Events(v.ctx()) {
		if err != nil {
			return nil, err
		}
		if index >= from+bundlePage {
			break
		}
		if index++; index <= from {
			continue
		}
		bundling := "may be"
		if !e.SupportsBundling {
			bundling = "never"
		}
		t.rows = append(t.rows, []g.Node{
			h.A(h.Href(withQuery(link("find"), "id", e.ID.String(), "actor", actor.String())), code(e.ID.String())),
			number(int64(e.Sequence)), bdi(e.DocumentType.String()), number(int64(e.Weight)), g.Text(bundling), number(e.PayloadAt.Length), moment(e.Saved),
		})
	}
	first, next := "", ""
	if from > 0 {
		first = linkToBundle(actor, b.ID)
	}
	if end := from + bundlePage; end < b.Count {
		next = withQuery(linkToBundle(actor, b.ID), "from", strconv.Itoa(end))
	}
	shown := h.P(g.Text("Events " + groupDigits(int64(from)+1) + " to " + groupDigits(int64(from+len(t.rows))) + " of " + groupDigits(int64(b.Count)) + "."))
	return []g.Node{g.If(first+next != "" && len(t.rows) > 0, shown), t.render(), pager(first, next)}, nil
}

// viewBundle shows the body of a bundle, after it has recorded the operator and the reason.
func (v *visit) viewBundle() error {
	actor, err := v.actor()
	if err != nil {
		return err
	}
	id, err := v.bundleID()
	if err != nil {
		return err
	}
	b, err := v.opts.Operator.Bundle(v.ctx(), actor, id)
	if err != nil {
		return err
	}
	var seen *hub.BodyExcerpt
	return v.confirm(&confirmation{
		title: "Look at bundle", about: id.String(), button: "Show the body",
		effect: "The page shows the body of the bundle as its actor receives it, with the payloads of its events. Your access is recorded.",
		state: []fact{
			textFact("Actor", actor.String()), textFact("Group", b.Group.String()), textFact("Origin", b.Cabinet.Origin.String()),
			textFact("Content type", b.Cabinet.ContentType.String()), textFact("Events", groupDigits(int64(b.Count))),
		},
		carryOut: func(by hub.AdminAction) (err error) {
			seen, err = v.opts.Operator.ViewBundle(v.ctx(), actor, id, maxShownBody, by)
			return err
		},
		show: func() error { return v.showBody(actor, seen) },
	})
}

// showBody shows the body of a bundle.
func (v *visit) showBody(actor domain.ActorID, seen *hub.BodyExcerpt) error {
	b := &seen.Bundle
	return v.show(&view{title: "Body of bundle", about: b.ID.String(), body: []g.Node{
		notice(good, h.P(g.Text("Your access to this bundle is recorded."))),
		facts(
			fact{"Actor", bdi(actor.String())}, fact{"Origin", bdi(b.Cabinet.Origin.String())}, fact{"Content type", bdi(b.Cabinet.ContentType.String())},
			fact{"Events", number(int64(b.Count))}, fact{"Bytes of the body", number(b.Body.Length)},
		),
		h.H2(g.Text("Body")), shownBody(seen.Body),
		g.If(seen.IsCut, h.P(g.Text("These are its first 100 KB; the rest is not shown."))),
		h.Ul(
			h.Class("actions"),
			h.Li(h.A(h.Href(linkToBundle(actor, b.ID)), g.Text("The bundle"))),
			h.Li(h.A(h.Href(link("mailboxes", actor.String(), "records")), g.Text("Records of operators"))),
		),
	}})
}
