package console

import (
	"maps"
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// tokenField is the name of the form field that contains the token of the session.
const tokenField = "form-token"

// tokenInput returns a hidden field that contains the token of the session.
func (v *visit) tokenInput() g.Node {
	v.needSession()
	return hidden(tokenField, v.session.formToken())
}

// hidden returns a hidden field.
//
//go:noinline
func hidden(name, value string) g.Node {
	return h.Input(h.Type("hidden"), h.Name(name), h.Value(value))
}

// formTo returns a form that is submitted to the page at path.
func (v *visit) formTo(path string, nodes ...g.Node) g.Node {
	return h.Form(h.Class("form"), h.Method("post"), h.Action(path), v.tokenInput(), g.Group(nodes))
}

// button returns a button that submits the form.
//
//go:noinline
func button(text string) g.Node { return h.Button(h.Type("submit"), g.Text(text)) }

// dangerButton returns the button for an order that cannot be undone.
func dangerButton(text string) g.Node {
	return h.Button(h.Type("submit"), h.Class("danger"), g.Text(text))
}

// A field is an input with its label.
type field struct {
	name, label  string
	hint         string // hint below the field, as a sentence; "" if none exists
	value        string
	fault        string // fault of the value, as a sentence; "" if none exists
	kind         string // text (default), password, search or lines
	autocomplete string // default: off
	limit        int    // maximum number of characters; 0 means no limit
	isOptional   bool
}

func (f field) render() g.Node {
	id := "field-" + f.name
	describedBy := ""
	if f.hint != "" {
		describedBy = id + "-hint"
	}
	if f.fault != "" {
		describedBy += " " + id + "-fault"
	}
	complete := f.autocomplete
	if complete == "" {
		complete = "off"
	}
	attributes := g.Group{
		h.ID(id), h.Name(f.name), h.AutoComplete(complete),
		g.If(!f.isOptional, h.Required()),
		g.If(f.limit > 0, h.MaxLength(strconv.Itoa(f.limit))),
		g.If(describedBy != "", h.Aria("describedby", describedBy)),
		g.If(f.fault != "", h.Aria("invalid", "true")),
		g.Attr("dir", "auto"), g.Attr("spellcheck", "false"),
	}
	var input g.Node
	switch f.kind {
	case "lines":
		input = h.Textarea(attributes, h.Rows("3"), g.Text(f.value))
	case "":
		input = h.Input(h.Type("text"), attributes, h.Value(f.value))
	default:
		input = h.Input(h.Type(f.kind), attributes, h.Value(f.value))
	}
	return h.Div(
		h.Class("field"),
		h.Label(h.For(id), g.Text(f.label)),
		g.If(f.hint != "", h.P(h.ID(id+"-hint"), h.Class("hint"), g.Text(f.hint))),
		input,
		g.If(f.fault != "", h.P(h.ID(id+"-fault"), h.Class("fault"), bdi(f.fault))),
	)
}

// A choiceField is a field with a fixed set of values.
type choiceField struct {
	name, label string
	value       string
	options     []navigationEntry // the path of an entry is the value of its option
}

func (c choiceField) render() g.Node {
	id := "field-" + c.name
	return h.Div(
		h.Class("field"),
		h.Label(h.For(id), g.Text(c.label)),
		h.Select(h.ID(id), h.Name(c.name), g.Map(c.options, func(o navigationEntry) g.Node {
			return h.Option(h.Value(o.path), g.If(o.path == c.value, h.Selected()), g.Text(o.name))
		})),
	)
}

// faults returns a summary of the faults in a form, with a link to each faulty field. It returns
// nil if none exist.
func (v *visit) faults(faults map[string]string) g.Node {
	if len(faults) == 0 {
		return nil
	}
	return faultList(faults)
}

// faultList returns a list of the faults in a form.
func faultList(faults map[string]string) g.Node {
	return notice(bad,
		h.P(g.Text("Nothing was done. Correct this, and send the form again:")),
		h.Ul(g.Map(slices.Sorted(maps.Keys(faults)), func(name string) g.Node {
			return h.Li(anchor("#field-"+name, faults[name]))
		})),
	)
}
