package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const chartFolder = "../../../deploy/helm/messagehub"

func TestRun_PrintsObjectsOrSettings(t *testing.T) {
	more := filepath.Join(t.TempDir(), "more.yaml")
	if err := os.WriteFile(more, []byte("config: {retention: 36h}"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := []string{filepath.Join(chartFolder, "ci/embedded-values.yaml"), more}
	for onlySettings, want := range map[bool]string{false: "\nkind: StatefulSet\n", true: "\nretention: 36h\n"} {
		var out strings.Builder
		if err := renderChart(&out, chartFolder, "hub", "market", files, onlySettings); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "kind:") == onlySettings {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
}

func TestRun_SaysWhatIsWrong(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("config: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		folder string
		files  []string
		want   string
	}{
		{chartFolder, nil, "config.cosmos.endpoint"},
		{chartFolder, []string{"missing.yaml"}, "missing.yaml"},
		{chartFolder, []string{broken}, "broken.yaml"},
		{"missing", nil, "missing"},
	} {
		var out strings.Builder
		if err := renderChart(&out, c.folder, "hub", "market", c.files, false); err == nil || !strings.Contains(err.Error(), c.want) || out.Len() > 0 {
			t.Errorf("want %q, got %v and %q", c.want, err, out.String())
		}
	}
}
