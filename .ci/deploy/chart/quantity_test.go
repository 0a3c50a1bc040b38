package chart

import (
	"fmt"
	"slices"
	"strings"
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

// Helm decodes numbers as floats, which print as 1e+09.
func TestRender_KeepsLargeNumbers(t *testing.T) {
	const numbers = "security: {runAsUser: 1000660000, runAsGroup: 1000670000, fsGroup: 1000680000}\nconfig: {limits: {request-body: 67108864}}\n"
	set := mustRender(t, merge(t, embedded, numbers, "persistence: {size: 10737418240}")).statefulSets[0]
	security := set.Spec.Template.Spec.SecurityContext
	if *security.RunAsUser != 1000660000 || *security.RunAsGroup != 1000670000 || *security.FSGroup != 1000680000 {
		t.Errorf("%+v", security)
	}
	if size := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage(); size.Value() != 10737418240 {
		t.Errorf("size %s", size)
	}
	onAzure := mustRender(t, merge(t, azure, numbers, "autoscaling: {type: keda, keda: {messagesPerReplica: 10000000, cooldownPeriod: 2000000}}"))
	object := onAzure.scaledObjects[0].Spec
	if object.CooldownPeriod != 2000000 || object.Triggers[0].Metadata["messageCount"] != "10000000" {
		t.Errorf("%+v", object)
	}
	if settings := settingsOf(t, &onAzure); !strings.Contains(settings, "request-body: 67108864\n") {
		t.Error(settings)
	}
}
