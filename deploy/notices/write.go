package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// write writes a table of modules, and then each text once, with the modules to which it applies.
func write(w io.Writer, modules []*module) {
	fmt.Fprintf(w, "The command messagehub contains the software below, each under its licence.\n\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, m := range modules {
		fmt.Fprintf(table, "%s\t%s\t%s\n", m.path, m.version, strings.Join(m.licenceNames(), ", "))
	}
	_ = table.Flush() // if w fails, the writes below fail too

	type group struct {
		text  string
		paths []string
	}
	var groups []*group
	for _, m := range modules {
		for _, l := range m.licences {
			i := slices.IndexFunc(groups, func(g *group) bool { return g.text == l.text })
			if i < 0 {
				i = len(groups)
				groups = append(groups, &group{text: l.text})
			}
			groups[i].paths = append(groups[i].paths, m.path)
		}
	}
	for _, g := range groups {
		fmt.Fprintf(w, "\n%s\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(g.paths, "\n"), strings.Repeat("-", 80), g.text)
	}
}

// licenceNames returns the names of the licences of a module, each once.
func (m *module) licenceNames() (names []string) {
	for _, l := range m.licences {
		if !l.isNotice {
			names = append(names, l.names...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
