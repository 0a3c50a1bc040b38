// Package chart renders the Helm chart in deploy/helm/messagehub and tests it, without a cluster and
// without the command helm: its library renders the chart, and the types of Kubernetes decode the
// result.
//
// The tests render every combination of the options that change what is made (options_test.go) and
// check each result: no field that Kubernetes does not know, selectors and ports that meet, pods
// without rights (rules_test.go). Values that the chart does not know, or that
// contradict each other, must be refused with a message that says what to change
// (refused_test.go).
//
// What it leaves to others: the settings in the rendered ConfigMaps are kept in
// deploy/helm/messagehub/ci/settings.yaml, which a test of cmd/node/config loads as the hub does.
// The types of KEDA and of the Prometheus operator are not to be had as a module that is small
// enough, so decode_test.go has those fields of them that the chart sets. Rules that only a
// server checks, such as the ranges of numbers, are not checked.
package chart
