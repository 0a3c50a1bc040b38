package chart

import (
	"fmt"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
)

// everything has values with all options switched on that do not contradict each other.
var everything = map[string]string{
	"keda": azure + `
autoscaling: {type: keda}
ingress: {enabled: true, hosts: [{host: hub.example.org}]}
monitoring: {serviceMonitor: {enabled: true}, authorization: {name: metrics}, rules: {enabled: true}, dashboards: {enabled: true}}
networkPolicy: {operators: [{podSelector: {}}]}
config: {console: {client-id: hub-console}}
secrets: {adminToken: {name: hub}, pushSecretKey: {name: hub}, consoleClientSecret: {name: hub}, consoleSessionKey: {name: hub}}
`,
	"hpa": azure + `
autoscaling: {type: hpa}
service: {type: LoadBalancer}
config: {tls: null}
tls: {secretName: hub-tls}
monitoring: {podMonitor: {enabled: true}, ca: {name: ca}, authorization: {name: metrics}}
networkPolicy: {operators: [{podSelector: {}}]}
test: {ca: ca.crt}
`,
	"embedded": embedded + `
tls: {secretName: hub-tls}
secrets: {busKey: {name: hub}, exchangeKey: {name: hub}}
`,
	"emulators": `
config:
  insecure: true
  cosmos: {endpoint: "https://emulator.example/"}
  blob: {endpoint: "https://emulator.example/account"}
identity: {type: none}
secrets: {adminToken: {name: hub}, cosmosKey: {name: hub}, serviceBusConnection: {name: hub}, blobKey: {name: hub}}
`,
}

// otherValues are valid values that differ from the defaults, for settings whose valid values
// cannot be derived from the default.
var otherValues = map[string]any{
	"mode": "embedded", "image.digest": "sha256:" + hash, "image.pullPolicy": "Always", "identity.type": "none",
	"identity.clientId": "31111111-2222-3333-4444-555555555555", "identity.tenantId": "31111111-2222-3333-4444-555555555555",
	"autoscaling.type": "none", "autoscaling.keda.identityClientId": "31111111-2222-3333-4444-555555555555",
	"service.type": "NodePort", "topologySpread.whenUnsatisfiable": "DoNotSchedule", "persistence.accessMode": "ReadWriteOncePod",
	"persistence.size": "11Gi", "temporary.size": "3Gi", "resources.requests.cpu": "251m", "resources.requests.memory": "513Mi", "resources.limits.memory": "2Gi",
	"monitoring.interval": "31s", "config": map[string]any{"retention": "8d"}, "probes.startupSeconds": 200,
	"imagePullSecrets": []any{map[string]any{"name": "x"}}, "service.loadBalancerSourceRanges": []any{"10.0.0.0/8"},
	"ingress.hosts": []any{map[string]any{"host": "other.example.org"}}, "ingress.tls": []any{map[string]any{"hosts": []any{"x"}}},
	"networkPolicy.clients": []any{map[string]any{}}, "networkPolicy.operators": []any{map[string]any{}}, "networkPolicy.extraEgress": []any{map[string]any{}},
	"tolerations": []any{map[string]any{"key": "x"}}, "affinity": map[string]any{"podAffinity": map[string]any{}},
	"extraEnv": []any{map[string]any{"name": "X"}}, "extraVolumes": []any{map[string]any{"name": "x"}},
	"extraVolumeMounts": []any{map[string]any{"name": "x", "mountPath": "/x"}},
}

// otherValue returns a value that differs from the default.
func otherValue(path string, value any) any {
	if other, ok := otherValues[path]; ok {
		return other
	}
	switch x := value.(type) {
	case bool:
		return !x
	case string:
		return x + "x"
	case float64:
		return x + 1
	default:
		return map[string]any{"x": "y"}
	}
}

// Each value of values.yaml is changed separately. A refusal because the value contradicts others
// also counts as an effect.
func TestValues_AllHaveAnEffect(t *testing.T) {
	base := make(map[string]string)
	for name, text := range everything {
		documents, _, err := render(t, merge(t, splitValues(text)...))
		if err != nil {
			t.Fatal(name, err)
		}
		base[name] = fmt.Sprint(documents)
	}
	var check func(path string, values map[string]any)
	check = func(path string, values map[string]any) {
		for name, value := range values {
			at := path + name
			if inner, ok := value.(map[string]any); ok && len(inner) > 0 && otherValues[at] == nil {
				check(at+".", inner)
				continue
			}
			overlay := otherValue(at, value)
			parts := strings.Split(at, ".")
			for i := len(parts) - 1; i >= 0; i-- {
				overlay = map[string]any{parts[i]: overlay}
			}
			hasEffect := false
			for name, text := range everything {
				documents, _, err := render(t, merge(t, append(splitValues(text), print(overlay))...))
				if err != nil && !strings.Contains(err.Error(), "contradict each other") {
					t.Fatal(at, err)
				}
				hasEffect = hasEffect || err != nil || fmt.Sprint(documents) != base[name]
			}
			if !hasEffect {
				t.Errorf("%s: no effect", print(overlay))
			}
		}
	}
	check("", readChart(t).Values)
}

func TestKEDA_ReadsTheQueuesOfTheHub(t *testing.T) {
	for _, c := range []struct{ bus, want string }{
		{"namespace: market.servicebus.windows.net", "market/dataavailable-fifo/AzurePublicCloud/ market/dataavailable/AzurePublicCloud/"},
		{"namespace: market.servicebus.usgovcloudapi.net, plain-queue: none", "market/dataavailable-fifo/AzureUSGovernmentCloud/"},
		{"namespace: market.servicebus.chinacloudapi.cn, fifo-queue: NONE, plain-queue: events", "market/events/AzureChinaCloud/"},
		{"namespace: market.bus.example.org, fifo-queue: ordered", "market/ordered/Private/bus.example.org market/dataavailable/Private/bus.example.org"},
	} {
		object := mustRender(t, merge(t, azure, "autoscaling: {type: keda}\nconfig: {servicebus: {"+c.bus+"}}")).scaledObjects[0]
		var got []string
		for _, trigger := range object.Spec.Triggers {
			m := trigger.Metadata
			got = append(got, strings.Join([]string{m["namespace"], m["queueName"], m["cloud"], m["endpointSuffix"]}, "/"))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q", c.bus, got)
		}
	}
}

func TestStartup_HasTheTimeOfTheValue(t *testing.T) {
	for _, seconds := range []int32{2, 3, 120, 301} {
		set := mustRender(t, merge(t, embedded, fmt.Sprintf("probes: {startupSeconds: %d}", seconds))).statefulSets[0]
		probe := set.Spec.Template.Spec.Containers[0].StartupProbe
		if got := probe.PeriodSeconds * probe.FailureThreshold; got < seconds || got > seconds+1 {
			t.Errorf("%d s: the hub may take %d s", seconds, got)
		}
	}
}

func TestIngress_SaysThatAGatewayHasTLS(t *testing.T) {
	for values, want := range map[string]bool{
		"ingress: {enabled: true, hosts: [{host: x}], tls: [{hosts: [x]}]}":                             true,
		"ingress: {enabled: true, hosts: [{host: x}]}":                                                  false,
		"ingress: {enabled: true, hosts: [{host: x}], tls: [{hosts: [x]}]}\ntls: {secretName: hub-tls}": false,
	} {
		rendered := mustRender(t, merge(t, embedded, values))
		if got := strings.Contains(settingsOf(t, &rendered), "terminated: true"); got != want {
			t.Errorf("%s: tls.terminated is %t", values, got)
		}
	}
}

func TestIdentity_IsInTheServiceAccountAndThePod(t *testing.T) {
	const id = "11111111-2222-3333-4444-555555555555"
	rendered := mustRender(t, merge(t, azure, "identity: {tenantId: 2"+id[1:]+"}\nserviceAccount: {annotations: {a: b}}"))
	want := map[string]string{"a": "b", "azure.workload.identity/client-id": id, "azure.workload.identity/tenant-id": "2" + id[1:]}
	if got := rendered.accounts[0].Annotations; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("annotations %v", got)
	}
	pod := rendered.workloads()[0]
	if pod.labels["azure.workload.identity/use"] != "true" || !hasVariable(pod, "AZURE_TOKEN_CREDENTIALS", "WorkloadIdentityCredential") {
		t.Errorf("labels %v, variables %v", pod.labels, pod.spec.Containers[0].Env)
	}
	rendered = mustRender(t, merge(t, everything["emulators"]))
	pod = rendered.workloads()[0]
	if pod.labels["azure.workload.identity/use"] != "" || hasVariable(pod, "AZURE_TOKEN_CREDENTIALS", "WorkloadIdentityCredential") || len(rendered.accounts[0].Annotations) > 0 {
		t.Errorf("a hub with keys has labels %v, annotations %v", pod.labels, rendered.accounts[0].Annotations)
	}
}

func hasVariable(p podTemplate, name, value string) bool {
	for _, v := range p.spec.Containers[0].Env {
		if v == (core.EnvVar{Name: name, Value: value}) {
			return true
		}
	}
	return false
}
