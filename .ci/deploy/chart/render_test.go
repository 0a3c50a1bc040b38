package chart

import (
	"fmt"
	"sync"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"
)

const (
	chartFolder = "../../../deploy/helm/messagehub"
	release     = "hub"
	namespace   = "market"
)

var loadChart = sync.OnceValues(func() (*chart.Chart, error) { return loader.Load(chartFolder) })

// readChart returns the chart in this repository.
func readChart(t testing.TB) *chart.Chart {
	t.Helper()
	c, err := loadChart()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render renders the chart in this repository with values, and returns the
// objects and the notes.
func render(t testing.TB, values map[string]any) (documents []Document, notes string, err error) {
	t.Helper()
	return Render(readChart(t), values, release, namespace)
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

// parse decodes values as helm decodes a file.
func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	values, err := chartutil.ReadValues([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return values
}

// merge merges values, of which later ones override earlier ones, as with
// several --values.
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

// removeNulls removes values that a later text sets to null. helm would remove
// defaults of the chart in this way, but the chart has no default config.
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
