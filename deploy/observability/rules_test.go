package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// ruleFile is a file of rules, as Prometheus reads it.
type ruleFile struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type rule struct {
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// readRules returns all rules, in the order of the file.
func readRules(t *testing.T) (all []rule) {
	t.Helper()
	text, err := os.ReadFile("rules.yaml")
	require.NoError(t, err)
	var file ruleFile
	require.NoError(t, yaml.Unmarshal(text, &file))
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

func TestEachAlert_HasATestThatFiresAndOneThatDoesNot(t *testing.T) {
	text, err := os.ReadFile("rules_test.yaml")
	require.NoError(t, err)
	var file struct {
		Tests []struct {
			AlertTests []struct {
				Alert  string `yaml:"alertname"`
				Alerts []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	fires, isQuiet := make(map[string]bool), make(map[string]bool)
	for _, c := range file.Tests {
		for _, a := range c.AlertTests {
			fires[a.Alert] = fires[a.Alert] || len(a.Alerts) > 0
			isQuiet[a.Alert] = isQuiet[a.Alert] || len(a.Alerts) == 0
		}
	}
	n := 0
	for _, r := range readRules(t) {
		if r.Alert == "" {
			continue
		}
		n++
		require.True(t, fires[r.Alert], "%s: rules_test.yaml has no case in which it fires", r.Alert)
		require.True(t, isQuiet[r.Alert], "%s: rules_test.yaml has no case in which it does not fire", r.Alert)
	}
	require.Len(t, fires, n, "rules_test.yaml tests alerts that rules.yaml does not have")
}

func TestEachAlert_NamesASectionOfTheRunbook(t *testing.T) {
	text, err := os.ReadFile("../handbook/incidents.md")
	require.NoError(t, err)
	anchors := make(map[string]string)
	for _, found := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(string(text), -1) {
		anchors[anchorOf(found[1])] = found[1]
	}
	for _, r := range readRules(t) {
		if r.Alert == "" {
			continue
		}
		page, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "#")
		require.Equal(t, "https://github.com/messagehub/messagehub/blob/main/deploy/handbook/incidents.md", page, r.Alert)
		require.True(t, strings.HasPrefix(anchors[anchor], r.Alert+": "), "%s: incidents.md has no section #%s", r.Alert, anchor)
		require.Contains(t, []string{"warning", "critical"}, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.For, "%s: say how long it waits, 0m included", r.Alert)
		for _, name := range []string{"summary", "description"} {
			require.Regexp(t, `^\S.*\.$`, r.Annotations[name], "%s: want a sentence as %s", r.Alert, name)
		}
	}
}

// questions are the headings that the section of each alert has, in this order.
var questions = []string{"**What it means:** ", "**Look at:** ", "**Do:** ", "**Ignore it:** "}

// TestIncidents_SectionsOfAlertsAnswerTheSameQuestions helps an operator who reads the sections at
// night: the answers are always in the same order, with a command for the diagnosis, and a command
// or a link for the repair.
func TestIncidents_SectionsOfAlertsAnswerTheSameQuestions(t *testing.T) {
	page, err := os.ReadFile("../handbook/incidents.md")
	require.NoError(t, err)
	var alerts, sections []string
	for _, r := range readRules(t) {
		if r.Alert != "" {
			alerts = append(alerts, r.Alert)
		}
	}
	action := regexp.MustCompile("```|`messagehub |\\]\\(")
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		name, body, _ := strings.Cut(section, ": ")
		if !strings.HasPrefix(name, "MessageHub") {
			continue
		}
		sections = append(sections, name)
		answers := make([]string, len(questions))
		for i, question := range questions {
			before, rest, isAnswered := strings.Cut(body, "\n"+question)
			require.True(t, isAnswered, "incidents.md: %s does not answer %sin its place", name, question)
			if i > 0 {
				answers[i-1] = before
			}
			answers[i], body = rest, rest
		}
		require.Contains(t, answers[1], "```", "incidents.md: %s has no command to look", name)
		require.Regexp(t, action, answers[2], "incidents.md: %s has no command to act, and no link", name)
		for i, answer := range answers {
			require.NotEmpty(t, strings.TrimSpace(answer), "incidents.md: %s: %s", name, questions[i])
		}
	}
	require.Equal(t, alerts, sections, "incidents.md has the sections of the alerts in the order of rules.yaml")
}

// anchorOf returns the anchor that GitHub gives a heading.
func anchorOf(heading string) string {
	return strings.ReplaceAll(regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

func TestEachAlert_HasACommentOnItsThreshold(t *testing.T) {
	text, err := os.ReadFile("rules.yaml")
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "- alert:") {
			require.True(t, strings.HasPrefix(strings.TrimSpace(lines[i-1]), "# "), "%s: say above it why its threshold is what it is", line)
		}
	}
}

// TestRules_SelectTheirHub: the chart replaces this matcher by the release and the namespace.
func TestRules_SelectTheirHub(t *testing.T) {
	name := regexp.MustCompile(`\b(?:up|messagehub_\w+|[a-z_]+:messagehub_\w+:\w+)\b(.{0,18})`)
	for _, r := range readRules(t) {
		found := name.FindAllStringSubmatch(r.Expr, -1)
		require.NotEmpty(t, found, r.Record+r.Alert)
		for _, match := range found {
			require.True(t, strings.HasPrefix(match[1], `{job="messagehub"`), "%s: %s", r.Record+r.Alert, match[0])
		}
	}
}

func TestRecordedRules_AreReadByAnAlert(t *testing.T) {
	rules := readRules(t)
	for _, r := range rules {
		require.True(t, r.Record == "" || slices.ContainsFunc(rules, func(alert rule) bool {
			return alert.Alert != "" && strings.Contains(alert.Expr, r.Record+"{")
		}), "no alert reads %s", r.Record)
	}
}

func TestRecordedRules_AreNamedByLevelMetricAndOperations(t *testing.T) {
	var names []string
	for _, r := range readRules(t) {
		if r.Record != "" {
			require.Regexp(t, `^(job|job_[a-z]+|instance):messagehub_[a-z_]+:[a-z0-9_]+$`, r.Record)
			names = append(names, r.Record)
			continue
		}
		for _, found := range regexp.MustCompile(`[a-z_]+:[a-z_]+:[a-z0-9_]+`).FindAllString(r.Expr, -1) {
			require.Contains(t, names, found, "%s: a rule above it has to record it", r.Alert)
		}
	}
}

// TestRulesAndDashboards_NameOnlyMetricsOfTheHub compares with the metrics on the page about
// monitoring, which a test of the handbook compares with the metrics that a node exports.
func TestRulesAndDashboards_NameOnlyMetricsOfTheHub(t *testing.T) {
	page, err := os.ReadFile("../handbook/monitoring.md")
	require.NoError(t, err)
	name := regexp.MustCompile(`messagehub_[a-z_]*[a-z]`)
	awaited, err := os.ReadFile("awaited_metrics.txt")
	require.NoError(t, err)
	known := name.FindAllString(string(page)+string(awaited), -1)
	suffix := regexp.MustCompile(`_(bucket|sum|count)$`)
	recorded := regexp.MustCompile(`[a-z_]+:[a-z_]+:[a-z0-9_]+`)
	files, err := filepath.Glob("dashboards/*.json")
	require.NoError(t, err)
	for _, file := range append(files, "rules.yaml") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		found := name.FindAllString(recorded.ReplaceAllString(string(text), ""), -1)
		require.Greater(t, len(found), 10, file)
		for _, metric := range found {
			require.True(t, slices.Contains(known, metric) || slices.Contains(known, suffix.ReplaceAllString(metric, "")), "%s: a hub has no %s", file, metric)
		}
	}
}
