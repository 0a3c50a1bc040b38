package console

import (
	"context"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/survey"
)

// A MailboxLister lists mailboxes of all actors. [survey.Service] implements it.
type MailboxLister interface {
	// List returns a page of the mailboxes that match q.
	List(ctx context.Context, q survey.Query) (survey.Page, error)
}

// mailboxes lists the mailboxes of all actors, as the last survey found them.
func (v *visit) mailboxes() error {
	query := v.r.URL.Query()
	if name := strings.TrimSpace(query.Get("actor")); name != "" {
		actor, err := domain.ParseActorID(name)
		if err == nil {
			return v.redirect(link("mailboxes", actor.String()))
		}
		return v.showMailboxes(query.Get("state"), query.Get("sort"), "", toSentence(err), name)
	}
	return v.showMailboxes(query.Get("state"), query.Get("sort"), query.Get("after"), "", "")
}

func (v *visit) showMailboxes(state, sort, after, fault, name string) error {
	body := []g.Node{
		h.Form(
			h.Class("filters"), h.Method("get"), h.Action(link("mailboxes")),
			field{name: "actor", label: "Actor", value: name, fault: fault, kind: "search", isOptional: true}.render(),
			choiceField{name: "state", label: "State", value: state, options: stateOptions()}.render(),
			choiceField{name: "sort", label: "Order", value: sort, options: []navigationEntry{{string(survey.ByAge), "oldest event first"}, {string(survey.ByEvents), "most events first"}}}.render(),
			button("Show"),
		),
	}
	if v.opts.Mailboxes == nil {
		return v.show(&view{title: "Mailboxes", body: append(body, h.P(g.Text("This hub does not survey its mailboxes. Type the name of an actor to see its mailbox.")))})
	}
	page, err := v.opts.Mailboxes.List(v.ctx(), survey.Query{State: domain.MailboxState(state), Order: survey.Order(sort), After: after})
	if err != nil {
		return err
	}
	surveyed := g.Group{g.Text("as of "), moment(page.SurveyedAt), g.Text(", " + age(page.SurveyedAt, v.opts.Clock()) + " ago")}
	if page.SurveyedAt.IsZero() {
		surveyed = g.Group{g.Text("while the first survey still reads; mailboxes may be missing")}
	}
	t := tableView{
		caption: "Mailboxes",
		columns: []column{{title: "Actor"}, {title: "State"}, {title: "Waiting", isNumber: true}, {title: "Oldest"}, {title: "Open since"}, {title: "Last Peek"}, {title: "Last Dequeue"}},
		empty:   "No mailbox is in this list.",
	}
	for i := range page.Mailboxes {
		t.rows = append(t.rows, v.rowOfMailbox(&page.Mailboxes[i]))
	}
	first := ""
	if after != "" {
		first = withQuery(link("mailboxes"), "state", state, "sort", sort)
	}
	next := ""
	if page.Next != "" {
		next = withQuery(link("mailboxes"), "state", state, "sort", sort, "after", page.Next)
	}
	body = append(body,
		h.P(number(int64(page.Matching)), g.Text(pluralOf(page.Matching, " mailbox, ", " mailboxes, ")), surveyed, g.Text(".")),
		t.render(), pager(first, next),
	)
	return v.show(&view{title: "Mailboxes", body: body})
}

// pluralOf returns one if n is 1, and otherwise many.
func pluralOf(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func stateOptions() []navigationEntry {
	options := []navigationEntry{{"", "any"}}
	for _, s := range domain.MailboxStates {
		options = append(options, navigationEntry{string(s), string(s)})
	}
	return options
}

// stateKinds maps the state of a mailbox to the style of its badge.
var stateKinds = map[domain.MailboxState]badgeKind{
	domain.MailboxEmpty: mild, domain.MailboxWaiting: good, domain.MailboxOpen: good,
	domain.MailboxFailing: bad, domain.MailboxFrozen: warn, domain.MailboxDamaged: bad,
}

func (v *visit) rowOfMailbox(m *domain.Mailbox) []g.Node {
	now, waiting := v.opts.Clock(), m.Waiting()
	var open g.Group
	for i := range m.Groups {
		if group := &m.Groups[i]; group.Open != (domain.BundleID{}) {
			if open != nil {
				open = append(open, g.Text(", "))
			}
			open = append(open, g.Text(age(group.Opened, now)+" in "), bdi(group.Group.String()))
		}
	}
	if open == nil {
		open = g.Group{g.Text("–")}
	}
	ago := func(text string) g.Node {
		if text == "–" {
			return g.Text(text)
		}
		return g.Text(text + " ago")
	}
	return []g.Node{
		anchor(link("mailboxes", m.Recipient.String()), m.Recipient.String()),
		g.Group{badge(stateKinds[m.State()], string(m.State())), g.If(m.Damage != "", g.Group{g.Text(" "), bdi(m.Damage)})},
		number(waiting.Events), g.Text(age(waiting.Oldest, now)), open, ago(age(m.LastPeek(), now)), ago(age(m.LastDequeue(), now)),
	}
}
