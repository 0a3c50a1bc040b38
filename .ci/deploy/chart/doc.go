// Package chart renders the Helm chart in deploy/helm/messagehub and tests it,
// without a cluster and without the command helm: Helm's library renders the
// chart, and the types of Kubernetes decode the result.
//
// The tests render every combination of the options that change the result
// (options_test.go) and check it: no unknown fields, selectors and ports that
// match, pods without rights (rules_test.go). Unknown or contradictory values
// must be refused with a message that says what to change (refused_test.go).
//
// The settings in the rendered ConfigMaps are stored in
// deploy/helm/messagehub/ci/settings.yaml, which a test of cmd/node/config
// loads as the hub does. The modules with the types of KEDA and of the
// Prometheus operator are too large, so decode_test.go declares the fields that
// the chart sets. Rules that only a server checks, such as the ranges of
// numbers, are not checked.
package chart
