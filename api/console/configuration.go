package console

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// A Setting is a key of the configuration, with its value. The value of a secret is hidden.
type Setting struct {
	Name      string
	Value     string // value, unless it is secret
	Origin    string // default, file, environment or flag
	From      string // source in detail, such as "hub.yaml line 3" or the name of a variable
	Usage     string
	IsDefault bool
}

// configuration shows the configuration of the node.
func (v *visit) configuration() error {
	isAll := v.r.URL.Query().Get("all") != ""
	t := tableView{
		caption: "Settings of this node",
		columns: []column{{title: "Key"}, {title: "Value"}, {title: "Where it is from"}, {title: "What it is for"}},
		empty:   "Every setting has its default.",
	}
	hidden := 0
	for _, s := range v.opts.Settings {
		if s.IsDefault && !isAll {
			hidden++
			continue
		}
		value := code(s.Value)
		if s.Value == "" {
			value = g.Text("–")
		}
		t.rows = append(t.rows, []g.Node{h.Code(g.Text(s.Name)), value, g.Group{badge(mild, s.Origin), g.Text(" "), bdi(s.From)}, g.Text(s.Usage)})
	}
	more := h.P(h.A(h.Href(link("configuration")), g.Text("Leave out settings that have their defaults")))
	if !isAll {
		more = h.P(h.A(h.Href(withQuery(link("configuration"), "all", "1")), g.Text("Show the "+groupDigits(int64(hidden))+" settings that have their defaults, too")))
	}
	return v.show(&view{title: "Configuration", body: []g.Node{
		h.P(g.Text("The settings of this node at its start. Secrets are not shown. messagehub config print shows the same on a terminal, and messagehub doctor checks it.")),
		more, t.render(),
	}})
}
