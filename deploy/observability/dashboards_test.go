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
		require.False(t, uids[d.UID] || titles[d.Title], file)
		uids[d.UID], titles[d.Title] = true, true
		var names []string
		for _, v := range d.Templating.List {
			require.NotEmpty(t, v.Label, "%s: %s", file, v.Name)
			names = append(names, v.Type+" "+v.Name)
		}
		require.Equal(t, []string{"datasource datasource", "query job", "query instance"}, names, file)
	}
}

// units are those of Grafana, and a suffix of our own.
var units = regexp.MustCompile(`^(short|s|bytes|Bps|percentunit|reqps|ops|bool|suffix: RU|suffix: RU/s)$`)

func TestDashboards_AskTheChosenSourceInUnits(t *testing.T) {
	chosen := dataSource{"prometheus", "${datasource}"}
	selector := regexp.MustCompile(`\b(messagehub_\w+|process_\w+|up)\b(.{0,40})`)
	for file, d := range mustReadDashboards(t) {
		titles := make(map[string]bool)
		for _, p := range d.Panels {
			require.NotEmpty(t, p.Title, "%s: panel %d", file, p.ID)
			require.False(t, titles[p.Title], "%s: two panels %s", file, p.Title)
			titles[p.Title] = true
			require.Contains(t, []string{"timeseries", "stat"}, p.Type, "%s: %s", file, p.Title)
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

func TestDashboards_LayPanelsOutWithoutOverlap(t *testing.T) {
	const columns = 24
	for file, d := range mustReadDashboards(t) {
		taken := make(map[[2]int]string)
		ids := make(map[int]bool)
		below := 0
		for _, p := range d.Panels {
			require.False(t, ids[p.ID], "%s: two panels %d", file, p.ID)
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

func TestGeneratedFiles_AreThoseOfDashboardsAndRules(t *testing.T) {
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

func TestWriteFiles_RemovesADashboardThatHasGone(t *testing.T) {
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
