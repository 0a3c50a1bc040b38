package chart

import (
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// A Document is one object of a rendered chart, as YAML.
type Document struct {
	Template string // path in the folder of the chart
	Text     string
}

// Render renders a chart with values and returns the objects, in the order of
// its templates, and its notes, as helm template and helm install do. It fails
// if the chart refuses the values.
func Render(c *chart.Chart, values map[string]any, release, namespace string) (documents []Document, notes string, err error) {
	options := chartutil.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values, options, chartutil.DefaultCapabilities.Copy())
	if err != nil {
		return nil, "", err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, "", err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Base(name) == "NOTES.txt" {
			notes = files[name]
			continue
		}
		for text := range strings.SplitSeq("\n"+files[name], "\n---\n") {
			if hasContent(text) {
				documents = append(documents, Document{strings.TrimPrefix(name, c.Name()+"/templates/"), strings.TrimPrefix(text, "\n")})
			}
		}
	}
	return documents, notes, nil
}

// hasContent reports whether a YAML document has more than comments.
func hasContent(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return true
		}
	}
	return false
}
