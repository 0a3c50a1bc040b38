package console

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// overview shows what the node does.
func (v *visit) overview() error {
	return v.show(&view{title: "Overview", body: []g.Node{h.P(g.Text("This node runs version " + v.opts.Version + "."))}})
}
