package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// checkExpression fails the test if an expression is not valid PromQL, or has a
// metric that is not selected by its job. It returns the number of metrics. A
// test of cmd/messagehub compares metrics and labels with those that a hub
// exports after a demo.
func checkExpression(t *testing.T, what, expression string, job *labels.Matcher) (n int) {
	t.Helper()
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(expression, "$__rate_interval", "5m"))
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return 0
	}
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		n++
		if !slices.ContainsFunc(selector.LabelMatchers, func(m *labels.Matcher) bool { return m.String() == job.String() }) {
			t.Errorf("%s: %s is not chosen by %s", what, selector.Name, job)
		}
		return nil
	})
	return n
}

func TestRules_ArePromQLAboutTheirHub(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartFolder, "files/rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rules ruleFile
	if err := yaml.UnmarshalStrict(text, &rules); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			n += checkExpression(t, r.Alert, r.Expr, labels.MustNewMatcher(labels.MatchEqual, "job", "messagehub"))
			if r.Record == "" && (r.Alert == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Annotations["runbook_url"] == "") {
				t.Errorf("%s: want a severity, a summary, what to do and a runbook", r.Alert)
			}
		}
	}
	if n < 10 {
		t.Errorf("%d metrics", n)
	}
}

func TestDashboards_ArePromQLAboutTheirHub(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(chartFolder, "files/dashboards/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no dashboards", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var dashboard struct {
			UID    string `json:"uid"`
			Title  string `json:"title"`
			Panels []struct {
				ID      int    `json:"id"`
				Title   string `json:"title"`
				Targets []struct {
					Expr string `json:"expr"`
				} `json:"targets"`
			} `json:"panels"`
		}
		if err := json.Unmarshal(text, &dashboard); err != nil || dashboard.UID == "" || dashboard.Title == "" {
			t.Fatalf("%s: %v", file, err)
		}
		n := 0
		for _, p := range dashboard.Panels {
			for _, target := range p.Targets {
				n += checkExpression(t, p.Title, target.Expr, labels.MustNewMatcher(labels.MatchRegexp, "job", "$job"))
			}
		}
		if n < 10 {
			t.Errorf("%s: %d metrics", file, n)
		}
	}
	rendered := mustRender(t, merge(t, azure, "monitoring: {dashboards: {enabled: true}}"))
	for _, m := range rendered.configMaps {
		for name, text := range m.Data {
			if strings.HasSuffix(name, ".json") && (!json.Valid([]byte(text)) || m.Labels["grafana_dashboard"] != "1") {
				t.Errorf("%s in %s", name, m.Name)
			}
		}
	}
}
