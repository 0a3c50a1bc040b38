package console

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/api/internal/cloudevent"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/find"
)

// A Finder finds ids. [find.Service] implements it.
type Finder interface {
	// Find returns everything that the hub stores about an id.
	Find(ctx context.Context, q find.Query) (*find.Answer, error)
}

var errNoFind = &pageError{http.StatusNotFound, "This hub cannot look for ids", "It has no store in which they could be found."}

// find shows everything that the hub stores about an id.
func (v *visit) find() error {
	if v.opts.Find == nil {
		return errNoFind
	}
	query := v.r.URL.Query()
	id := strings.TrimSpace(query.Get("id"))
	if id == "" {
		return v.showFind(http.StatusOK, nil, nil)
	}
	q := find.Query{ID: id, Kind: find.Kind(query.Get("kind")), Topic: query.Get("topic"), After: query.Get("after")}
	faults := make(map[string]string)
	if name := strings.TrimSpace(query.Get("actor")); name != "" {
		actor, err := domain.ParseActorID(name)
		if err != nil {
			faults["actor"] = toSentence(err)
		}
		q.Actor = actor
	}
	if name := strings.TrimSpace(query.Get("origin")); name != "" {
		origin, err := domain.ParseOrigin(name)
		if err != nil {
			faults["origin"] = toSentence(err)
		}
		q.Origin = origin
	}
	if source := strings.TrimSpace(query.Get("source")); source != "" {
		q.MessageID = cloudevent.MessageID(source, id)
	}
	if len(faults) > 0 {
		return v.showFind(http.StatusUnprocessableEntity, faults, nil)
	}
	v.host.Note(v.ctx(), slog.String("id", strings.Trim(strconv.QuoteToASCII(domain.Shorten(id)), `"`)))
	a, err := v.opts.Find.Find(v.ctx(), q)
	if domain.KindOf(err) == domain.Invalid {
		return v.showFind(http.StatusUnprocessableEntity, map[string]string{"id": toSentence(err)}, nil)
	}
	if err != nil {
		return err
	}
	return v.showFind(http.StatusOK, nil, a)
}

// showFind shows the search form, the faults of its fields, and an answer.
func (v *visit) showFind(status int, faults map[string]string, a *find.Answer) error {
	query := v.r.URL.Query()
	kinds := []navigationEntry{{"", "whatever it may be"}}
	for _, kind := range find.Kinds {
		kinds = append(kinds, navigationEntry{string(kind), string(kind)})
	}
	body := []g.Node{
		g.If(len(faults) > 0, faultList(faults)),
		h.Form(
			h.Class("form"), h.Method("get"), h.Action(link("find")),
			field{name: "id", label: "Id", hint: "Of an event, a bundle, a request to a domain, a delivery or a trace.", value: query.Get("id"), fault: faults["id"], limit: 300}.render(),
			h.Details(
				g.If(query.Get("actor")+query.Get("origin")+query.Get("kind")+query.Get("source") != "" || len(faults) > 0, g.Attr("open")),
				h.Summary(g.Text("More that you know about it")),
				choiceField{name: "kind", label: "Kind", value: query.Get("kind"), options: kinds}.render(),
				field{name: "actor", label: "Actor", hint: "With it, one mailbox is searched instead of all.", value: query.Get("actor"), fault: faults["actor"], isOptional: true, limit: 64}.render(),
				field{name: "origin", label: "Origin", hint: "Of the event.", value: query.Get("origin"), fault: faults["origin"], isOptional: true, limit: 64}.render(),
				field{name: "source", label: "Source", hint: "Only for an event that was published to a topic: the source with which it was published.", value: query.Get("source"), isOptional: true, limit: 300}.render(),
			),
			button("Find"),
		),
	}
	if a != nil {
		body = append(body, v.showAnswer(a)...)
	}
	return v.show(&view{status: status, title: "Find", body: body})
}

// showAnswer returns the found entries, and the list of the places that were searched.
func (v *visit) showAnswer(a *find.Answer) (body []g.Node) {
	switch {
	case a.IsUnknown():
		body = append(body, notice(warn, h.P(g.Text("Nothing with this id is stored where this page has searched."))))
	case len(a.Results) == 0 && a.After == "":
		body = append(body, notice(warn, h.P(g.Text("Nothing was found. Some mailboxes could not be read."))))
	}
	for i := range a.Results {
		body = append(body, v.showResult(&a.Results[i]))
	}
	looked := []fact{{"Results in all", number(int64(a.Scope.Found))}, {"Mailboxes searched", number(int64(a.Scope.Mailboxes))}, {"Not readable", number(int64(a.Scope.Unread))}}
	body = append(body, h.H2(g.Text("Where it was looked for")), facts(looked...))
	for _, u := range a.Scope.Damage {
		body = append(body, h.P(badge(bad, "not readable"), g.Text(" "), bdi(u.Recipient), g.Text(" "), bdi(u.Reason)))
	}
	body = append(body, sentences(a.Scope.Notes))
	if a.After != "" {
		query := v.r.URL.Query()
		query.Set("after", a.After)
		body = append(body, notice(warn, h.P(g.Text("The search is not complete: a page searches for some seconds only."))),
			h.P(h.A(h.Class("button"), h.Href(link("find")+"?"+query.Encode()), g.Text("Search on"))))
	}
	return body
}

// showResult returns an event, bundle or delivery: first the reason why it waits, then its history.
func (v *visit) showResult(r *find.Result) g.Node {
	state := badge(mild, string(r.State))
	if len(r.Waits) > 0 {
		state = badge(warn, string(r.State))
	}
	nodes := g.Group{
		h.H2(bdi(r.Title)),
		h.P(g.Text(string(r.Kind)+", "), state, g.Iff(!r.Actor.IsZero(), func() g.Node {
			return g.Group{g.Text(" of the actor "), anchor(link("mailboxes", r.Actor.String()), r.Actor.String())}
		})),
	}
	if len(r.Waits) > 0 {
		t := tableView{caption: "What it waits for, in the order in which the waits end", columns: []column{{title: "Cause"}, {title: "Since"}, {title: "What it is"}, {title: "What to do"}}}
		for _, w := range r.Waits {
			t.rows = append(t.rows, []g.Node{g.Text(string(w.Cause)), moment(w.Since), bdi(w.Text), bdi(w.Next)})
		}
		nodes = append(nodes, t.render())
	}
	t := tableView{caption: "What happened, in order of time, in UTC", columns: []column{{title: "When"}, {title: "What"}, {title: "How"}}, empty: "No step is stored."}
	for _, s := range r.Steps {
		how := g.Group{bdi(s.Text)}
		for _, d := range s.Details {
			how = append(how, h.Br(), g.Text(d.Name+": "), v.showDetail(r, &d))
		}
		t.rows = append(t.rows, []g.Node{moment(s.At), g.Text(string(s.What)), how})
	}
	return h.Section(h.Class("found"), append(nodes, t.render(), sentences(r.Notes)))
}

// showDetail returns the value of a detail. If the detail is a bundle, the value links to its page.
func (v *visit) showDetail(r *find.Result, d *find.Detail) g.Node {
	if id, err := domain.ParseBundleID(d.Value); err == nil && d.Name == "bundle" && !r.Actor.IsZero() {
		return bundleAnchor(r.Actor, id)
	}
	return bdi(d.Value)
}

// sentences returns a list of sentences, or nil for an empty list.
func sentences(all []string) g.Node {
	if len(all) == 0 {
		return nil
	}
	return h.Ul(g.Map(all, func(text string) g.Node { return h.Li(bdi(text)) }))
}
