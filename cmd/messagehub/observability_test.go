package main

import (
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/demo"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/otlp"
)

// metricsWithoutDemo lists the metrics that may have no value after a demo, with a
// reason for each.
var metricsWithoutDemo = map[string]string{
	"messagehub_certificate_expiry_timestamp_seconds": "it has no TLS",
	"messagehub_certificate_start_timestamp_seconds":  "it has no TLS",
	"messagehub_trace_spans_dropped_total":            "it has no receiver of traces",

	"messagehub_last_sweep_timestamp_seconds": "it may be over before the first sweep",
	"messagehub_swept_total":                  "it may be over before the first sweep",
	"messagehub_mailboxes":                    "it may be over before the first survey",
	"messagehub_oldest_event_age_seconds":     "it may be over before the first survey",
	"messagehub_open_bundle_age_seconds":      "it may be over before the first survey",
	"messagehub_survey_age_seconds":           "it may be over before the first survey",
	"messagehub_waiting_events":               "it may be over before the first survey",

	"messagehub_servicebus_connected":                    "its domains send over HTTP",
	"messagehub_servicebus_messages_dead_lettered_total": "its domains send over HTTP",
}

// A labelSet is the set of labels of a metric.
type labelSet map[string]bool

// registeredMetrics returns the labels of every metric of a hub with all
// features enabled.
func registeredMetrics(t *testing.T) map[string]labelSet {
	t.Helper()
	registry := node.NewRegistry()
	cfg := config.Default()
	cfg.Listen, cfg.BusListen, cfg.BlobListen, cfg.InMemory = "127.0.0.1:0", "", "", true
	cfg.Admin.Token = operatorToken
	n, err := node.Open(t.Context(), cfg, node.Options{Registry: registry})
	require.NoError(t, err)
	require.NoError(t, n.Close())
	traces, err := otlp.Open(t.Context(), otlp.Options{Environ: []string{"OTEL_TRACES_EXPORTER=otlp"}, Registerer: registry})
	require.NoError(t, err)
	traces.Close(t.Context(), time.Second)
	described := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(described)
		close(described)
	}()
	metrics := make(map[string]labelSet)
	form := regexp.MustCompile(`fqName: "(\w+)".*constLabels: {(.*)}, variableLabels: {(.*)}}$`)
	for desc := range described {
		match := form.FindStringSubmatch(desc.String())
		require.NotNil(t, match, desc.String())
		labels := make(labelSet)
		for _, list := range match[2:] {
			for label := range strings.SplitSeq(list, ",") {
				label, _, _ = strings.Cut(label, "=")
				labels[label] = true
			}
		}
		metrics[match[1]] = labels
	}
	return metrics
}

// demoMetrics runs a small demo, and returns the metrics that its hub exports.
func demoMetrics(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	registry := node.NewRegistry()
	d := demo.Demo{Events: 60, Backlog: 30, Seed: 1, Out: io.Discard, Err: io.Discard, Logger: slog.New(slog.DiscardHandler), Registry: registry}
	require.NoError(t, d.Run(t.Context()))
	gathered, err := registry.Gather()
	require.NoError(t, err)
	families := make(map[string]*dto.MetricFamily)
	for _, f := range gathered {
		families[f.GetName()] = f
	}
	writeMetrics(t, gathered)
	return families
}

// writeMetrics writes a hub's metrics to the file that .ci/test-rules names.
// promtool check metrics then checks the file.
func writeMetrics(t *testing.T, families []*dto.MetricFamily) {
	t.Helper()
	name := os.Getenv("MESSAGEHUB_METRICS_FILE")
	if name == "" {
		return
	}
	file, err := os.Create(name)
	require.NoError(t, err)
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(file, f)
		require.NoError(t, err)
	}
	require.NoError(t, file.Close())
}

// A promQL is a PromQL expression of a rule or of a dashboard.
type promQL struct {
	Name  string `yaml:"record"`
	Alert string `yaml:"alert"`
	Text  string `yaml:"expr"`
}

// observabilityExpressions returns all expressions of rules and dashboards.
// dashboard_rules.yaml contains the expressions of the dashboards.
func observabilityExpressions(t *testing.T) (all []promQL) {
	t.Helper()
	for _, name := range []string{"rules.yaml", "dashboard_rules.yaml"} {
		text, err := os.ReadFile("../../deploy/observability/" + name)
		require.NoError(t, err)
		var file struct {
			Groups []struct {
				Rules []promQL `yaml:"rules"`
			} `yaml:"groups"`
		}
		require.NoError(t, yaml.Unmarshal(text, &file))
		require.NotEmpty(t, file.Groups, name)
		for _, g := range file.Groups {
			all = append(all, g.Rules...)
		}
	}
	return all
}

// targetLabels lists labels that Prometheus adds itself.
var targetLabels = []string{"namespace", "job", "instance", "le"}

func TestObservability_NamesOnlyWhatAHubExportsAfterADemo(t *testing.T) {
	registered, exported := registeredMetrics(t), demoMetrics(t)
	list, err := os.ReadFile("../../deploy/observability/awaited_metrics.txt")
	require.NoError(t, err)
	awaited := make(map[string]bool)
	for _, name := range regexp.MustCompile(`(?m)^messagehub_\w+$`).FindAllString(string(list), -1) {
		awaited[name] = true
	}
	metric := regexp.MustCompile(`\b((?:messagehub|process|go)_\w+)\b(?:{([^}]*)})?`)
	matcher := regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)
	grouping := regexp.MustCompile(`\bby \(([^)]*)\)`)
	recorded := regexp.MustCompile(`[a-z_]+:messagehub_\w+:\w+(?:{[^}]*})?`)
	used := make(map[string]bool)
	for _, e := range observabilityExpressions(t) {
		labels := make(labelSet)
		text := recorded.ReplaceAllString(e.Text, "")
		for _, match := range metric.FindAllStringSubmatch(text, -1) {
			name := match[1]
			if registered[name] == nil {
				name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			}
			used[name] = true
			_, isAwaited := awaited[name]
			require.True(t, isAwaited || registered[name] != nil, "%s: the hub has no metric %s", e.Name+e.Alert, name)
			for label := range registered[name] {
				labels[label] = true
			}
			for _, label := range targetLabels {
				labels[label] = true
			}
			_, isElsewhere := metricsWithoutDemo[name]
			require.True(t, isAwaited || isElsewhere || exported[name] != nil, "%s: no value of %s after a demo", e.Name+e.Alert, name)
			for _, m := range matcher.FindAllStringSubmatch(match[2], -1) {
				require.True(t, labels[m[1]], "%s: %s has no label %s", e.Name+e.Alert, name, m[1])
				if family := exported[name]; family != nil && m[2] == "=" && m[1] != "job" && m[1] != "status" {
					require.True(t, hasValue(family, m[1], m[3]), "%s: no %s has %s", e.Name+e.Alert, name, m[0])
				}
			}
		}
		if len(labels) == 0 { // not a metric of the hub, but a recorded series or the series up
			continue
		}
		for _, list := range grouping.FindAllStringSubmatch(text, -1) {
			for label := range strings.SplitSeq(list[1], ", ") {
				require.True(t, labels[label], "%s: no metric has the label %s", e.Name+e.Alert, label)
			}
		}
	}
	for name := range metricsWithoutDemo {
		require.True(t, used[name], "%s does not belong to metricsWithoutDemo", name)
	}
	for name := range awaited {
		require.True(t, used[name] && registered[name] == nil, "%s does not belong to awaited_metrics.txt any longer", name)
	}
}

// hasValue reports whether the family contains a metric whose label has this
// value.
func hasValue(family *dto.MetricFamily, label, value string) bool {
	return slices.ContainsFunc(family.GetMetric(), func(m *dto.Metric) bool {
		return slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == label && l.GetValue() == value })
	})
}
