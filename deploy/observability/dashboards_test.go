package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func mustReadDashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	all, err := readDashboards("dashboards")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"fleet.json", "node.json", "cost.json"}, sortedKeys(all))
	return all
}

func TestDashboards_ChooseDataSourceReleaseAndNode(t *testing.T) {
	uids, titles := make(map[string]bool), make(map[string]bool)
	for file, d := range mustReadDashboards(t) {
		require.Equal(t, "messagehub-"+strings.TrimSuffix(file, ".json"), d.UID)
		require.True(t, strings.HasPrefix(d.Title, "MessageHub: "), file)
		require.Regexp(t, sentences, d.Description, file)
		require.False(t, uids[d.UID] || titles[d.Title], file)
		uids[d.UID], titles[d.Title] = true, true
		var names []string
		for _, v := range d.Templating.List {
			require.NotEmpty(t, v.Label, "%s: %s", file, v.Name)
			names = append(names, v.Type+" "+v.Name)
			if v.Type == "query" {
				require.Equal(t, chosen, v.DataSource, "%s: %s", file, v.Name)
				require.Regexp(t, `^count by \(\w+\) \(`, v.expression(), "%s: %s", file, v.Name)
			}
		}
		require.Equal(t, []string{"datasource datasource", "query job", "query instance"}, names, file)
	}
}

// sentences matches texts that begin with a capital, a digit or a quoted value, and end with a
// period.
var sentences = regexp.MustCompile(`(?s)^[A-Z0-9"].*\.$`)

// chosen is the data source that the reader of a dashboard selects.
var chosen = dataSource{"prometheus", "${datasource}"}

// units matches the units of Grafana that the dashboards may use, and our suffixes.
var units = regexp.MustCompile(`^(short|s|bytes|Bps|percentunit|reqps|ops|bool|suffix: RU|suffix: RU/s)$`)

func TestDashboards_QueryTheChosenSourceInUnits(t *testing.T) {
	selector := regexp.MustCompile(`\b(messagehub_\w+|process_\w+|up)\b(.{0,40})`)
	for file, d := range mustReadDashboards(t) {
		titles := make(map[string]bool)
		for _, p := range d.Panels {
			require.NotEmpty(t, p.Title, "%s: panel %d", file, p.ID)
			require.False(t, titles[p.Title], "%s: two panels %s", file, p.Title)
			titles[p.Title] = true
			require.Contains(t, []string{"timeseries", "stat"}, p.Type, "%s: %s", file, p.Title)
			require.Regexp(t, sentences, p.Description, "%s: %s", file, p.Title)
			require.Regexp(t, units, p.FieldConfig.Defaults.Unit, "%s: %s", file, p.Title)
			require.Equal(t, chosen, p.DataSource, "%s: %s", file, p.Title)
			require.NotEmpty(t, p.Targets, "%s: %s", file, p.Title)
			refs := make(map[string]bool)
			for _, q := range p.Targets {
				require.False(t, refs[q.RefID], "%s: %s: two queries %s", file, p.Title, q.RefID)
				refs[q.RefID] = true
				require.Equal(t, chosen, q.DataSource, "%s: %s", file, p.Title)
				found := selector.FindAllStringSubmatch(q.Expr, -1)
				require.NotEmpty(t, found, "%s: %s", file, p.Title)
				for _, metric := range found {
					require.True(t, strings.HasPrefix(metric[2], `{job=~"$job", instance=~"$instance"`), "%s: %s: %s is not of the chosen nodes", file, p.Title, metric[1])
				}
			}
		}
	}
}

// TestDashboards_UnitsMatchTheMetrics derives the unit of a query from the suffix of the first
// metric's name.
func TestDashboards_UnitsMatchTheMetrics(t *testing.T) {
	metric := regexp.MustCompile(`\b((?:messagehub|process)_\w+){`)
	for file, d := range mustReadDashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				unit, where := p.FieldConfig.Defaults.Unit, file+": "+p.Title
				names := metric.FindAllStringSubmatch(q.Expr, -1)
				if len(names) == 0 {
					require.Equal(t, "short", unit, where) // number of responding nodes
					continue
				}
				name := names[0][1]
				isRatio, isRate := strings.Contains(q.Expr, ") / "), strings.Contains(q.Expr, "rate(")
				switch {
				case strings.HasPrefix(name, "messagehub_cosmos_request_units"):
					want := "suffix: RU/s"
					if isRatio {
						want = "suffix: RU"
					}
					require.Equal(t, want, unit, where)
				case isRatio, name == "process_cpu_seconds_total":
					require.Equal(t, "percentunit", unit, where)
				case strings.HasSuffix(name, "_bytes_total"):
					require.Equal(t, "Bps", unit, where)
				case strings.HasSuffix(name, "_bytes"):
					require.Equal(t, "bytes", unit, where)
				case strings.HasSuffix(name, "_seconds"), strings.HasSuffix(name, "_seconds_bucket"):
					require.Equal(t, "s", unit, where)
				case isRate:
					require.Contains(t, []string{"ops", "reqps"}, unit, where)
				default:
					require.Contains(t, []string{"short", "bool"}, unit, where)
				}
			}
		}
	}
}

func TestDashboards_LegendsNameLabelsOfTheResult(t *testing.T) {
	aggregation := regexp.MustCompile(`\b(?:sum|min|max|count|histogram_quantile)\b`)
	for file, d := range mustReadDashboards(t) {
		for _, p := range d.Panels {
			legends := make(map[string]bool)
			for _, q := range p.Targets {
				where := file + ": " + p.Title
				require.True(t, q.Legend != "" || p.Type == "stat", where)
				require.False(t, legends[q.Legend], "%s: two queries have the legend %s", where, q.Legend)
				legends[q.Legend] = true
				for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(q.Legend, -1) {
					if !aggregation.MatchString(q.Expr) {
						require.Equal(t, "instance", label[1], where) // a result for each node
						continue
					}
					require.Regexp(t, `by \([^)]*\b`+label[1]+`\b`, q.Expr, "%s: the result has no label %s", where, label[1])
				}
			}
		}
	}
}

// TestDashboards_KnowTheirVariables: Grafana shows no data, and no error, for a variable that does not exist.
func TestDashboards_KnowTheirVariables(t *testing.T) {
	used := regexp.MustCompile(`\$\{?([A-Za-z_]\w*)`)
	for file, d := range mustReadDashboards(t) {
		known := []string{"__rate_interval"}
		for _, v := range d.Templating.List {
			known = append(known, v.Name)
		}
		text, err := os.ReadFile(filepath.Join("dashboards", file))
		require.NoError(t, err)
		for _, match := range used.FindAllStringSubmatch(string(text), -1) {
			if match[1] != "__all" { // all values are selected
				require.Contains(t, known, match[1], file)
			}
		}
	}
}

func TestDashboards_LayPanelsOutWithoutOverlap(t *testing.T) {
	const columns = 24
	for file, d := range mustReadDashboards(t) {
		taken := make(map[[2]int]string)
		ids := make(map[int]bool)
		below := 0
		for _, p := range d.Panels {
			require.False(t, ids[p.ID] || p.ID == 0, "%s: two panels %d", file, p.ID)
			ids[p.ID] = true
			g := p.GridPos
			require.True(t, g.X >= 0 && g.Y >= 0 && g.W > 0 && g.H > 0 && g.X+g.W <= columns, "%s: %s: %+v", file, p.Title, g)
			for x := g.X; x < g.X+g.W; x++ {
				for y := g.Y; y < g.Y+g.H; y++ {
					require.Empty(t, taken[[2]int{x, y}], "%s: %s overlaps", file, p.Title)
					taken[[2]int{x, y}] = p.Title
				}
			}
			below = max(below, g.Y+g.H)
		}
		require.Len(t, taken, columns*below, "%s has gaps", file)
	}
}

func TestGeneratedFiles_MatchDashboardsAndRules(t *testing.T) {
	files, err := generateFiles(".")
	require.NoError(t, err)
	for name, text := range files {
		stored, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(t, err, "run make deploy-files")
		require.Equal(t, string(text), string(stored), "%s: run make deploy-files", name)
	}
	copies, err := filepath.Glob(filepath.Join("..", chartFiles, "dashboards", "*"))
	require.NoError(t, err)
	require.Len(t, copies, len(files)-2, "the chart has a dashboard that is not in this folder: run make deploy-files")
}

func TestWriteFiles_RemovesADeletedDashboard(t *testing.T) {
	deploy := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(deploy, "observability"), os.DirFS(".")))
	gone := filepath.Join(deploy, chartFiles, "dashboards", "gone.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(gone), 0o755))
	require.NoError(t, os.WriteFile(gone, []byte("{}"), 0o600))
	require.NoError(t, writeFiles(deploy))
	require.NoFileExists(t, gone)
	require.FileExists(t, filepath.Join(deploy, chartFiles, "rules.yaml"))
	require.ErrorContains(t, writeFiles(t.TempDir()), "run it with the folder deploy")
}
