package azuretemplate

import (
	"slices"
	"strconv"

	"github.com/messagehub/messagehub/cmd/node/config"
)

// Values of the template parameter platform.
const (
	containerApps = "containerapps"
	kubernetes    = "aks"
	elsewhere     = "none"
)

// newMain returns the template of a whole deployment: the accounts, the
// identities, and the resources of the chosen platform.
func newMain(cfg *config.Config) *template {
	t := &template{about: "MessageHub on Azure: the resources in resources.bicep, and the hub on Container Apps, or its identities on AKS."}
	platform := t.addParam(param{
		name: "platform", kind: "string", description: "Where the hub runs; none: its machines are described elsewhere", value: elsewhere,
		allowed: array{containerApps, kubernetes, elsewhere},
	})
	made := &module{symbol: "resources", file: "resources.bicep", template: newResources(cfg).template}
	app := &module{symbol: "containerApp", file: "container-app.bicep", template: newContainerApp(), condition: equals(platform, containerApps)}
	aks := &module{symbol: "aks", file: "aks.bicep", template: newAKS(), condition: equals(platform, kubernetes)}
	for _, m := range []*module{made, app, aks} {
		for _, p := range m.template.params {
			m.arguments = append(m.arguments, member{p.name, t.moduleArgument(p, m, made)})
		}
		t.modules = append(t.modules, m)
	}
	for _, o := range made.template.outputs {
		t.outputs = append(t.outputs, output{o.name, o.kind, moduleOutput{made, o.name}})
	}
	return t
}

// moduleArgument returns the argument for parameter p of module m: an output of
// the module made, or else a parameter of t, which it adds if necessary. A
// parameter that only one platform needs is optional in t.
func (t *template) moduleArgument(p *param, m, made *module) expr {
	if m != made && slices.ContainsFunc(made.template.outputs, func(o output) bool { return o.name == p.name }) {
		if p.name == "settings" {
			more := t.addParam(param{name: "extraSettings", kind: "array", description: "Further settings of the hub, as {name, value}, such as MESSAGEHUB_LIMITS_TRUSTED_PROXIES", value: array{}})
			return concat(moduleOutput{made, p.name}, more)
		}
		return moduleOutput{made, p.name}
	}
	if m != made && p.name == "name" {
		return paramRef("prefix")
	}
	if slices.ContainsFunc(t.params, func(x *param) bool { return x.name == p.name }) {
		return paramRef(p.name)
	}
	added := *p
	if added.value == nil {
		added.value = ""
		added.description += ". Required for " + map[string]string{"containerApp": "Container Apps", "aks": "AKS"}[m.symbol]
	}
	return t.addParam(added)
}

// listenAddress returns the address on which a node in a container listens.
func listenAddress(port int) string { return "0.0.0.0:" + strconv.Itoa(port) }

// A singleMember is an object with one member: its name is an expression, its
// value an empty object.
type singleMember struct{ name expr }

func (k singleMember) armText() string {
	return "createObject(" + k.name.armText() + ", createObject())"
}

func (k singleMember) bicepText(indent string) string {
	return "{\n" + indent + "  '${" + k.name.bicepText("") + "}': {}\n" + indent + "}"
}

// Files returns the files of deploy/azure, by name, for hubs with the default settings.
func Files() map[string][]byte {
	cfg := config.Default()
	all := newMain(&cfg)
	files := map[string][]byte{"main.json": writeARM(all), "main.bicep": writeBicep(all)}
	for _, m := range all.modules {
		files[m.file] = writeBicep(m.template)
	}
	for name, p := range map[string]orderedObject{
		"container-apps.parameters.json": {
			{"platform", containerApps},
			{"image", "example.azurecr.io/messagehub:1.0.0"},
			{"registryServer", "example.azurecr.io"},
			{"oidcIssuer", "https://login.microsoftonline.com/TENANT/v2.0"},
			{"oidcAudience", "api://messagehub"},
		},
		"aks.parameters.json": {
			{"platform", kubernetes},
			{"aksOidcIssuer", "https://REGION.oic.prod-aks.azure.com/TENANT/CLUSTER/"},
		},
	} {
		files[name] = writeParameters(p)
	}
	return files
}
