package azuretemplate_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/azuretemplate"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
)

// runScript runs a script with a fake Azure CLI, and returns the command lines
// that the script passed to the CLI.
func runScript(t *testing.T, text []byte, environ ...string) []string {
	t.Helper()
	folder := t.TempDir()
	calls := filepath.Join(folder, "calls")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "az"), []byte(`#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
*"--query principalId"*) echo "principal of $8" ;;
*"--query id"*) echo "/$1" ;;
esac
`), 0o700))
	cmd := exec.CommandContext(t.Context(), "sh")
	cmd.Stdin = strings.NewReader(string(text))
	cmd.Env = append([]string{"PATH=" + folder + ":" + os.Getenv("PATH"), "CALLS=" + calls}, environ...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	made, err := os.ReadFile(calls)
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(made)), "\n")
}

var names = []string{"RESOURCE_GROUP=g", "LOCATION=westeurope", "COSMOS_ACCOUNT=c", "SERVICEBUS_NAMESPACE=b", "STORAGE_ACCOUNT=s"}

func TestScript_CreatesWhatTheTableHas(t *testing.T) {
	cfg := load(t, "MESSAGEHUB_DOMAINS=[{name: Charges, ingest-queue: charges/events}, {name: A.B}, {name: A-B, queue: ab2}]")
	table := deployment.NewTable(cfg)
	calls := runScript(t, azuretemplate.Script(cfg), append(slices.Clone(names), "DOMAIN_CHARGES=of charges", "DOMAIN_A_B=first", "DOMAIN_A_B2=second")...)
	has := func(parts ...string) {
		t.Helper()
		require.True(t, slices.ContainsFunc(calls, func(call string) bool {
			return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(call, part) })
		}), parts)
	}
	has("cosmosdb sql database create", "--name messagehub")
	for i := range table.Containers {
		has("cosmosdb sql container create", strings.ReplaceAll(deployment.ContainerArguments(&table.Containers[i]), "'", ""))
	}
	for i := range table.Queues {
		has("servicebus queue create", table.Queues[i].Arguments())
	}
	for _, b := range table.Blobs {
		has("storage container-rm create", "--name "+b.Name)
	}
	for _, action := range table.DataRole.Actions {
		has("cosmosdb sql role definition create", `"`+action+`"`)
	}
	has("cosmosdb sql role assignment create", "--principal-id principal of messagehub-hub")
	granted := 0
	for _, g := range table.Grants {
		who, isKnown := map[string]string{
			deployment.Hub: "principal of messagehub-hub", deployment.Scaler: "principal of messagehub-scaler",
			"domain:Charges": "of charges", "domain:A-B": "first", "domain:A.B": "second",
		}[g.Identity]
		if !isKnown || g.Scope.Kind == deployment.DatabaseScope {
			continue
		}
		granted++
		has("role assignment create", "--assignee-object-id "+who+" ", "--role "+g.Role.ID, strings.ReplaceAll(g.Scope.Name, "/", "~"))
	}
	got := 0
	for _, call := range calls {
		if strings.HasPrefix(call, "role assignment create") {
			got++
		}
	}
	require.Equal(t, granted, got, "a domain without an identity gets no role")
	for _, flag := range []string{"--disable-local-auth true", "disableLocalAuth=true", "--allow-shared-key-access false", "--allow-blob-public-access false"} {
		has(flag)
	}
}

func TestScript_QuotesNames(t *testing.T) {
	cfg := load(t, "MESSAGEHUB_COSMOS_ENDPOINT=https://energy.documents.azure.com/", "MESSAGEHUB_COSMOS_DATABASE=it's $HOME; exit 1")
	calls := strings.Join(runScript(t, azuretemplate.Script(cfg), names...), "\n")
	require.Contains(t, calls, "sql database create --resource-group g --account-name c --name it's $HOME; exit 1 --output none")
	require.Contains(t, calls, "--scope /dbs/it's $HOME; exit 1 --output none")
	require.Contains(t, string(azuretemplate.Bicep(cfg)), `name: 'it\'s $HOME; exit 1'`)
	require.Equal(t, cfg.Cosmos.Database, lastPart(resourcesOfType(evaluate(t, azuretemplate.ARM(cfg), nil), "Microsoft.DocumentDB/databaseAccounts/sqlDatabases")[0].Name))
}

func TestScript_RequiresNames(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh")
	cfg := config.Default()
	cmd.Stdin = strings.NewReader(string(azuretemplate.Script(&cfg)))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "set it to the name of a resource group")
}
