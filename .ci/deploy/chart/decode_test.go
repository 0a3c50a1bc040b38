package chart

import (
	"errors"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// objects are the objects of one rendered chart, by their types.
type objects struct {
	all []meta.Object

	deployments  []*apps.Deployment
	statefulSets []*apps.StatefulSet
	pods         []*core.Pod
	services     []*core.Service
	accounts     []*core.ServiceAccount
	configMaps   []*core.ConfigMap
	budgets      []*policy.PodDisruptionBudget
	policies     []*networking.NetworkPolicy
	ingresses    []*networking.Ingress
	autoscalers  []*autoscaling.HorizontalPodAutoscaler

	scaledObjects   []*scaledObject
	authentications []*triggerAuthentication
	monitors        []*monitor
	rules           []*prometheusRule
}

// The fields of objects of KEDA (keda.sh/v1alpha1) and of the Prometheus operator
// (monitoring.coreos.com/v1) that the chart may set.
type (
	scaledObject struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            struct {
			ScaleTargetRef struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				Name       string `json:"name"`
			} `json:"scaleTargetRef"`
			PollingInterval int32 `json:"pollingInterval"`
			CooldownPeriod  int32 `json:"cooldownPeriod"`
			MinReplicaCount int32 `json:"minReplicaCount"`
			MaxReplicaCount int32 `json:"maxReplicaCount"`
			Triggers        []struct {
				Type     string            `json:"type"`
				Name     string            `json:"name"`
				Metadata map[string]string `json:"metadata"`

				AuthenticationRef struct {
					Name string `json:"name"`
				} `json:"authenticationRef"`
			} `json:"triggers"`
		} `json:"spec"`
	}
	triggerAuthentication struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            struct {
			PodIdentity struct {
				Provider   string `json:"provider"`
				IdentityID string `json:"identityId"`
			} `json:"podIdentity"`
		} `json:"spec"`
	}
	monitor struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            struct {
			JobLabel          string             `json:"jobLabel"`
			Selector          meta.LabelSelector `json:"selector"`
			NamespaceSelector struct {
				MatchNames []string `json:"matchNames"`
			} `json:"namespaceSelector"`
			Endpoints           []scrape `json:"endpoints"`           // set only in a ServiceMonitor
			PodMetricsEndpoints []scrape `json:"podMetricsEndpoints"` // set only in a PodMonitor
		} `json:"spec"`
	}
	scrape struct {
		Port     string `json:"port"`
		Path     string `json:"path"`
		Interval string `json:"interval"`
		Scheme   string `json:"scheme"`
		Relabel  []struct {
			SourceLabels []string `json:"sourceLabels"`
			TargetLabel  string   `json:"targetLabel"`
		} `json:"relabelings"`
		TLSConfig *struct {
			CA struct {
				Secret core.SecretKeySelector `json:"secret"`
			} `json:"ca"`
			ServerName         string `json:"serverName"`
			InsecureSkipVerify bool   `json:"insecureSkipVerify"`
		} `json:"tlsConfig"`
		Authorization *struct {
			Type        string                 `json:"type"`
			Credentials core.SecretKeySelector `json:"credentials"`
		} `json:"authorization"`
	}
	prometheusRule struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            ruleFile `json:"spec"`
	}
	ruleFile struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Record      string            `json:"record"`
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
)

// strict refuses unknown fields and repeated fields.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// decode returns the object of a YAML document. It fails if a field is unknown.
func decode(text string) (any, error) {
	var kind meta.TypeMeta
	if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
		return nil, err
	}
	var own any
	switch kind.APIVersion + " " + kind.Kind {
	case "keda.sh/v1alpha1 ScaledObject":
		own = &scaledObject{}
	case "keda.sh/v1alpha1 TriggerAuthentication":
		own = &triggerAuthentication{}
	case "monitoring.coreos.com/v1 ServiceMonitor", "monitoring.coreos.com/v1 PodMonitor":
		own = &monitor{}
	case "monitoring.coreos.com/v1 PrometheusRule":
		own = &prometheusRule{}
	default:
		object, _, err := strict.Decode([]byte(text), nil, nil)
		return object, err
	}
	plain, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	faults, err := json.UnmarshalStrict(plain, own) // unlike other decoders, it is case-sensitive
	return own, errors.Join(append(faults, err)...)
}

// decodeAll decodes the objects of a rendered chart, and fails the test if one
// has an unknown field or a type that the chart does not use.
func decodeAll(t testing.TB, documents []Document) (o objects) {
	t.Helper()
	for _, d := range documents {
		object, err := decode(d.Text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", d.Template, err, d.Text)
		}
		switch x := object.(type) {
		case *apps.Deployment:
			o.deployments = append(o.deployments, x)
		case *apps.StatefulSet:
			o.statefulSets = append(o.statefulSets, x)
		case *core.Pod:
			o.pods = append(o.pods, x)
		case *core.Service:
			o.services = append(o.services, x)
		case *core.ServiceAccount:
			o.accounts = append(o.accounts, x)
		case *core.ConfigMap:
			o.configMaps = append(o.configMaps, x)
		case *policy.PodDisruptionBudget:
			o.budgets = append(o.budgets, x)
		case *networking.NetworkPolicy:
			o.policies = append(o.policies, x)
		case *networking.Ingress:
			o.ingresses = append(o.ingresses, x)
		case *autoscaling.HorizontalPodAutoscaler:
			o.autoscalers = append(o.autoscalers, x)
		case *scaledObject:
			o.scaledObjects = append(o.scaledObjects, x)
		case *triggerAuthentication:
			o.authentications = append(o.authentications, x)
		case *monitor:
			o.monitors = append(o.monitors, x)
		case *prometheusRule:
			o.rules = append(o.rules, x)
		default: // an object such as a Secret: the chart refers to Secrets, but creates none
			t.Fatalf("%s: the chart must not make a %T", d.Template, x)
		}
		o.all = append(o.all, object.(meta.Object))
	}
	return o
}

func TestDecode_RefusesMisspeltFields(t *testing.T) {
	documents, _, err := render(t, merge(t, azure, `
autoscaling: {type: keda}
monitoring: {serviceMonitor: {enabled: true}, rules: {enabled: true}, authorization: {name: metrics}}
networkPolicy: {operators: [{podSelector: {}}]}
ingress: {enabled: true, hosts: [{host: hub.example.org}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	misspelt := map[string]string{ // replaces the first occurrence in a document
		"runAsNonRoot:": "runAsNonroot:", "terminationGracePeriodSeconds:": "terminationGraceSeconds:",
		"targetPort:": "targetport:", "maxUnavailable: 1": "maxUnavailible: 1", "podSelector:": "podselector:",
		"pathType:": "pathtype:", "automountServiceAccountToken:": "automountToken:",
		"cooldownPeriod:": "coolDownPeriod:", "podIdentity:": "identity:", "jobLabel:": "joblabel:", "expr:": "expression:",
	}
	found := make(map[string]bool)
	for _, d := range documents {
		for right, wrong := range misspelt {
			if !strings.Contains(d.Text, right) {
				continue
			}
			found[right] = true
			if _, err := decode(strings.Replace(d.Text, right, wrong, 1)); err == nil {
				t.Errorf("%s: %s in place of %s is not found", d.Template, wrong, right)
			}
		}
		if _, err := decode(d.Text); err != nil {
			t.Errorf("%s: %v", d.Template, err)
		}
	}
	for right := range misspelt {
		if !found[right] {
			t.Errorf("no document has %s", right)
		}
	}
}
