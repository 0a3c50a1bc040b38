package compose

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

func TestRules_AreReadAsByPrometheus(t *testing.T) {
	groups, errs := rulefmt.ParseFile(filepath.Join(folder, "monitoring/rules.yaml"), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil || len(groups.Groups) == 0 {
		t.Fatal("no group of rules")
	}
	for _, r := range groups.Groups[0].Rules {
		if r.Alert != "" && (r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "") {
			t.Errorf("%s lacks a summary, a description or a severity", r.Alert)
		}
	}
}

func TestDashboards_AskQueriesThatPrometheusReads(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(folder, "monitoring/dashboards/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no dashboard", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var dashboard struct {
			UID    string
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &dashboard); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if dashboard.UID == "" || len(dashboard.Panels) == 0 {
			t.Errorf("%s has no uid, or no panels", file)
		}
		for _, p := range dashboard.Panels {
			for _, target := range p.Targets {
				if _, err := parser.NewParser(parser.Options{}).ParseExpr(target.Expr); err != nil {
					t.Errorf("%s: %s: %v", file, p.Title, err)
				}
			}
		}
	}
}
