package chart

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	core "k8s.io/api/core/v1"
)

var update = flag.Bool("update", false, "write deploy/helm/messagehub/ci/settings.yaml")

const settingsFile = chartFolder + "/ci/settings.yaml"

// settingsHead is the beginning of the file of settings.
const settingsHead = "# Every configuration file that the chart makes of the combinations in .ci/deploy/chart, with the\n" +
	"# variables beside it. Written by `go -C .ci/deploy test ./chart -run Settings -update`; a test of\n" +
	"# cmd/node/config loads them as the hub does.\n"

// settingsOf returns the configuration file of a rendered hub, and the names of
// the environment variables that are secrets.
func settingsOf(t testing.TB, rendered *objects) string {
	t.Helper()
	pod := rendered.workloads()[0]
	variables := []string{}
	for _, v := range pod.spec.Containers[0].Env {
		if strings.HasPrefix(v.Name, "MESSAGEHUB_") && v.ValueFrom != nil {
			variables = append(variables, v.Name)
		}
	}
	config := rendered.configMaps[slices.IndexFunc(rendered.configMaps, func(m *core.ConfigMap) bool { return m.Name == pod.name })]
	return print(map[string]any{"variables": variables, "settings": parse(t, config.Data["messagehub.yaml"])})
}

// readSettings returns the documents of the file of settings.
var readSettings = sync.OnceValues(func() ([]string, error) {
	text, err := os.ReadFile(settingsFile)
	if err != nil {
		return nil, err
	}
	return strings.Split(string(text), "---\n")[1:], nil
})

// The settings are compared with the file that a test of the hub reads.
// TestRender_KeepsTheRulesInEveryCombination finds settings that are missing in that file.
func TestSettings_MatchTheFileThatTheHubLoads(t *testing.T) {
	texts := make(map[string]bool)
	for _, c := range combinations(t) {
		if strings.Contains(c.name, " unmonitored policy cluster ") && !strings.Contains(c.name, "alone") { // these options do not affect the settings
			rendered := mustRender(t, c.values)
			texts[settingsOf(t, &rendered)] = true
		}
	}
	all := slices.Sorted(maps.Keys(texts))
	if *update {
		if err := os.WriteFile(settingsFile, []byte(settingsHead+"---\n"+strings.Join(all, "---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	known, err := readSettings()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(known, all) {
		t.Fatalf("the chart makes other settings than those in %s; run go -C .ci/deploy test ./chart -run Settings -update, and look at the difference", settingsFile)
	}
	t.Logf("%d different configuration files", len(all))
}

func TestSettings_ChangeOfActorsRestartsNothing(t *testing.T) {
	const checksum = "checksum/settings"
	sum := func(values string) string {
		return mustRender(t, merge(t, azure, values)).deployments[0].Spec.Template.Annotations[checksum]
	}
	base := sum("")
	if other := sum("config: {actors: [{client: one, actor: '1'}]}"); base == "" || other != base {
		t.Errorf("the registry of actors is read again without a restart: %q, %q", base, other)
	}
	for _, values := range []string{"config: {retention: 8d}", "config: {domains: [{name: X}]}", "secrets: {adminToken: {name: x}}", "config: {tls: {terminated: false}, insecure: true}"} {
		if sum(values) == base {
			t.Errorf("%s restarts nothing", values)
		}
	}
}
