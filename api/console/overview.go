package console

import (
	"context"
	"fmt"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// A Node is a hub process that uses the same store.
type Node struct {
	ID      string
	Host    string
	Version string
	Level   int  // highest store level that the node supports
	IsThis  bool // whether this node serves the page
}

// A NodeLister returns the nodes that use the store, and the level of the
// store.
type NodeLister func(ctx context.Context) (nodes []Node, level int, err error)

const chartTable = "last-hour"

// overview shows the load of this node during the last hour, and all nodes.
func (v *visit) overview() error {
	body := []g.Node{
		h.Div(h.ID("rates"), hx("get", link("part", "rates")), refreshEvery(sampleEvery), hx("swap", "innerHTML"), v.rates()),
		g.If(v.opts.SendSample != nil && v.mayOrder(), h.P(h.A(h.Class("button"), h.Href(link("sample")), g.Text("Send sample traffic")))),
	}
	nodes, err := v.nodes()
	if err != nil {
		return err
	}
	body = append(body, h.H2(g.Text("Nodes")), nodes)
	return v.show(&view{title: "Overview", body: body, hasCharts: true})
}

// ratesPart responds with the current rates and charts, for the part of the page that shows them.
func (v *visit) ratesPart() error { return v.showFragment(v.rates()) }

// rates returns the newest values, the charts, and a table of the values in the charts.
func (v *visit) rates() g.Node {
	all := v.samples.allSamples()
	if len(all) == 0 {
		return h.P(h.Class("empty"), g.Text("This node has just started. Its first figures appear within "+duration(sampleEvery)+"."))
	}
	newest := all[len(all)-1]
	var current []fact
	for i, kind := range seriesKinds {
		current = append(current, fact{kind.title, g.Text(newest.values[i].text())})
	}
	return g.Group{
		facts(current...),
		h.P(h.Class("hint"), g.Text("Figures of this node in the last hour, read every "+duration(sampleEvery)+". Waiting events and their age are those of the store, on the node that surveys it.")),
		h.Div(h.Class("charts"), g.Group(charts())),
		h.Details(h.Summary(g.Text("The same as a table")), tableOfSamples(all)),
	}
}

// charts returns the elements in which charts.js draws.
func charts() (all []g.Node) {
	for i, kind := range seriesKinds {
		all = append(all, h.Figure(
			h.Class("chart"),
			h.FigCaption(g.Text(kind.title)),
			h.Div(h.Class("plot"), h.Data("chart", chartTable), h.Data("column", strconv.Itoa(i)), h.Aria("hidden", "true")),
		))
	}
	return all
}

func tableOfSamples(all []sample) g.Node {
	var rows []g.Node
	for _, s := range all {
		cells := []g.Node{h.Th(h.Scope("row"), moment(s.at))}
		for _, value := range s.values {
			cells = append(cells, h.Td(h.Class("number"), g.If(value.isKnown, h.Data("value", strconv.FormatFloat(value.value, 'g', 6, 64))), g.Text(value.text())))
		}
		rows = append(rows, h.Tr(cells...))
	}
	return h.Div(
		h.Class("scroll"), h.Role("region"), h.Aria("label", "Figures of the last hour"), h.TabIndex("0"),
		h.Table(
			h.ID(chartTable),
			h.Caption(g.Text("Figures of the last hour, in UTC")),
			h.THead(h.Tr(h.Th(h.Scope("col"), g.Text("When")), g.Map(seriesKinds, func(kind seriesKind) g.Node {
				return h.Th(h.Scope("col"), h.Class("number"), g.Text(kind.title))
			}))),
			h.TBody(rows...),
		),
	)
}

// text returns the value as text, or "–" if the metric does not exist.
func (r metricReading) text() string {
	switch {
	case !r.isKnown:
		return "–"
	case r.value >= 100 || r.value == float64(int64(r.value)):
		return groupDigits(int64(r.value + 0.5))
	}
	return fmt.Sprintf("%.2f", r.value)
}

// nodes lists the nodes that use the store.
func (v *visit) nodes() (g.Node, error) {
	if v.opts.Nodes == nil {
		return h.P(g.Text("This node runs version " + v.opts.Version + ".")), nil
	}
	nodes, level, err := v.opts.Nodes(v.ctx())
	if err != nil {
		return nil, err
	}
	t := tableView{caption: "Nodes that work on this store, whose level is " + strconv.Itoa(level), columns: []column{{title: "Node"}, {title: "Host"}, {title: "Version"}, {title: "Level that it knows", isNumber: true}}}
	for _, n := range nodes {
		name := g.Group{code(n.ID)}
		if n.IsThis {
			name = append(name, g.Text(" "), badge(mild, "this page is from it"))
		}
		t.rows = append(t.rows, []g.Node{name, bdi(n.Host), bdi(n.Version), g.Text(strconv.Itoa(n.Level))})
	}
	return t.render(), nil
}

// hx returns an attribute of htmx.
func hx(name, value string) g.Node { return g.Attr("data-hx-"+name, value) }

// refreshEvery returns the htmx trigger that periodically refreshes a part of a page.
func refreshEvery(d time.Duration) g.Node {
	return hx("trigger", "every "+strconv.Itoa(int(d/time.Second))+"s")
}
