package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

// exampleValues returns the files of values in deploy/helm/messagehub/ci.
func exampleValues(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chartFolder, "ci", "*-values.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	return files
}

func TestLint_FindsNothing(t *testing.T) {
	for _, file := range append(exampleValues(t), os.DevNull) {
		values, err := chartutil.ReadValuesFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, message := range lint.All(chartFolder, values, namespace, true).Messages {
			isIcon := strings.Contains(message.Err.Error(), "icon is recommended")
			if message.Severity > support.InfoSev || !isIcon {
				t.Errorf("%s: %s", filepath.Base(file), message)
			}
		}
	}
}

func TestExamples_AreAccepted(t *testing.T) {
	for _, file := range exampleValues(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range faultsOf(t, mustRender(t, parse(t, string(text)))) {
			t.Errorf("%s: %s", filepath.Base(file), fault)
		}
	}
}

func TestPackage_HasWhatTheChartNeeds(t *testing.T) {
	archive, err := chartutil.Save(readChart(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	packed, err := loader.Load(archive)
	if err != nil {
		t.Fatal(err)
	}
	if err := packed.Validate(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range packed.Raw {
		names = append(names, f.Name)
		if strings.HasPrefix(f.Name, "ci/") {
			t.Errorf("%s is for tests", f.Name)
		}
	}
	for _, name := range []string{"Chart.yaml", "values.yaml", "values.schema.json", "README.md", "templates/NOTES.txt", "files/rules.yaml", "files/dashboards/fleet.json"} {
		if !slices.Contains(names, name) {
			t.Errorf("no %s in %q", name, names)
		}
	}
	if packed.Metadata.Version != packed.Metadata.AppVersion {
		t.Errorf("chart %s is of hub %s", packed.Metadata.Version, packed.Metadata.AppVersion)
	}
}

func TestNotes_ListTheRemainingSteps(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{azure, "messagehub provision --check"},
		{embedded, "delete the claim"},
		{embedded, "every client that reaches it"},
		{embedded + "service: {type: LoadBalancer}", "svc/hub-messagehub-admin 8081"},
		{embedded, "svc/hub-messagehub 8081"},
	} {
		_, notes, err := render(t, parse(t, c.values))
		if err != nil || !strings.Contains(notes, c.want) {
			t.Errorf("want %q, got %q, %v", c.want, notes, err)
		}
	}
}

func TestReadme_ExamplesOfValuesAreAccepted(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartFolder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string // each is a block of indented lines
	isInside := false
	for line := range strings.Lines(string(text)) {
		code, isCode := strings.CutPrefix(line, "    ")
		if isCode && !isInside {
			blocks = append(blocks, "")
		}
		if isInside = isCode; isCode {
			blocks[len(blocks)-1] += code
		}
	}
	n := 0
	for _, block := range blocks {
		if !strings.Contains(block, "config:") {
			continue
		}
		n++
		for _, fault := range faultsOf(t, mustRender(t, parse(t, block))) {
			t.Errorf("%s\n%s", fault, block)
		}
	}
	if n != 2 {
		t.Errorf("%d examples", n)
	}
}

// TestHandbook_ValuesAreAccepted renders the values on the pages for operators.
func TestHandbook_ValuesAreAccepted(t *testing.T) {
	pages, err := filepath.Glob("../../../deploy/handbook/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages", err)
	}
	n := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range strings.Split(string(text), "```") {
			values, isValues := strings.CutPrefix(block, "yaml\n# values of the chart\n")
			if i%2 == 0 || !isValues {
				continue
			}
			n++
			for _, fault := range faultsOf(t, mustRender(t, parse(t, values))) {
				t.Errorf("%s: %s\n%s", page, fault, values)
			}
		}
	}
	if n == 0 {
		t.Error("no page has values of the chart")
	}
}

// TestReadme_HasEveryValue compares the table of values with the file of values.
func TestReadme_HasEveryValue(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartFolder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		section := ""
		for i, name := range strings.Split(cells[1], ", ") {
			name = strings.Trim(name, " `")
			if strings.HasPrefix(name, ".") {
				name = section + name
			} else if at := strings.LastIndex(name, "."); i == 0 && at > 0 {
				section = name[:at]
			}
			documented[name] = true
		}
	}
	readme := func(path string) bool {
		for path != "" {
			if documented[path] {
				return true
			}
			path = path[:max(0, strings.LastIndex(path, "."))]
		}
		return false
	}
	var check func(path string, values map[string]any)
	check = func(path string, values map[string]any) {
		for name, value := range values {
			if inner, ok := value.(map[string]any); ok && len(inner) > 0 {
				check(path+name+".", inner)
			} else if !readme(path + name) {
				t.Errorf("README.md has no %s%s", path, name)
			}
		}
	}
	check("", readChart(t).Values)
	delete(documented, "value")
	delete(documented, "---")
	for name := range documented {
		if _, err := chartutil.Values(readChart(t).Values).PathValue(name); err != nil {
			if _, err := chartutil.Values(readChart(t).Values).Table(name); err != nil && name != "replicas" && name != "drain.terminationGracePeriodSeconds" {
				t.Errorf("README.md has %s, and values.yaml does not", name)
			}
		}
	}
}
