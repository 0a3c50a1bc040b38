package azuretemplate_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/azuretemplate"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/azuretemplate/armtest"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
)

var folder = filepath.Join("..", "..", "..", "..", "deploy", "azure")

func TestFiles_EqualTheFilesInDeployAzure(t *testing.T) {
	files := azuretemplate.Files()
	require.Equal(t, files, azuretemplate.Files(), "the same settings give the same bytes")
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), "%s is not what the table says; run make deploy-files", name)
	}
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range entries {
		require.True(t, files[e.Name()] != nil || e.Name() == "README.md", "%s is not generated", e.Name())
	}
}

// The first line of each template must say that the template was not tried on
// Azure, and must name the command that checks it.
func TestFiles_BeginWithTheNoticeAboutMissingChecks(t *testing.T) {
	for name, text := range azuretemplate.Files() {
		first, _, _ := strings.Cut(string(text), "\n")
		switch {
		case strings.HasSuffix(name, ".bicep"):
			require.Contains(t, first, "az bicep build", name)
		case name == "main.json":
			require.Contains(t, first, "az deployment group validate", name)
		}
	}
}

// options provides the properties that Azure sets only when it creates a
// resource.
var options = armtest.Options{
	Existing: []string{"Microsoft.ManagedIdentity/userAssignedIdentities"},
	Runtime: func(r *armtest.Resource, path string) string {
		switch path {
		case "documentEndpoint":
			return "https://" + r.Name + ".documents.azure.com:443/"
		case "primaryEndpoints.blob":
			return "https://" + r.Name + ".blob.core.windows.net/"
		case "defaultDomain":
			return "region.azurecontainerapps.io"
		}
		return r.Name + "." + path
	},
}

func evaluate(t *testing.T, text []byte, parameters map[string]any) *armtest.Deployment {
	t.Helper()
	d, err := armtest.Evaluate(text, parameters, options)
	require.NoError(t, err)
	return d
}

// everyParameter returns parameters with which a deployment creates all
// resources, including the optional ones.
func everyParameter(cfg *config.Config) map[string]any {
	all := map[string]any{
		"privateEndpointSubnetId": "/subnets/private", "cosmosDnsZoneId": "/zones/cosmos", "serviceBusDnsZoneId": "/zones/bus", "blobDnsZoneId": "/zones/blob",
	}
	for _, origin := range cfg.Groups().Origins() {
		all["domain"+origin.String()+"PrincipalId"] = "principal of " + origin.String()
	}
	return all
}

func load(t *testing.T, environ ...string) *config.Config {
	t.Helper()
	cfg, err := config.Load(config.Inputs{Environ: environ})
	require.NoError(t, err)
	return &cfg
}

// resourcesOfType returns the resources of one type in a deployment.
func resourcesOfType(d *armtest.Deployment, kind string) []armtest.Resource {
	var all []armtest.Resource
	for _, r := range d.Resources {
		if r.Type == kind {
			all = append(all, r)
		}
	}
	return all
}

// memberAt follows a path of keys and indexes below v, and returns nil if
// nothing is there.
func memberAt(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			v = v.([]any)[p]
		}
	}
	return v
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

func TestARM_CreatesTheResourcesOfTheTable(t *testing.T) {
	for _, cfg := range []*config.Config{
		load(t),
		load(t, "MESSAGEHUB_DOMAINS=[{name: Charges, ingest-queue: charges-events, content: inline}, {name: Billing, queue: in/voices}]", "MESSAGEHUB_OBJECTS_QUEUE=none"),
		load(t, "MESSAGEHUB_COSMOS_ENDPOINT=https://energy.documents.azure.com/", "MESSAGEHUB_COSMOS_DATABASE=energy",
			"MESSAGEHUB_BLOB_ENDPOINT=https://energy.blob.core.windows.net/", "MESSAGEHUB_BLOB_CONTAINER=energy", "MESSAGEHUB_SERVICEBUS_NAMESPACE=energy-bus.servicebus.windows.net"),
	} {
		d := evaluate(t, azuretemplate.ARM(cfg), everyParameter(cfg))
		table := deployment.NewTable(cfg)

		databases := resourcesOfType(d, "Microsoft.DocumentDB/databaseAccounts/sqlDatabases")
		require.Len(t, databases, 1)
		require.Equal(t, table.Database, memberAt(databases[0].Body, "properties", "resource", "id"))
		containers := resourcesOfType(d, "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers")
		require.Len(t, containers, len(table.Containers))
		for i, c := range table.Containers {
			got := containers[i].Body["properties"]
			require.Equal(t, c.Name, memberAt(got, "resource", "id"))
			require.Equal(t, c.Name, lastPart(containers[i].Name))
			require.Equal(t, map[string]any{"kind": "Hash", "version": 2.0, "paths": []any{c.PartitionKey}}, memberAt(got, "resource", "partitionKey"))
			var policy any
			require.NoError(t, json.Unmarshal([]byte(strings.Replace(c.IndexingPolicy(), "Consistent", "consistent", 1)), &policy))
			require.Equal(t, policy, memberAt(got, "resource", "indexingPolicy"))
			ttl := any(nil)
			if c.Expires {
				ttl = -1.0
			}
			require.Equal(t, ttl, memberAt(got, "resource", "defaultTtl"))
			require.EqualValues(t, c.Throughput, memberAt(got, "options", "autoscaleSettings", "maxThroughput"))
		}
		queues := resourcesOfType(d, "Microsoft.ServiceBus/namespaces/queues")
		require.Len(t, queues, len(table.Queues))
		for i, q := range table.Queues {
			life := q.TimeToLive
			if life == "" {
				life = deployment.Forever
			}
			require.Equal(t, q.Name, strings.ReplaceAll(lastPart(queues[i].Name), "~", "/"))
			require.Equal(t, map[string]any{
				"requiresSession": q.Sessions, "lockDuration": q.Lock, "maxDeliveryCount": float64(q.MaxDeliveries), "defaultMessageTimeToLive": life,
				"deadLetteringOnMessageExpiration": q.DeadLettersExpired, "maxSizeInMegabytes": float64(q.MaxMegabytes),
			}, queues[i].Body["properties"])
		}
		blobs := resourcesOfType(d, "Microsoft.Storage/storageAccounts/blobServices/containers")
		require.Len(t, blobs, len(table.Blobs))
		for i, b := range table.Blobs {
			require.Equal(t, b.Name, lastPart(blobs[i].Name))
			require.Equal(t, "None", memberAt(blobs[i].Body, "properties", "publicAccess"))
		}
	}
}

func TestARM_GrantsTheRolesOfTheTable(t *testing.T) {
	cfg := load(t, "MESSAGEHUB_DOMAINS=[{name: Charges, ingest-queue: charges-events}]")
	d := evaluate(t, azuretemplate.ARM(cfg), everyParameter(cfg))
	principal := func(identity string) string {
		if origin, isDomain := strings.CutPrefix(identity, "domain:"); isDomain {
			return "principal of " + origin
		}
		return "messagehub-" + identity + ".principalId"
	}
	var want, got []string
	for _, g := range deployment.NewTable(cfg).Grants {
		kind := map[deployment.ScopeKind]string{
			deployment.QueueScope: "/queues/", deployment.BlobContainerScope: "/containers/", deployment.StorageScope: "Microsoft.Storage/storageAccounts/", deployment.DatabaseScope: "/dbs/",
		}[g.Scope.Kind]
		want = append(want, principal(g.Identity)+" "+g.Role.ID+" "+kind+g.Scope.Name)
	}
	for _, r := range resourcesOfType(d, "Microsoft.Authorization/roleAssignments") {
		p := r.Body["properties"]
		require.Equal(t, "ServicePrincipal", memberAt(p, "principalType"))
		scope := r.Scope[strings.LastIndexByte(r.Scope, '/')+1:]
		for _, kind := range []string{"/queues/", "/containers/"} {
			if strings.Contains(r.Scope, kind) {
				scope = kind + scope
			}
		}
		if !strings.HasPrefix(scope, "/") {
			scope = "Microsoft.Storage/storageAccounts/"
		}
		got = append(got, memberAt(p, "principalId").(string)+" "+lastPart(memberAt(p, "roleDefinitionId").(string))+" "+scope)
	}
	definitions := resourcesOfType(d, "Microsoft.DocumentDB/databaseAccounts/sqlRoleDefinitions")
	require.Len(t, definitions, 1)
	var actions []string
	for _, a := range memberAt(definitions[0].Body, "properties", "permissions", 0, "dataActions").([]any) {
		actions = append(actions, a.(string))
	}
	require.Equal(t, deployment.NewTable(cfg).DataRole.Actions, actions)
	for _, r := range resourcesOfType(d, "Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments") {
		p := r.Body["properties"]
		require.Equal(t, definitions[0].ID, memberAt(p, "roleDefinitionId"))
		scope := memberAt(p, "scope").(string)
		require.Equal(t, []any{scope}, memberAt(definitions[0].Body, "properties", "assignableScopes"))
		got = append(got, memberAt(p, "principalId").(string)+"  /dbs/"+lastPart(scope))
	}
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)

	for _, r := range resourcesOfType(evaluate(t, azuretemplate.ARM(cfg), nil), "Microsoft.Authorization/roleAssignments") {
		require.NotContains(t, memberAt(r.Body, "properties", "principalId"), "principal of", "a domain without an identity gets no role")
	}
}

func TestARM_HasNoKeysAndNoPublicAccess(t *testing.T) {
	cfg := load(t)
	private, public := evaluate(t, azuretemplate.ARM(cfg), everyParameter(cfg)), evaluate(t, azuretemplate.ARM(cfg), nil)
	for kind, want := range map[string]map[string]any{
		"Microsoft.DocumentDB/databaseAccounts": {"disableLocalAuth": true, "minimalTlsVersion": "Tls12", "enableMultipleWriteLocations": false},
		"Microsoft.ServiceBus/namespaces":       {"disableLocalAuth": true, "minimumTlsVersion": "1.2"},
		"Microsoft.Storage/storageAccounts":     {"allowSharedKeyAccess": false, "allowBlobPublicAccess": false, "minimumTlsVersion": "TLS1_2", "supportsHttpsTrafficOnly": true},
	} {
		for _, d := range []*armtest.Deployment{private, public} {
			accounts := resourcesOfType(d, kind)
			require.Len(t, accounts, 1, kind)
			for name, value := range want {
				require.Equal(t, value, memberAt(accounts[0].Body, "properties", name), kind)
			}
		}
		require.Equal(t, "Disabled", memberAt(resourcesOfType(private, kind)[0].Body, "properties", "publicNetworkAccess"))
		require.Equal(t, "Enabled", memberAt(resourcesOfType(public, kind)[0].Body, "properties", "publicNetworkAccess"))
	}
	require.Len(t, resourcesOfType(private, "Microsoft.Network/privateEndpoints"), 3)
	require.Empty(t, resourcesOfType(public, "Microsoft.Network/privateEndpoints"))
	require.Equal(t, "Premium", memberAt(resourcesOfType(private, "Microsoft.ServiceBus/namespaces")[0].Body, "sku", "name"))
	require.Equal(t, "Standard", memberAt(resourcesOfType(public, "Microsoft.ServiceBus/namespaces")[0].Body, "sku", "name"))
}

func TestARM_TakesTheNamesOfAccountsFromTheSettings(t *testing.T) {
	cfg := load(t, "MESSAGEHUB_COSMOS_ENDPOINT=https://energy.documents.azure.com/", "MESSAGEHUB_BLOB_ENDPOINT=https://energyblobs.blob.core.windows.net/",
		"MESSAGEHUB_SERVICEBUS_NAMESPACE=energy-bus.servicebus.windows.net")
	d := evaluate(t, azuretemplate.ARM(cfg), nil)
	require.Equal(t, "energy", resourcesOfType(d, "Microsoft.DocumentDB/databaseAccounts")[0].Name)
	require.Equal(t, "energyblobs", resourcesOfType(d, "Microsoft.Storage/storageAccounts")[0].Name)
	require.Equal(t, "energy-bus", resourcesOfType(d, "Microsoft.ServiceBus/namespaces")[0].Name)

	d = evaluate(t, azuretemplate.ARM(load(t)), nil)
	name := resourcesOfType(d, "Microsoft.Storage/storageAccounts")[0].Name
	require.Regexp(t, `^[a-z0-9]{3,24}$`, name)
}

// appSettings returns the environment variables of the app's container,
// including secrets.
func appSettings(t *testing.T, d *armtest.Deployment) (environ []string) {
	apps := resourcesOfType(d, "Microsoft.App/containerApps")
	require.Len(t, apps, 1)
	secrets := make(map[any]any)
	for _, s := range memberAt(apps[0].Body, "properties", "configuration", "secrets").([]any) {
		secrets[memberAt(s, "name")] = memberAt(s, "value")
	}
	for _, v := range memberAt(apps[0].Body, "properties", "template", "containers", 0, "env").([]any) {
		value := memberAt(v, "value")
		if ref := memberAt(v, "secretRef"); ref != nil {
			require.Contains(t, secrets, ref)
			value = secrets[ref]
		}
		environ = append(environ, memberAt(v, "name").(string)+"="+value.(string))
	}
	return environ
}

func TestMain_RunsTheHubOnContainerApps(t *testing.T) {
	parameters := map[string]any{
		"platform": "containerapps", "image": "example.azurecr.io/messagehub:1", "registryServer": "example.azurecr.io", "infrastructureSubnetId": "/subnets/apps",
		"oidcIssuer": "https://login.microsoftonline.com/tenant/v2.0", "oidcAudience": "api://messagehub",
		"adminToken": strings.Repeat("t", 32), "pushSecretKey": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
		"extraSettings": []any{map[string]any{"name": "MESSAGEHUB_RETENTION", "value": "3d"}},
	}
	d := evaluate(t, azuretemplate.Files()["main.json"], parameters)
	cfg := load(t, appSettings(t, d)...)
	require.True(t, cfg.Production)
	require.False(t, cfg.UsesFolder(), "nothing is kept in the container")
	require.True(t, cfg.TLS.Terminated)
	require.Equal(t, "0.0.0.0:8080", cfg.Listen)
	require.Equal(t, "https://messagehub.region.azurecontainerapps.io", cfg.Watches.Base)
	table := deployment.NewTable(cfg)
	require.Equal(t, deployment.NewTable(load(t)).Queues, table.Queues, "the hub uses the queues that the template creates")

	page, err := os.ReadFile(filepath.Join(folder, "README.md"))
	require.NoError(t, err)
	for _, v := range appSettings(t, d) {
		if name, _, _ := strings.Cut(v, "="); name != "MESSAGEHUB_RETENTION" {
			require.Contains(t, string(page), "`"+name+"`", "the page lists the settings of the hub")
		}
	}

	app := resourcesOfType(d, "Microsoft.App/containerApps")[0].Body["properties"]
	require.Equal(t, 8080.0, memberAt(app, "configuration", "ingress", "targetPort"))
	rules := memberAt(app, "template", "scale", "rules").([]any)
	require.Len(t, rules, 2)
	require.Equal(t, cfg.ServiceBus.FIFO, memberAt(rules[0], "custom", "metadata", "queueName"))
	require.Equal(t, cfg.ServiceBus.Namespace, memberAt(rules[0], "custom", "metadata", "namespace").(string)+".servicebus.windows.net")
	for _, p := range memberAt(app, "template", "containers", 0, "probes").([]any) {
		require.Equal(t, 8081.0, memberAt(p, "httpGet", "port"))
	}
	for name, value := range d.Outputs {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		require.NotContains(t, string(text), strings.Repeat("t", 32), name)
	}
}

func TestMain_FederatesTheIdentitiesOnAKS(t *testing.T) {
	d := evaluate(t, azuretemplate.Files()["main.json"], map[string]any{"platform": "aks", "aksOidcIssuer": "https://issuer/"})
	require.Empty(t, resourcesOfType(d, "Microsoft.App/containerApps"))
	got := make(map[string]any)
	for _, c := range resourcesOfType(d, "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials") {
		got[c.Name] = memberAt(c.Body, "properties", "subject")
	}
	require.Equal(t, map[string]any{
		"messagehub-hub/aks": "system:serviceaccount:messagehub:messagehub", "messagehub-scaler/aks": "system:serviceaccount:kube-system:keda-operator",
	}, got)
	identities := resourcesOfType(d, "Microsoft.ManagedIdentity/userAssignedIdentities")
	require.Len(t, identities, 2)
}

func TestMain_AcceptsTheParameterFilesOfThePlatforms(t *testing.T) {
	for _, name := range []string{"container-apps.parameters.json", "aks.parameters.json"} {
		var file struct {
			Parameters map[string]struct{ Value any }
		}
		require.NoError(t, json.Unmarshal(azuretemplate.Files()[name], &file))
		given := make(map[string]any)
		for parameter, p := range file.Parameters {
			given[parameter] = p.Value
		}
		evaluate(t, azuretemplate.Files()["main.json"], given)
	}
	require.Len(t, evaluate(t, azuretemplate.Files()["main.json"], nil).Resources, len(evaluate(t, azuretemplate.ARM(load(t)), nil).Resources))
}

var declaration = regexp.MustCompile(`(?m)^(?:param|resource|module) (\w+)`)

// No Bicep compiler is available, so the test compares the declarations in the two
// formats.
func TestBicep_DeclaresTheResourcesOfARM(t *testing.T) {
	cfg := load(t)
	text := string(azuretemplate.Bicep(cfg))
	seen := make(map[string]bool)
	for _, m := range declaration.FindAllStringSubmatch(text, -1) {
		require.False(t, seen[strings.ToLower(m[1])], m[1])
		seen[strings.ToLower(m[1])] = true
	}
	var document struct {
		Parameters map[string]any
		Resources  []struct{ Type, APIVersion string }
	}
	require.NoError(t, json.Unmarshal(azuretemplate.ARM(cfg), &document))
	for _, r := range document.Resources {
		require.Contains(t, text, "'"+r.Type+"@"+r.APIVersion+"'")
	}
	require.Equal(t, len(document.Resources), strings.Count(text, "\nresource "))
	require.Equal(t, len(document.Parameters), strings.Count(text, "\nparam "))
}
