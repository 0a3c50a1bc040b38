// Command observability writes the files that are generated from its folder: dashboard_rules.yaml, in which each query of
// a dashboard is a recording rule, so that promtool checks it, and the chart's copies of rules.yaml and of the
// dashboards, because Helm reads no file outside of a chart. make deploy-files runs it:
//
//	go run ./deploy/observability deploy
//
// It needs the folder deploy. After an error, some files may be written and others not; run it again. The chart's copy of a deleted dashboard is removed.
package main
