package console

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// A view is the content of a page, without the layout that all pages share.
type view struct {
	status    int    // default: 200
	title     string // title of the window, and heading of the page
	about     string // object that the page describes, such as an actor; "" if none exists
	body      []g.Node
	hasCharts bool
	refresh   string // path to which the browser is redirected without a click; "" for no redirect
}

// htmxConfig disables htmx features that the Content-Security-Policy forbids.
const htmxConfig = `{"includeIndicatorCSS": false, "allowEval": false, "history": false}`

// show responds with a whole page.
func (v *visit) show(s *view) error {
	title := s.title
	if s.about != "" {
		title += " " + s.about
	}
	document := h.Doctype(h.HTML(
		h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("color-scheme"), h.Content("light dark")),
			h.Meta(h.Name("htmx-config"), h.Content(htmxConfig)),
			g.If(s.refresh != "", h.Meta(g.Attr("http-equiv", "refresh"), h.Content("0; url="+s.refresh))),
			h.TitleEl(g.Text(title+" · MessageHub")),
			h.Link(h.Rel("icon"), h.Href(assetPath("icon.svg"))),
			h.Link(h.Rel("stylesheet"), h.Href(assetPath("console.css"))),
			h.Script(h.Src(assetPath("htmx.min.js")), h.Defer()),
			g.If(s.hasCharts, g.Group{
				h.Link(h.Rel("stylesheet"), h.Href(assetPath("uPlot.min.css"))),
				h.Script(h.Src(assetPath("uPlot.iife.min.js")), h.Defer()),
				h.Script(h.Src(assetPath("charts.js")), h.Defer()),
			}),
		),
		h.Body(
			h.A(h.Class("skip"), h.Href("#main"), g.Text("Skip to the content")),
			v.header(),
			h.Main(
				h.ID("main"), h.TabIndex("-1"),
				h.H1(g.Text(s.title), g.If(s.about != "", g.Group{g.Text(" "), bdi(s.about)})),
				g.Group(s.body),
			),
			h.Footer(h.P(g.Text("MessageHub "+v.opts.Version+" · "), h.A(h.Href("/docs/"), g.Text("Handbook")))),
		),
	))
	return v.write(s.status, document)
}

// showFragment responds with a part of a page, with which htmx replaces the previous version.
func (v *visit) showFragment(node g.Node) error { return v.write(0, node) }

func (v *visit) write(status int, node g.Node) error {
	var b bytes.Buffer
	if err := node.Render(&b); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	if status == 0 {
		status = http.StatusOK
	}
	v.w.WriteHeader(status)
	if v.r.Method != http.MethodHead {
		_, _ = v.w.Write(b.Bytes()) // Write fails if the client has disconnected
	}
	return nil
}

// header returns the top of a page: the navigation, and the name of the
// operator.
func (v *visit) header() g.Node {
	return h.Header(
		h.A(h.Class("brand"), h.Href(link("")), g.Text("MessageHub")),
		g.Iff(v.operator != nil, func() g.Node {
			return g.Group{
				h.Nav(h.Aria("label", "Pages"), h.Ul(g.Map(navigation, func(e navigationEntry) g.Node {
					return h.Li(h.A(h.Href(root+e.path), g.If(v.isBelow(e.path), g.Attr("aria-current", "page")), g.Text(e.name)))
				}))),
				h.Form(
					h.Class("session"), h.Method("post"), h.Action(link("sign-out")), v.tokenInput(),
					h.Span(bdi(v.operatorName())), h.Button(h.Class("quiet"), h.Type("submit"), g.Text("Sign out")),
				),
			}
		}),
	)
}

// isBelow reports whether the path of the request is path or below it.
func (v *visit) isBelow(path string) bool {
	at := strings.TrimPrefix(v.r.URL.Path, root)
	return at == path || path != "/" && strings.HasPrefix(at, path+"/")
}
