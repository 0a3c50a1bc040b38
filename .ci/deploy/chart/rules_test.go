package chart

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestRender_KeepsTheRulesInEveryCombination(t *testing.T) {
	all := combinations(t)
	t.Logf("%d combinations", len(all))
	known, err := readSettings()
	if err != nil {
		t.Fatal(err)
	}
	const parts = 8
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for i := part; i < len(all); i += parts {
				documents, _, err := render(t, all[i].values)
				if err != nil {
					t.Fatalf("%s: %v\n%s", all[i].name, err, print(all[i].values))
				}
				rendered := decodeAll(t, documents)
				for _, fault := range faultsOf(t, rendered) {
					t.Errorf("%s: %s", all[i].name, fault)
				}
				if !slices.Contains(known, settingsOf(t, &rendered)) {
					t.Errorf("%s: the settings are not in %s; see settings_test.go", all[i].name, settingsFile)
				}
				if t.Failed() {
					t.Fatal(print(all[i].values))
				}
			}
		})
	}
}

// A podTemplate is the template from which a workload creates pods.
type podTemplate struct {
	name   string
	labels map[string]string
	spec   *core.PodSpec
}

// workloads returns the templates of the pods that run the hub.
func (o *objects) workloads() (all []podTemplate) {
	for _, d := range o.deployments {
		all = append(all, podTemplate{d.Name, d.Spec.Template.Labels, &d.Spec.Template.Spec})
	}
	for _, s := range o.statefulSets {
		all = append(all, podTemplate{s.Name, s.Spec.Template.Labels, &s.Spec.Template.Spec})
	}
	return all
}

// faultsOf returns the violated rules of a rendered chart.
func faultsOf(t testing.TB, o objects) []string {
	c := &checker{objects: o}
	workloads := o.workloads()
	if len(workloads) != 1 {
		return []string{fmt.Sprintf("%d workloads", len(workloads))}
	}
	c.pod = workloads[0]
	c.checkNames()
	c.checkPod(c.pod)
	for _, p := range o.pods {
		c.checkPod(podTemplate{p.Name, p.Labels, &p.Spec})
		if args := p.Spec.Containers[0].Args; len(args) < 4 || !slices.Equal(args[:3], []string{"health", "--ready", "--url"}) { // a test of cmd/messagehub runs this command
			c.fault("the pod of the test runs %q", args)
		}
		if labels.SelectorFromSet(c.selector()).Matches(labels.Set(p.Labels)) {
			c.fault("the pod of the test gets requests")
		}
	}
	c.checkHub(t)
	c.checkSelectors()
	c.checkServices()
	c.checkMonitors()
	c.checkPolicies()
	c.checkScaling()
	return c.faults
}

type checker struct {
	objects

	pod    podTemplate
	faults []string
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

func (c *checker) selector() map[string]string {
	for _, d := range c.deployments {
		return d.Spec.Selector.MatchLabels
	}
	return c.statefulSets[0].Spec.Selector.MatchLabels
}

// checkNames checks the names in the metadata of objects by the rules of the server.
func (c *checker) checkNames() {
	seen := make(map[string]bool)
	for _, o := range c.all {
		key := fmt.Sprintf("%T %s", o, o.GetName())
		if seen[key] {
			c.fault("%s occurs twice", key)
		}
		seen[key] = true
		if o.GetNamespace() != namespace {
			c.fault("%s: namespace %q", key, o.GetNamespace())
		}
		for _, problem := range validation.IsDNS1123Label(o.GetName()) {
			c.fault("%s: %s", key, problem)
		}
		c.checkLabels(key, o.GetLabels())
		for name := range o.GetAnnotations() {
			for _, problem := range validation.IsQualifiedName(name) {
				c.fault("%s: annotation %s: %s", key, name, problem)
			}
		}
		for _, required := range []string{"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version", "helm.sh/chart"} {
			if o.GetLabels()[required] == "" {
				c.fault("%s has no label %s", key, required)
			}
		}
	}
}

func (c *checker) checkLabels(what string, all map[string]string) {
	for name, value := range all {
		for _, problem := range slices.Concat(validation.IsQualifiedName(name), validation.IsValidLabelValue(value)) {
			c.fault("%s: label %s=%s: %s", what, name, value, problem)
		}
	}
}

// checkPod checks that a pod meets the restricted level of the Pod Security
// Standards, that it has no token of the cluster, and that its volumes exist.
func (c *checker) checkPod(p podTemplate) {
	c.checkLabels(p.name, p.labels)
	s := p.spec
	switch context := s.SecurityContext; {
	case context == nil:
		c.fault("%s: no security context", p.name)
	case !isTrue(context.RunAsNonRoot), context.RunAsUser != nil && *context.RunAsUser == 0, context.RunAsGroup != nil && *context.RunAsGroup == 0, context.FSGroup != nil && *context.FSGroup == 0:
		c.fault("%s: may run as root", p.name)
	case context.SeccompProfile == nil || context.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault:
		c.fault("%s: seccomp", p.name)
	case context.FSGroup != nil && (context.FSGroupChangePolicy == nil || *context.FSGroupChangePolicy != core.FSGroupChangeOnRootMismatch):
		c.fault("%s: the group may read the files of the hub, which it refuses", p.name)
	}
	if s.HostNetwork || s.HostPID || s.HostIPC {
		c.fault("%s: namespaces of the machine", p.name)
	}
	if s.AutomountServiceAccountToken == nil || *s.AutomountServiceAccountToken {
		c.fault("%s: has a token of the cluster", p.name)
	}
	if s.EnableServiceLinks == nil || *s.EnableServiceLinks {
		c.fault("%s: variables of services, which the hub refuses as unknown settings", p.name)
	}
	volumes := make(map[string]bool)
	for _, v := range s.Volumes {
		if volumes[v.Name] {
			c.fault("%s: two volumes %s", p.name, v.Name)
		}
		if v.HostPath != nil {
			c.fault("%s: a path of the machine", p.name)
		}
		volumes[v.Name] = true
	}
	for _, set := range c.statefulSets {
		for _, claim := range set.Spec.VolumeClaimTemplates {
			if set.Name == p.name {
				volumes[claim.Name] = true
			}
		}
	}
	for _, container := range slices.Concat(s.InitContainers, s.Containers) {
		context := container.SecurityContext
		switch {
		case context == nil:
			c.fault("%s: no security context", container.Name)
		case context.AllowPrivilegeEscalation == nil || *context.AllowPrivilegeEscalation, isTrue(context.Privileged):
			c.fault("%s: may gain rights", container.Name)
		case !isTrue(context.ReadOnlyRootFilesystem), !isTrue(context.RunAsNonRoot):
			c.fault("%s: may write to its root, or be root", container.Name)
		case context.Capabilities == nil || !slices.Equal(context.Capabilities.Drop, []core.Capability{"ALL"}) || len(context.Capabilities.Add) > 0:
			c.fault("%s: capabilities", container.Name)
		}
		if container.Image == "" || strings.HasSuffix(container.Image, ":") {
			c.fault("%s: image %q", container.Name, container.Image)
		}
		paths := make(map[string]bool)
		for _, mount := range container.VolumeMounts {
			if !volumes[mount.Name] {
				c.fault("%s: mounts %s, which is no volume", container.Name, mount.Name)
			}
			if paths[mount.MountPath] {
				c.fault("%s: two volumes at %s", container.Name, mount.MountPath)
			}
			paths[mount.MountPath] = true
			if isWritable := mount.MountPath == "/data" || mount.MountPath == "/tmp"; mount.ReadOnly == isWritable {
				c.fault("%s: %s: read-only is %t", container.Name, mount.MountPath, mount.ReadOnly)
			}
		}
		names := make(map[string]bool)
		for _, v := range container.Env {
			if names[v.Name] {
				c.fault("%s: two variables %s", container.Name, v.Name)
			}
			names[v.Name] = true
		}
	}
	isFound := s.ServiceAccountName == "" || s.ServiceAccountName == "hub-on-azure"
	for _, account := range c.accounts {
		isFound = isFound || account.Name == s.ServiceAccountName
		if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
			c.fault("%s: pods have a token of the cluster", account.Name)
		}
	}
	if !isFound {
		c.fault("%s: no service account %s", p.name, s.ServiceAccountName)
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

// hubGrace is the time in seconds that a hub has for requests under way after
// SIGTERM. TestGrace_MatchesTheHub compares it with the hub.
const hubGrace = 25

// checkHub checks the container of the hub: its command, its settings, its
// probes and its termination.
func (c *checker) checkHub(t testing.TB) {
	hub := c.pod.spec.Containers[0]
	config := c.configMaps[slices.IndexFunc(c.configMaps, func(m *core.ConfigMap) bool { return m.Name == c.pod.name })]
	// kubectl exec starts other commands in the pod, with the variables of the container and without its arguments.
	isConfigured := hasVariable(c.pod, "MESSAGEHUB_CONFIG", "/etc/messagehub/config/messagehub.yaml")
	if !slices.Equal(hub.Args, []string{"serve"}) || len(hub.Command) > 0 || !isConfigured {
		c.fault("args %q, and the variables are %v", hub.Args, hub.Env)
	}
	if _, ok := config.Data["messagehub.yaml"]; !ok {
		c.fault("no settings in %s", config.Name)
	}
	settings := parse(t, config.Data["messagehub.yaml"])
	ports := map[string]string{"listen": "http", "admin-listen": "admin", "bus-listen": "bus", "blob-listen": "exchange"}
	for setting, name := range ports {
		address, _ := settings[setting].(string)
		at := slices.IndexFunc(hub.Ports, func(p core.ContainerPort) bool { return p.Name == name })
		if (at >= 0) != (address != "") || at >= 0 && fmt.Sprintf(":%d", hub.Ports[at].ContainerPort) != address {
			c.fault("%s is %q, and the ports are %v", setting, address, hub.Ports)
		}
	}
	for _, p := range hub.Ports {
		for _, problem := range validation.IsValidPortName(p.Name) {
			c.fault("port %s: %s", p.Name, problem)
		}
	}
	data, _ := settings["data"].(string)
	if path.Dir(data) != "/data" || !hasVariable(c.pod, "MESSAGEHUB_DATA", data) {
		c.fault("data is %q, and the variables are %v", data, hub.Env)
	}
	tls, _ := settings["tls"].(map[string]any)
	scheme := core.URISchemeHTTP
	if tls["cert"] != nil {
		scheme = core.URISchemeHTTPS
	}
	probes := map[string]*core.Probe{"/healthz startup": hub.StartupProbe, "/healthz live": hub.LivenessProbe, "/readyz ready": hub.ReadinessProbe}
	for name, probe := range probes {
		want, _, _ := strings.Cut(name, " ")
		switch {
		case probe == nil || probe.HTTPGet == nil:
			c.fault("%s: no probe", name)
		case probe.HTTPGet.Path != want, probe.HTTPGet.Port.StrVal != "admin", probe.HTTPGet.Scheme != scheme:
			c.fault("%s: %+v", name, probe.HTTPGet)
		case probe.TimeoutSeconds >= probe.PeriodSeconds && probe != hub.StartupProbe:
			c.fault("%s: takes longer than its period", name)
		}
	}
	for setting, file := range c.mountedFiles() {
		if !c.isMounted(file) {
			c.fault("%s: %s is not in a volume", setting, file)
		}
	}
	c.checkEnd(hub)
	c.checkMemory(hub)
}

// checkEnd checks that the hub has enough time to stop.
func (c *checker) checkEnd(hub core.Container) {
	if hub.Lifecycle == nil || hub.Lifecycle.PreStop == nil || hub.Lifecycle.PreStop.Sleep == nil {
		c.fault("no pause before SIGTERM")
		return
	}
	pause, grace := hub.Lifecycle.PreStop.Sleep.Seconds, c.pod.spec.TerminationGracePeriodSeconds
	if pause < 1 || grace == nil || *grace < pause+hubGrace+10 {
		c.fault("the pause is %d s, and the grace %v", pause, grace)
	}
}

// checkMemory checks that the Go runtime knows the memory limit of the
// container.
func (c *checker) checkMemory(hub core.Container) {
	at := slices.IndexFunc(hub.Env, func(v core.EnvVar) bool { return v.Name == "GOMEMLIMIT" })
	limit, ok := hub.Resources.Limits[core.ResourceMemory]
	switch {
	case (at >= 0) != ok:
		c.fault("GOMEMLIMIT without a limit, or the other way round")
	case ok && hub.Env[at].Value != fmt.Sprint(limit.Value()*9/10):
		c.fault("GOMEMLIMIT is %s, and the limit %s", hub.Env[at].Value, limit.String())
	}
	for name, request := range hub.Resources.Requests {
		if limit, ok := hub.Resources.Limits[name]; ok && request.Cmp(limit) > 0 {
			c.fault("requests more %s than its limit", name)
		}
	}
}

// mountedFiles returns the files of the chart that are named in the settings.
func (c *checker) mountedFiles() map[string]string {
	files := make(map[string]string)
	config := c.configMaps[slices.IndexFunc(c.configMaps, func(m *core.ConfigMap) bool { return m.Name == c.pod.name })]
	for line := range strings.Lines(config.Data["messagehub.yaml"]) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if strings.HasPrefix(value, "/etc/messagehub/") {
			files[name] = value
		}
	}
	return files
}

// isMounted reports whether a file is in a volume of the hub.
func (c *checker) isMounted(file string) bool {
	for _, mount := range c.pod.spec.Containers[0].VolumeMounts {
		if mount.MountPath != path.Dir(file) {
			continue
		}
		for _, v := range c.pod.spec.Volumes {
			switch {
			case v.Name != mount.Name:
			case v.Secret != nil:
				return *v.Secret.DefaultMode == 0o440 // the whole Secret is mounted, so the volume has all of its keys
			case v.Projected != nil:
				return *v.Projected.DefaultMode == 0o440 && slices.ContainsFunc(v.Projected.Sources, func(s core.VolumeProjection) bool {
					return s.Secret != nil && len(s.Secret.Items) == 1 && s.Secret.Items[0].Path == path.Base(file)
				})
			}
		}
	}
	return false
}

// checkSelectors checks that selectors match the pod of the hub, and no other.
func (c *checker) checkSelectors() {
	check := func(what string, selector *meta.LabelSelector) {
		s, err := meta.LabelSelectorAsSelector(selector)
		if err != nil || s.Empty() || !s.Matches(labels.Set(c.pod.labels)) {
			c.fault("%s does not select the hub: %v", what, err)
		}
	}
	for _, d := range c.deployments {
		check("the Deployment", d.Spec.Selector)
	}
	for _, s := range c.statefulSets {
		check("the StatefulSet", s.Spec.Selector)
	}
	for _, b := range c.budgets {
		check("the PodDisruptionBudget", b.Spec.Selector)
	}
	for _, p := range c.policies {
		check("the NetworkPolicy", &p.Spec.PodSelector)
	}
	for _, spread := range c.pod.spec.TopologySpreadConstraints {
		check("topology spread", spread.LabelSelector)
	}
	for _, s := range c.services {
		check("the Service "+s.Name, &meta.LabelSelector{MatchLabels: s.Spec.Selector})
	}
}

// hasPort reports whether the hub has a port with the name.
func (c *checker) hasPort(name string) bool {
	return slices.ContainsFunc(c.pod.spec.Containers[0].Ports, func(p core.ContainerPort) bool { return p.Name == name })
}

// checkServices checks that services and ingresses lead to ports of the hub,
// and that the routes of operators stay in the cluster.
func (c *checker) checkServices() {
	admin := 0
	for _, s := range c.services {
		numbers := make(map[int32]bool)
		for _, p := range s.Spec.Ports {
			if !c.hasPort(p.TargetPort.StrVal) || p.Name != p.TargetPort.StrVal {
				c.fault("%s: port %s leads to %s", s.Name, p.Name, p.TargetPort.String())
			}
			if numbers[p.Port] {
				c.fault("%s: two ports %d", s.Name, p.Port)
			}
			numbers[p.Port] = true
			if p.Name == "admin" {
				admin++
				if s.Spec.Type != core.ServiceTypeClusterIP {
					c.fault("%s: the port of operators is reachable from outside", s.Name)
				}
			}
		}
	}
	if admin != 1 {
		c.fault("%d services have the port of operators", admin)
	}
	for _, i := range c.ingresses {
		for _, rule := range i.Spec.Rules {
			for _, p := range rule.HTTP.Paths {
				backend := p.Backend.Service
				if backend.Port.Name != "http" || !slices.ContainsFunc(c.services, func(s *core.Service) bool { return s.Name == backend.Name && hasServicePort(s, "http") }) {
					c.fault("ingress leads to %+v", backend)
				}
			}
		}
		if len(i.Spec.Rules) == 0 {
			c.fault("ingress without rules")
		}
	}
	for _, s := range c.statefulSets {
		if !slices.ContainsFunc(c.services, func(x *core.Service) bool {
			return x.Name == s.Spec.ServiceName && x.Spec.ClusterIP == core.ClusterIPNone
		}) {
			c.fault("no headless service %s", s.Spec.ServiceName)
		}
	}
}

func hasServicePort(s *core.Service, name string) bool {
	return slices.ContainsFunc(s.Spec.Ports, func(p core.ServicePort) bool { return p.Name == name })
}

// checkMonitors checks that Prometheus reads the metrics of each pod once.
func (c *checker) checkMonitors() {
	for _, m := range c.monitors {
		selector := labels.SelectorFromSet(m.Spec.Selector.MatchLabels)
		scrapes, n := m.Spec.PodMetricsEndpoints, 0
		if m.Kind == "ServiceMonitor" {
			scrapes = m.Spec.Endpoints
			for _, s := range c.services {
				if selector.Matches(labels.Set(s.Labels)) && hasServicePort(s, "admin") {
					n++
				}
			}
		} else if selector.Matches(labels.Set(c.pod.labels)) && c.hasPort("admin") {
			n++
		}
		if n != 1 || len(scrapes) != 1 || scrapes[0].Port != "admin" || scrapes[0].Path != "/metrics" {
			c.fault("%s: %d targets, %+v", m.Kind, n, scrapes)
			continue
		}
		isHTTPS := c.pod.spec.Containers[0].LivenessProbe.HTTPGet.Scheme == core.URISchemeHTTPS
		if want := map[bool]string{true: "https", false: "http"}[isHTTPS]; scrapes[0].Scheme != want || isHTTPS != (scrapes[0].TLSConfig != nil) {
			c.fault("%s: scheme %s, want %s", m.Kind, scrapes[0].Scheme, want)
		}
		if r := scrapes[0].Relabel; len(r) != 1 || !slices.Equal(r[0].SourceLabels, []string{"__meta_kubernetes_pod_name"}) || r[0].TargetLabel != "instance" {
			c.fault("%s: the label instance is not the name of the pod: %+v", m.Kind, r)
		}
		for _, p := range c.policies {
			if len(p.Spec.Ingress) < 2 {
				c.fault("the NetworkPolicy keeps Prometheus out")
			}
		}
		if m.Spec.JobLabel != "app.kubernetes.io/instance" || c.pod.labels[m.Spec.JobLabel] != release {
			c.fault("the job of %s is not the release", m.Kind)
		}
	}
	for _, r := range c.rules {
		for _, g := range r.Spec.Groups {
			for _, rule := range g.Rules {
				if !strings.Contains(rule.Expr, `{job="hub", namespace="market"`) || strings.Contains(rule.Expr, `job="messagehub"`) {
					c.fault("%s is not about this release: %s", rule.Alert, rule.Expr)
				}
			}
		}
	}
}

// checkPolicies checks that a NetworkPolicy has the ports of the hub, and that
// the routes of operators are closed unless a peer is named.
func (c *checker) checkPolicies() {
	for _, p := range c.policies {
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				if !c.hasPort(port.Port.StrVal) {
					c.fault("NetworkPolicy: port %s", port.Port.String())
				}
				if port.Port.StrVal == "http" && len(rule.From) > 0 && !c.allowsTest(rule.From) {
					c.fault("NetworkPolicy: the pod of the test does not reach the hub")
				}
				if port.Port.StrVal == "admin" && len(rule.From) == 0 {
					c.fault("NetworkPolicy: every client reaches the port of operators")
				}
			}
		}
		if len(p.Spec.PolicyTypes) != 2 || len(p.Spec.Egress) < 2 {
			c.fault("NetworkPolicy: %v", p.Spec.PolicyTypes)
		}
	}
}

// allowsTest reports whether peers include the pods of the helm test, if the chart has that test.
func (c *checker) allowsTest(peers []networking.NetworkPolicyPeer) bool {
	for _, p := range c.pods {
		if !slices.ContainsFunc(peers, func(peer networking.NetworkPolicyPeer) bool {
			return peer.PodSelector != nil && len(peer.PodSelector.MatchLabels) > 0 && labels.SelectorFromSet(peer.PodSelector.MatchLabels).Matches(labels.Set(p.Labels))
		}) {
			return false
		}
	}
	return true
}

// checkScaling checks that only one setting determines the number of pods.
func (c *checker) checkScaling() {
	scalers := len(c.autoscalers) + len(c.scaledObjects)
	for _, s := range c.statefulSets {
		if s.Spec.Replicas == nil || *s.Spec.Replicas != 1 || scalers > 0 || len(c.budgets) > 0 {
			c.fault("an embedded hub has one pod, and %d scalers", scalers)
		}
		for _, claim := range s.Spec.VolumeClaimTemplates {
			if _, err := resource.ParseQuantity(claim.Spec.Resources.Requests.Storage().String()); err != nil || len(claim.Spec.AccessModes) != 1 {
				c.fault("claim %+v", claim.Spec)
			}
		}
		if s.Spec.PodManagementPolicy == apps.ParallelPodManagement {
			c.fault("two pods at the same time")
		}
	}
	for _, d := range c.deployments {
		if (d.Spec.Replicas == nil) != (scalers == 1) || scalers > 1 {
			c.fault("replicas are %v, and %d scalers decide, too", d.Spec.Replicas, scalers)
		}
	}
	for _, a := range c.autoscalers {
		if ref := a.Spec.ScaleTargetRef; ref.Kind != "Deployment" || ref.APIVersion != "apps/v1" || ref.Name != c.pod.name {
			c.fault("HorizontalPodAutoscaler of %+v", ref)
		}
	}
	for _, s := range c.scaledObjects {
		if ref := s.Spec.ScaleTargetRef; ref.Kind != "Deployment" || ref.APIVersion != "apps/v1" || ref.Name != c.pod.name {
			c.fault("ScaledObject of %+v", ref)
		}
		for _, trigger := range s.Spec.Triggers {
			if trigger.Type != "azure-servicebus" || len(c.authentications) != 1 || trigger.AuthenticationRef.Name != c.authentications[0].Name {
				c.fault("trigger %+v", trigger)
			}
		}
		if len(s.Spec.Triggers) != 2 || s.Spec.Triggers[0].Metadata["queueName"] == s.Spec.Triggers[1].Metadata["queueName"] {
			c.fault("triggers %+v", s.Spec.Triggers)
		}
	}
}

func TestGrace_MatchesTheHub(t *testing.T) {
	source, err := os.ReadFile("../../../cmd/node/node.go")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("opts.Grace = cmp.Or(opts.Grace, %d*time.Second)", hubGrace); !strings.Contains(string(source), want) {
		t.Fatalf("cmd/node/node.go does not have %q; change hubGrace here, and 25 in the chart", want)
	}
}
