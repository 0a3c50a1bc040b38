package chart

import (
	"fmt"
	"slices"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestGoMemoryLimit_IsNineTenthsOfTheLimit(t *testing.T) {
	for _, limit := range []string{"64Mi", "512Mi", "1Gi", "1.5Gi", "2G", "0.75G", "1234567k", "300M", "1Ti", "0.5T", "65536Ki", "536870912", "123456789", "3.3Gi"} {
		hub := mustRender(t, merge(t, embedded, fmt.Sprintf("resources: {requests: null, limits: {memory: %s}}", limit))).statefulSets[0].Spec.Template.Spec.Containers[0]
		quantity := resource.MustParse(limit)
		want := quantity.AsApproximateFloat64() * 0.9
		at := slices.IndexFunc(hub.Env, func(v core.EnvVar) bool { return v.Name == "GOMEMLIMIT" })
		var got float64
		if _, err := fmt.Sscan(hub.Env[at].Value, &got); err != nil || got > want || got < want-2 {
			t.Errorf("%s: GOMEMLIMIT is %s, want %.0f", limit, hub.Env[at].Value, want)
		}
	}
}

func TestGoMemoryLimit_IsLeftOutWithoutALimit(t *testing.T) {
	for _, values := range []string{"resources: null", "resources: {limits: null}", "resources: {limits: {memory: null}}"} {
		hub := mustRender(t, merge(t, embedded, values)).statefulSets[0].Spec.Template.Spec.Containers[0]
		if slices.ContainsFunc(hub.Env, func(v core.EnvVar) bool { return v.Name == "GOMEMLIMIT" }) {
			t.Errorf("%s: %v", values, hub.Env)
		}
	}
}
