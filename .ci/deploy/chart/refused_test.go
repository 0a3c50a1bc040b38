package chart

import (
	"strings"
	"testing"
)

// overAzure and overEmbedded have bad values, which are merged into the values of a hub on Azure
// and of an embedded hub. names is the part of the values that the error message must name, and
// remedy is the change that it must propose.
var overAzure = []struct{ values, names, remedy string }{
	{"config: {cosmos: {endpoint: null}}", "config.cosmos.endpoint", "mode to embedded"},
	{"config: {blob: {endpoint: null}}", "config.blob.endpoint", "mode to embedded"},
	{"config: {servicebus: {namespace: null}}", "config.servicebus.namespace", "mode to embedded"},
	{"secrets: {serviceBusConnection: {name: keys}}", "secrets.serviceBusConnection", "remove one of the two"},
	{"secrets: {busKey: {name: keys}}", "secrets.busKey", "remove it"},
	{"secrets: {exchangeKey: {name: keys}}", "secrets.exchangeKey", "remove it"},
	{"persistence: {existingClaim: hub-data}", "persistence", "mode to embedded"},
	{"persistence: {storageClass: fast}", "persistence", "mode to embedded"},

	{"config: {oidc: null}\nsecrets: {adminToken: {name: hub}}", "X-Actor-Id", "config.insecure"},
	{"config: {oidc: {audience: null}}", "config.oidc.audience", "claim aud"},
	{"config: {tls: null}", "plain HTTP", "tls.secretName"},
	{"tls: {secretName: hub}", "config.tls.terminated", "remove one of the two"},
	{"tls: {clientCA: ca.crt}", "tls.clientCA", "set tls.secretName"},
	{"secrets: {consoleClientSecret: {name: hub}}", "secrets.consoleClientSecret", "set config.console.client-id"},
	{"config: {oidc: null, insecure: true, console: {client-id: hub}}\nsecrets: {adminToken: {name: hub}}", "config.console.client-id", "set config.oidc.issuer"},
	{"config: {oidc: null, insecure: true}", "secrets.adminToken", "config.admin.tokens"},
	{"config: {production: true}\nsecrets: {cosmosKey: {name: keys}}", "secrets.cosmosKey", "remove"},
	{"identity: {clientId: ''}", "identity.clientId", "identity.type to none"},
	{"identity: {clientId: ''}\nserviceAccount: {create: false}", "serviceAccount.name", "serviceAccount.create"},
	{"serviceAccount: {create: false, name: hub}", "identity.clientId", "remove clientId"},
	{"identity: {type: none}", "identity.clientId", "remove it"},
	{"identity: {type: none, clientId: ''}\nsecrets: {cosmosKey: {name: keys}}", "identity.type", "secrets.blobKey"},

	{"replicas: 3\nautoscaling: {type: hpa}", "replicas", "autoscaling.minReplicas"},
	{"autoscaling: {type: keda, minReplicas: 7}", "autoscaling.minReplicas", "lower it"},
	{"autoscaling: {type: hpa}\nresources: {requests: {cpu: null}}", "resources.requests.cpu", "use keda"},
	{"autoscaling: {type: keda}\nconfig: {servicebus: {namespace: null}}\nsecrets: {serviceBusConnection: {name: keys}}", "workload identity", "use hpa"},
	{"autoscaling: {type: keda}\nconfig: {servicebus: {namespace: 'emulator.example:5672'}}", "emulator", "use hpa"},
	{"autoscaling: {type: keda}\nconfig: {servicebus: {fifo-queue: none, plain-queue: None}}", "needs a queue", "use hpa"},
	{"podDisruptionBudget: {maxUnavailable: 2}", "podDisruptionBudget.maxUnavailable", "lower it"},
	{"autoscaling: {type: hpa, minReplicas: 3}\npodDisruptionBudget: {maxUnavailable: 3}", "podDisruptionBudget.maxUnavailable", "lower it"},
	{"drain: {terminationGracePeriodSeconds: 44}", "preStopSeconds + 25 + 10 = 45", "raise it"},
	{"drain: {terminationGracePeriodSeconds: 60, preStopSeconds: 30}", "preStopSeconds + 25 + 10 = 65", "raise it"},
	{"resources: {requests: {memory: 1025Mi}}", "resources.requests.memory", "lower it"},
	{"resources: {requests: {cpu: 1.5}, limits: {cpu: 1200m}}", "resources.requests.cpu", "lower it"},

	{"ingress: {enabled: true}", "ingress.hosts", "hub.example.org"},
	{"service: {port: 8081}", "service", "choose others"},
	{"service: {loadBalancerSourceRanges: [10.0.0.0/8]}", "loadBalancerSourceRanges", "LoadBalancer"},
	{"monitoring: {serviceMonitor: {enabled: true}, podMonitor: {enabled: true}, authorization: {name: x}}\nnetworkPolicy: {enabled: false}", "monitoring.podMonitor", "one of the two"},
	{"monitoring: {serviceMonitor: {enabled: true}}\nnetworkPolicy: {enabled: false}", "monitoring.authorization", "name a Secret"},
	{"monitoring: {podMonitor: {enabled: true}, authorization: {name: x}}", "networkPolicy.operators", "namespaceSelector"},
	{"monitoring: {ca: {name: x}}", "monitoring.ca", "remove it"},

	{"labels: {app.kubernetes.io/name: hub}", "labels: app.kubernetes.io/name", "remove it"},
	{"podLabels: {app.kubernetes.io/component: x}", "podLabels: app.kubernetes.io/component", "remove it"},
	{"podLabels: {azure.workload.identity/use: 'false'}", "azure.workload.identity/use", "remove it"},
	{"monitoring: {rules: {labels: {helm.sh/chart: x}}}", "monitoring.rules.labels", "remove it"},
	{"podAnnotations: {checksum/settings: x}", "checksum/settings", "remove it"},
	{"extraEnv: [{name: MESSAGEHUB_COSMOS_KEY, value: key}]", "MESSAGEHUB_COSMOS_KEY", "secrets"},
	{"extraEnv: [{name: MESSAGEHUB_LISTEN, value: ':80'}]", "MESSAGEHUB_LISTEN", "use config"},
	{"extraEnv: [{name: GOMEMLIMIT, value: 1GiB}]", "GOMEMLIMIT", "resources.limits.memory"},
	{"extraEnv: [{name: AZURE_TOKEN_CREDENTIALS, value: dev}]", "AZURE_TOKEN_CREDENTIALS", "type to none"},
	{"extraVolumes: [{name: data, emptyDir: {}}]", "extraVolumes: data", "another name"},
	{"extraVolumeMounts: [{name: x, mountPath: /data/, readOnly: true}]", "/data", "another path"},
	{"extraVolumeMounts: [{name: x, mountPath: /data/../data/hub}]", "/data", "another path"},
	{"extraVolumeMounts: [{name: x, mountPath: /etc/messagehub/config/more}]", "/etc/messagehub/config", "another path"},
}

var overEmbedded = []struct{ values, names, remedy string }{
	{"config: {cosmos: {endpoint: 'https://account.documents.azure.com'}}", "config.cosmos.endpoint", "mode to azure"},
	{"config: {servicebus: {namespace: market.servicebus.windows.net}}", "config.servicebus.namespace", "mode to azure"},
	{"config: {blob: {endpoint: 'https://account.blob.core.windows.net'}}", "config.blob.endpoint", "mode to azure"},
	{"secrets: {cosmosKey: {name: keys}}", "secrets.cosmosKey", "mode to azure"},
	{"replicas: 2", "replicas: 2", "mode to azure"},
	{"autoscaling: {type: hpa}", "autoscaling.type: hpa", "mode to azure"},
	{"autoscaling: {type: keda}", "autoscaling.type: keda", "mode to azure"},
	{"persistence: {existingClaim: hub-data, storageClass: fast}", "persistence.existingClaim", "remove one"},
	{"security: {fsGroup: 0}", "belongs to root", "set it, such as 65532"},
	{"secrets: {busKey: {name: keys}}", "secrets.busKey", "set tls.secretName"},
	{"secrets: {exchangeKey: {name: keys}}", "secrets.exchangeKey", "set tls.secretName"},
	{"config: {insecure: null}", "X-Actor-Id", "config.insecure"},
}

func TestRender_RefusesContradictions(t *testing.T) {
	check := func(t *testing.T, base, values, names, remedy string) {
		t.Run(values, func(t *testing.T) {
			_, _, err := render(t, merge(t, base, values))
			switch {
			case err == nil:
				t.Fatal("accepted")
			case !strings.Contains(err.Error(), names), !strings.Contains(err.Error(), remedy):
				t.Fatalf("want %q and %q in: %v", names, remedy, err)
			case !strings.Contains(err.Error(), "1 of the values contradict"):
				t.Logf("more than one: %v", err)
			}
		})
	}
	for _, c := range overAzure {
		check(t, azure, c.values, c.names, c.remedy)
	}
	for _, c := range overEmbedded {
		check(t, embedded, c.values, c.names, c.remedy)
	}
}

func TestRender_ReportsAllContradictionsAtOnce(t *testing.T) {
	_, _, err := render(t, nil)
	if err == nil {
		t.Fatal("a hub without an account was accepted")
	}
	for _, name := range []string{"config.cosmos.endpoint", "config.blob.endpoint", "config.servicebus.namespace", "config.oidc.issuer", "secrets.adminToken", "identity.clientId"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not in: %v", name, err)
		}
	}
}

func TestSchema_RefusesUnknownValues(t *testing.T) {
	for _, values := range []string{
		"replica: 3", "replicas: 0", "replicas: '3'", "mode: cosmos",
		"image: {name: x}", "image: {digest: latest}", "image: {pullPolicy: Sometimes}",
		"config: {cosmos: {endpiont: x}}", "config: {cosmos: {key: secret}}", "config: {listen: ':80'}", "config: {data: /tmp}",
		"config: {in-memory: true}", "config: {admin: {token: secret}}", "config: {tls: {cert: x}}", "config: {insecure: 'yes'}",
		"config: {ordering: none}", "config: {servicebus: {connection: secret}}", "config: {push: {secret-key: secret}}",
		"config: {domains: [{group: masterdata}]}", "config: {domains: [{name: X, contents: inline}]}",
		"config: {broker: {channels: [{id: prices, token: secret}]}}", "config: {broker: {fail-safe: off}}",
		"config: {objects: {stores: [{bucket: x, kind: s3, key: secret}]}}", "config: {log: {level: trace}}",
		"secrets: {token: {name: x}}", "secrets: {adminToken: x}", "secrets: {adminToken: {value: secret}}", "secrets: {adminToken: {name: x, key: ../x}}",
		"tls: {cert: x}", "identity: {type: managed}", "identity: {clientId: hub}", "serviceAccount: {annotations: {a: 1}}",
		"service: {type: ExternalName}", "service: {port: 0}", "service: {port: 65536}",
		"ingress: {hosts: [hub.example.org]}", "ingress: {hosts: [{host: x, path: hub}]}", "ingress: {host: x}",
		"networkPolicy: {from: []}", "autoscaling: {enabled: true}", "autoscaling: {type: both}", "autoscaling: {minReplicas: 0}",
		"autoscaling: {keda: {messageCount: 5}}", "podDisruptionBudget: {minAvailable: 1}", "podDisruptionBudget: {maxUnavailable: 0}",
		"podDisruptionBudget: {maxUnavailable: 100%}", "topologySpread: {whenUnsatisfiable: Never}",
		"security: {runAsUser: -1}", "security: {privileged: true}", "security: {runAsNonRoot: false}",
		"resources: {limits: {memory: 1 GB}}", "resources: {limits: {memory: lots}}", "resources: {limit: {}}", "resources: {requests: {cpu: 0}}",
		"drain: {preStopSeconds: 0}", "drain: {seconds: 5}", "probes: {startupSeconds: 1}",
		"persistence: {accessMode: ReadWriteMany}", "persistence: {size: big}", "temporary: {size: 2Gb}", "persistence: {readOnly: true}",
		"monitoring: {interval: often}", "monitoring: {prometheusRule: {enabled: true}}", "monitoring: {rules: {groups: []}}",
		"test: {image: x}", "extraEnv: [{value: x}]", "extraVolumeMounts: [{name: x, mountPath: data}]", "labels: {a: 1}", "fullnameOverride: Hub",
	} {
		t.Run(values, func(t *testing.T) {
			_, _, err := render(t, merge(t, azure, values))
			if err == nil || !strings.Contains(err.Error(), "values don't meet the specifications of the schema") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestSchema_IsClosedEverywhere(t *testing.T) {
	var check func(path string, node any)
	check = func(path string, node any) {
		switch n := node.(type) {
		case []any:
			for _, x := range n {
				check(path+"[]", x)
			}
		case map[string]any:
			if properties, ok := n["properties"].(map[string]any); ok && n["additionalProperties"] == nil && n["required"] == nil {
				t.Errorf("%s accepts values beside %d that it knows", path, len(properties))
			}
			for name, x := range n {
				check(path+"/"+name, x)
			}
		}
	}
	check("", parse(t, string(readChart(t).Schema)))
}
