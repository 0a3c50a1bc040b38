package console

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

const (
	maxReason = 1000 // characters

	reasonField = "why"
	typedField  = "typed"
	sawField    = "saw"
)

// A confirmation is a form with which an operator gives an order. It shows the state on which the
// operator decides, and asks for a reason and a typed name. A hidden field contains the shown
// state. If that state has changed when the form is submitted, the order is not executed, and the
// form shows the differences.
type confirmation struct {
	title, about string   // heading of the page, and the name of the order's object
	effect       string   // effect of the order, as sentences
	button       string   // text of the button: verb and object
	isDanger     bool     // whether the order cannot be undone
	state        []fact   // state on which the operator decides, as names and texts
	more         []g.Node // further fields of the form, such as hidden ones

	typed, typedLabel string // name that must be typed, and its label; "" if the operator need not type a name

	carryOut func(by hub.AdminAction) error
	after    string       // path of the page that lists the record of the order
	show     func() error // shows the result of the order; if nil, the browser is redirected to after
}

// A seenFact is a name and a value of the state that the operator has seen. A hidden field contains
// it.
type seenFact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// textFact returns a fact whose value is text, so that a confirmation can detect that it changed.
func textFact(name, value string) fact { return fact{name, textNode(value)} }

// A textNode is a node whose text the program can read back.
type textNode string

// Render implements [g.Node].
func (t textNode) Render(w io.Writer) error { return bdi(string(t)).Render(w) }

// seenFacts returns the state as the content of the hidden field.
func (c *confirmation) seenFacts() []seenFact {
	seen := make([]seenFact, len(c.state))
	for i, f := range c.state {
		text, _ := f.value.(textNode)
		seen[i] = seenFact{f.name, string(text)}
	}
	return seen
}

// confirm shows the form, or executes the order if the form was submitted.
func (v *visit) confirm(c *confirmation) error {
	if !v.isPost() {
		return v.showConfirmation(c, http.StatusOK, nil, nil)
	}
	if changes := c.changedFacts(v.value(sawField)); len(changes) > 0 {
		return v.showConfirmation(c, http.StatusConflict, nil, changes)
	}
	by := hub.AdminAction{Who: v.operatorName(), Why: strings.TrimSpace(v.value(reasonField))}
	faults := make(map[string]string)
	switch {
	case by.Why == "":
		faults[reasonField] = "Type a reason. It is stored in the record."
	case utf8.RuneCountInString(by.Why) > maxReason:
		faults[reasonField] = "Type up to 1,000 characters."
	}
	if c.typed != "" && strings.TrimSpace(v.value(typedField)) != c.typed {
		faults[typedField] = "This is another name. Type the name that is shown above."
	}
	if len(faults) > 0 {
		return v.showConfirmation(c, http.StatusUnprocessableEntity, faults, nil)
	}
	if err := c.carryOut(by); err != nil {
		if domain.KindOf(err) == domain.Invalid && strings.HasPrefix(err.Error(), "why: ") {
			return v.showConfirmation(c, http.StatusUnprocessableEntity, map[string]string{reasonField: toSentence(errors.New(strings.TrimPrefix(err.Error(), "why: ")))}, nil)
		}
		p := v.host.Problem(v.w, v.r, err)
		return v.showConfirmation(c, p.Status, nil, []g.Node{h.P(g.Text("The order failed: "+p.Title+". "), bdi(p.Detail))})
	}
	if c.show != nil {
		return c.show()
	}
	return v.redirect(c.after)
}

// changedFacts returns the differences between the current state and saw, the state in the
// submitted form. It returns nil if none exist.
func (c *confirmation) changedFacts(saw string) []g.Node {
	var before []seenFact
	if json.Unmarshal([]byte(saw), &before) != nil {
		before = nil
	}
	valueOf := func(facts []seenFact, name string) string {
		for _, f := range facts {
			if f.Name == name {
				return f.Value
			}
		}
		return "–"
	}
	t := tableView{caption: "What has changed", columns: []column{{title: "What"}, {title: "When the page was opened"}, {title: "Now"}}}
	for _, now := range c.seenFacts() {
		if old := valueOf(before, now.Name); old != now.Value {
			t.rows = append(t.rows, []g.Node{g.Text(now.Name), bdi(old), bdi(now.Value)})
		}
	}
	if len(t.rows) == 0 {
		return nil
	}
	return []g.Node{
		h.P(g.Text("Nothing was done, because the state on this page has changed. If you still want to give the order, type the name again, and send the form.")),
		t.render(),
	}
}

// showConfirmation shows the form with the faults of its fields, or with the failure of its order.
func (v *visit) showConfirmation(c *confirmation, status int, faults map[string]string, failure []g.Node) error {
	saw, err := json.Marshal(c.seenFacts())
	if err != nil {
		return err
	}
	typed := v.value(typedField)
	if failure != nil || !v.isPost() {
		typed = "" // a link must not fill in the name that the operator has to type
	}
	send := button(c.button)
	if c.isDanger {
		send = dangerButton(c.button)
	}
	return v.show(&view{
		status: status, title: c.title, about: c.about,
		body: []g.Node{
			g.Iff(failure != nil, func() g.Node { return notice(bad, failure...) }),
			v.faults(faults),
			h.P(g.Text(c.effect)),
			g.If(len(c.state) > 0, facts(c.state...)),
			v.formTo(v.r.URL.EscapedPath(),
				hidden(sawField, string(saw)),
				g.Group(c.more),
				field{name: reasonField, label: "Reason", hint: "It is stored in the record, with your name.", value: v.value(reasonField), fault: faults[reasonField], limit: maxReason}.render(),
				g.Iff(c.typed != "", func() g.Node {
					return field{name: typedField, label: c.typedLabel + ", typed again", value: typed, fault: faults[typedField], limit: maxReason}.render()
				}),
				send,
			),
		},
	})
}
