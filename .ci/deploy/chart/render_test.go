package chart

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

const (
	chartFolder = "../../../deploy/helm/messagehub"
	release     = "hub"
	namespace   = "market"
)

var loadChart = sync.OnceValues(func() (*chart.Chart, error) { return loader.Load(chartFolder) })

// readChart returns the chart of the tree.
func readChart(t testing.TB) *chart.Chart {
	t.Helper()
	c, err := loadChart()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A document is one object of a rendered chart.
type document struct {
	template string // without the folder of the chart
	text     string
}

// render returns the objects that the chart makes of values, and its notes.
func render(t testing.TB, values map[string]any) (documents []document, notes string, err error) {
	t.Helper()
	c := readChart(t)
	capabilities := chartutil.DefaultCapabilities.Copy()
	options := chartutil.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values, options, capabilities)
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
				documents = append(documents, document{strings.TrimPrefix(name, "messagehub/templates/"), text})
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

// mustRender fails the test if the chart refuses the values.
func mustRender(t testing.TB, values map[string]any) objects {
	t.Helper()
	documents, _, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return decodeAll(t, documents)
}

// parse reads values as helm reads them from a file.
func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	values, err := chartutil.ReadValues([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return values
}

// merge returns values that later ones have been laid over, as several --values do.
func merge(t testing.TB, texts ...string) map[string]any {
	t.Helper()
	merged := map[string]any{}
	for _, text := range texts {
		merged = chartutil.MergeTables(parse(t, text), merged)
	}
	if config, ok := merged["config"].(map[string]any); ok {
		removeNulls(config)
	}
	return merged
}

// removeNulls removes what a later text has taken back. The chart itself has no config of which helm could
// remove it.
func removeNulls(values map[string]any) {
	for name, value := range values {
		if inner, ok := value.(map[string]any); ok {
			removeNulls(inner)
		}
		if value == nil {
			delete(values, name)
		}
	}
}

// print returns values as YAML.
func print(values any) string {
	text, err := yaml.Marshal(values)
	if err != nil {
		return fmt.Sprint(values)
	}
	return string(text)
}
