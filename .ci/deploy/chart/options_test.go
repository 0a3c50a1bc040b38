package chart

import (
	"fmt"
	"strings"
	"testing"
)

// azure has the values of a hub on Azure behind a gateway that terminates TLS.
const azure = `
config:
  cosmos: {endpoint: "https://account.documents.azure.com:443/"}
  servicebus: {namespace: market.servicebus.windows.net}
  blob: {endpoint: "https://account.blob.core.windows.net/"}
  oidc: {issuer: "https://login.microsoftonline.com/tenant/v2.0", audience: "api://messagehub"}
  tls: {terminated: true}
identity: {clientId: 11111111-2222-3333-4444-555555555555}
`

// embedded has the values of a hub that stores its data in a volume.
const embedded = `
mode: embedded
config: {insecure: true}
`

// An option is one choice in a dimension.
type option struct{ name, values string }

// A dimension is a choice that is independent of the other dimensions.
type dimension []option

var (
	access = dimension{
		{"insecure", "config: {insecure: true}\nsecrets: {adminToken: {name: hub}}"},
		{"insecure-tls", "config: {insecure: true, admin: {tokens: [{name: kim, sha256: " + hash + "}]}}\ntls: {secretName: hub-tls}\ntest: {ca: ca.crt}\nmonitoring: {ca: {name: hub-tls}}"},
		{"tokens-tls", oidc + "tls: {secretName: hub-tls, clientCA: clients.crt}"},
		{"tokens-terminated", oidc + "config: {tls: {terminated: true}, console: {client-id: hub-console}}\nsecrets: {adminToken: {name: hub}, pushSecretKey: {name: hub, key: push}, consoleClientSecret: {name: hub, key: client}, consoleSessionKey: {name: hub, key: session}}"},
		{"tokens-ingress", oidc + "ingress: {enabled: true, className: nginx, hosts: [{host: hub.example.org, path: /hub}], tls: [{secretName: hub, hosts: [hub.example.org]}]}"},
	}
	monitored = dimension{
		{"unmonitored", ""},
		{"service-monitor", "monitoring: {serviceMonitor: {enabled: true}, authorization: {name: metrics}, rules: {enabled: true}, dashboards: {enabled: true, annotations: {folder: hub}}, labels: {release: prometheus, team: operators}}\nnetworkPolicy: {operators: [{namespaceSelector: {matchLabels: {name: monitoring}}}]}"},
		{"pod-monitor", "monitoring: {podMonitor: {enabled: true}, authorization: {name: metrics}}\nnetworkPolicy: {operators: [{namespaceSelector: {}}], clients: [{podSelector: {}}], extraEgress: [{ports: [{port: 8443}]}]}"},
	}
	policed = dimension{
		{"policy", ""},
		{"no-policy", "networkPolicy: {enabled: false}"},
	}
	served = dimension{
		{"cluster", ""},
		{"load-balancer", "service: {type: LoadBalancer, port: 443, annotations: {a: b}, loadBalancerSourceRanges: [10.0.0.0/8]}"},
	}
	decorated = dimension{
		{"plain", ""},
		{"decorated", `
fullnameOverride: market-hub
labels: {team: market}
image: {repository: registry.example.org/messagehub, digest: "sha256:` + hash + `"}
imagePullSecrets: [{name: registry}]
podAnnotations: {a: b}
podLabels: {c: d, team: hub}
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{key: market, operator: Exists}]
affinity: {nodeAffinity: {}}
priorityClassName: high
extraEnv: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
extraVolumes: [{name: roots, configMap: {name: roots}}]
extraVolumeMounts: [{name: roots, mountPath: /etc/ssl/certs, readOnly: true}]
resources: {requests: {cpu: 1, memory: 256Mi}, limits: {cpu: "2", memory: 1.5Gi}}
drain: {preStopSeconds: 20, terminationGracePeriodSeconds: 90}
probes: {startupSeconds: 301}
security: {runAsUser: 0, runAsGroup: 0, fsGroup: 0}
config:
  ordering: recipient
  retention: 36h
  domains: [{name: Billing, group: masterdata, content: request, queue: invoices}]
  push: {insecure-http: true, allow: 10.0.0.0/8}
  limits: {events: 1000000, request-body: 67108864, trusted-proxies: 10.0.0.0/8}
  broker: {fail-safe: "off", channels: [{id: prices, token-file: /etc/prices/token}]}
  objects: {topic: true}
  log: {level: debug, format: text}
`},
	}

	scaled = dimension{
		{"fixed", "replicas: 3"},
		{"hpa", "autoscaling: {type: hpa}"},
		{"keda", "autoscaling: {type: keda, keda: {identityClientId: 11111111-2222-3333-4444-555555555555}}"},
	}
	identified = dimension{
		{"workload", "identity: {clientId: 11111111-2222-3333-4444-555555555555, tenantId: 21111111-2222-3333-4444-555555555555}"},
		{"own-account", "serviceAccount: {create: false, name: hub-on-azure}"},
		{"keys", "identity: {type: none}\nsecrets: {cosmosKey: {name: keys}, blobKey: {name: keys}, serviceBusConnection: {name: keys, key: bus}}"},
	}
	spread = dimension{
		{"spread", ""},
		{"alone", "topologySpread: {enabled: false}\npodDisruptionBudget: {enabled: false}"},
	}

	stored = dimension{
		{"new-volume", "persistence: {storageClass: managed-csi-premium, size: 64Gi, accessMode: ReadWriteOncePod}"},
		{"existing-volume", "persistence: {existingClaim: hub-data}"},
	}
	opened = dimension{
		{"closed", ""},
		{"open", "secrets: {busKey: {name: engines}, exchangeKey: {name: engines}}"},
	}
)

const (
	oidc = "config: {oidc: {issuer: 'https://login.microsoftonline.com/tenant/v2.0', audience: 'api://messagehub', tenants: [tenant]}, actors: [{client: one, actor: '5790001330552', groups: [timeseries]}]}\n"
	hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
)

// A combination has one option of each dimension.
type combination struct {
	name   string
	values map[string]any
}

// combine returns every combination of one option of each dimension, on top of
// a base.
func combine(t testing.TB, base string, dimensions ...dimension) (all []combination) {
	t.Helper()
	chosen := make([]int, len(dimensions))
	for {
		names, texts := make([]string, len(dimensions)), []string{base}
		for i, d := range dimensions {
			names[i] = d[chosen[i]].name
			texts = append(texts, splitValues(d[chosen[i]].values)...)
		}
		all = append(all, combination{strings.Join(names, " "), merge(t, texts...)})
		i := len(dimensions) - 1
		for ; i >= 0; i-- {
			if chosen[i]++; chosen[i] < len(dimensions[i]) {
				break
			}
			chosen[i] = 0
		}
		if i < 0 {
			return all
		}
	}
}

// splitValues splits values into parts so that no part has a key twice, which
// YAML does not allow in one document.
func splitValues(values string) (parts []string) {
	for line := range strings.Lines(values) {
		if n := len(parts); n > 0 && !strings.HasPrefix(line, "config:") {
			parts[n-1] += line
			continue
		}
		parts = append(parts, line)
	}
	return parts
}

// combinations returns every combination of options that do not contradict each other.
func combinations(t testing.TB) (all []combination) {
	t.Helper()
	const onAzure = "config: {cosmos: {endpoint: 'https://account.documents.azure.com:443/'}, blob: {endpoint: 'https://account.blob.core.windows.net/'}}\n"
	for _, c := range combine(t, onAzure, scaled, identified, access, monitored, policed, served, decorated, spread) {
		hasConnection := strings.Contains(c.name, "keys")
		if hasConnection && strings.Contains(c.name, "keda") { // refused: see TestRender_RefusesContradictions
			continue
		}
		if !hasConnection {
			c.values = mergeMaps(t, c.values, "config: {servicebus: {namespace: market.servicebus.windows.net}}")
		}
		c.name = "azure " + c.name
		all = append(all, c)
	}
	for _, c := range combine(t, "mode: embedded\n", stored, opened, access, monitored, policed, served, decorated) {
		if strings.Contains(c.name, " open") && !strings.Contains(c.name, "-tls") { // refused, too
			continue
		}
		c.name = "embedded " + c.name
		all = append(all, c)
	}
	return all
}

func mergeMaps(t testing.TB, values map[string]any, text string) map[string]any {
	t.Helper()
	return merge(t, print(values), text)
}

func TestCombine_ReturnsTheProduct(t *testing.T) {
	names := make(map[string]bool)
	for _, c := range combine(t, "", dimension{{"a", "p: 1"}, {"b", "p: 2"}}, dimension{{"c", "q: 1"}, {"d", "q: 2"}, {"e", ""}}) {
		names[c.name+fmt.Sprint(c.values)] = true
	}
	if len(names) != 6 || !names["b dmap[p:2 q:2]"] {
		t.Fatal(names)
	}
}
