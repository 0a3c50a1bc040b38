package azuretemplate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/domain"
)

// Script returns a script of the Azure CLI that creates the same as the template does, without private
// endpoints. It may run again: each of its commands creates or corrects.
func Script(cfg *config.Config) []byte {
	s := &script{table: deployment.NewTable(cfg), variables: make(map[string]string)}
	used := make(map[string]bool)
	for _, i := range s.table.Identities {
		s.variables[i.Name] = uniqueSymbol(used, shellName(i.Name))
	}
	s.line("#!/bin/sh")
	s.line("# Not run by the project, which has no Azure account. Check with: sh -n FILE, and run it in a resource group of its own.")
	s.line("# Creates the accounts, queues, containers, identities and roles of MessageHub. Written by messagehub provision --format az.")
	s.line("# Needs the rights to create resources and to assign roles in the resource group.")
	s.line("set -eu")
	s.line("group=${RESOURCE_GROUP:?set it to the name of a resource group}")
	s.line("location=${LOCATION:?set it to a region, such as westeurope}")
	s.variable("cosmos", "COSMOS_ACCOUNT", azureName(cfg.Cosmos.Endpoint, ".documents."))
	s.variable("bus", "SERVICEBUS_NAMESPACE", azureName("https://"+cfg.ServiceBus.Namespace, ".servicebus."))
	s.variable("storage", "STORAGE_ACCOUNT", azureName(cfg.Blob.Endpoint, ".blob."))
	s.line("prefix=${PREFIX:-messagehub}   # of the identities")
	for _, i := range s.table.Identities {
		if i.Domain != (domain.Origin{}) {
			s.line("%s=${%s:-}   # object id of the identity of the domain %s; empty: it gets no roles", s.variables[i.Name], strings.ToUpper(s.variables[i.Name]), i.Domain)
		}
	}
	s.identities()
	s.cosmos()
	s.bus()
	s.storage()
	s.roles()
	return s.text.Bytes()
}

type script struct {
	table     deployment.Table
	variables map[string]string // with the principals of the identities
	text      bytes.Buffer
}

func (s *script) line(format string, args ...any) {
	fmt.Fprintf(&s.text, format+"\n", args...)
}

func (s *script) section(title string) { s.line("\necho %s", shellQuote(title)) }

func (s *script) variable(name, from, value string) {
	if value == "" {
		s.line("%s=${%s:?set it to the name that the account gets}", name, from)
		return
	}
	s.line("%s=${%s:-%s}", name, from, value)
}

// shellName returns a name of a variable.
func shellName(name string) string {
	return strings.Map(func(c rune) rune {
		if isWord(c) {
			return c
		}
		return '_'
	}, name)
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (s *script) identities() {
	s.section("Identities")
	for _, i := range s.table.Identities {
		if i.Domain == (domain.Origin{}) {
			s.line(`%s=$(az identity create --resource-group "$group" --location "$location" --name "$prefix-%s" --query principalId --output tsv)`, s.variables[i.Name], i.Name)
		}
	}
}

func (s *script) cosmos() {
	s.section("Cosmos DB")
	s.line(`az cosmosdb create --resource-group "$group" --name "$cosmos" --locations regionName="$location" failoverPriority=0 isZoneRedundant=true` +
		" --default-consistency-level Session --enable-automatic-failover true --backup-policy-type Continuous --continuous-tier Continuous7Days" +
		" --minimal-tls-version Tls12 --disable-key-based-metadata-write-access true --output none")
	s.line(`cosmos_id=$(az cosmosdb show --resource-group "$group" --name "$cosmos" --query id --output tsv)`)
	s.line(`az resource update --ids "$cosmos_id" --set properties.disableLocalAuth=true --output none`)
	const where = `--resource-group "$group" --account-name "$cosmos"`
	database := shellQuote(s.table.Database)
	s.line("az cosmosdb sql database create %s --name %s --output none", where, database)
	for i := range s.table.Containers {
		s.line("az cosmosdb sql container create %s --database-name %s %s --output none", where, database, deployment.ContainerArguments(&s.table.Containers[i]))
	}
	role := s.table.DataRole
	body, err := json.Marshal(map[string]any{
		"Id": s.id("role"), "RoleName": role.Name + " " + s.table.Database, "Type": "CustomRole",
		"AssignableScopes": []string{"/dbs/" + s.table.Database}, "Permissions": []map[string]any{{"DataActions": role.Actions}},
	})
	if err != nil {
		panic(err) // strings always marshal
	}
	s.line("az cosmosdb sql role definition create %s --body %s --output none", where, shellQuote(string(body)))
}

// id returns an id that is the same each time the script is written.
func (s *script) id(of string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("messagehub/"+s.table.Database+"/"+of)).String()
}

func (s *script) bus() {
	s.section("Service Bus")
	s.line(`az servicebus namespace create --resource-group "$group" --location "$location" --name "$bus" --sku Standard --disable-local-auth true --minimum-tls-version 1.2 --output none`)
	s.line(`bus_id=$(az servicebus namespace show --resource-group "$group" --name "$bus" --query id --output tsv)`)
	for i := range s.table.Queues {
		s.line(`az servicebus queue create --resource-group "$group" --namespace-name "$bus" %s --output none`, s.table.Queues[i].Arguments())
	}
}

// restoreDays is how long a blob that was deleted or replaced can be restored.
const restoreDays = 7

func (s *script) storage() {
	s.section("Storage")
	s.line(`az storage account create --resource-group "$group" --location "$location" --name "$storage" --kind StorageV2 --sku Standard_ZRS` +
		" --allow-shared-key-access false --allow-blob-public-access false --min-tls-version TLS1_2 --https-only true --output none")
	s.line(`storage_id=$(az storage account show --resource-group "$group" --name "$storage" --query id --output tsv)`)
	s.line(`az storage account blob-service-properties update --resource-group "$group" --account-name "$storage" --enable-versioning true`+
		" --enable-delete-retention true --delete-retention-days %d --enable-container-delete-retention true --container-delete-retention-days %[1]d --output none", restoreDays)
	for _, b := range s.table.Blobs {
		s.line(`az storage container-rm create --resource-group "$group" --storage-account "$storage" --name %s --public-access off --output none`, b.Name)
	}
	policy, err := json.Marshal(map[string]any{"rules": plain(storageRules(s.table.Blobs, restoreDays))})
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	s.line(`az storage account management-policy create --resource-group "$group" --account-name "$storage" --policy %s --output none`, shellQuote(string(policy)))
}

// plain returns a value without expressions as encoding/json takes it.
func plain(v any) any {
	switch v := v.(type) {
	case object:
		all := make(map[string]any, len(v))
		for _, m := range v {
			all[m.name] = plain(m.value)
		}
		return all
	case array:
		all := make([]any, len(v))
		for i, x := range v {
			all[i] = plain(x)
		}
		return all
	default:
		return v
	}
}

func (s *script) roles() {
	s.section("Roles")
	s.line(`assign() { az role assignment create --assignee-object-id "$1" --assignee-principal-type ServicePrincipal --role "$2" --scope "$3" --output none; }`)
	for _, i := range s.table.Identities {
		indent, isDomain := "", i.Domain != (domain.Origin{})
		if isDomain {
			s.line(`if [ -n "$%s" ]; then`, s.variables[i.Name])
			indent = "  "
		}
		for _, g := range s.table.Grants {
			if g.Identity == i.Name {
				s.line("%s%s", indent, s.assignment(&g))
			}
		}
		if isDomain {
			s.line("fi")
		}
	}
}

// assignment returns the command that gives a role.
func (s *script) assignment(g *deployment.Grant) string {
	principal := s.variables[g.Identity]
	scope := ""
	switch g.Scope.Kind {
	case deployment.DatabaseScope:
		return fmt.Sprintf(`az cosmosdb sql role assignment create --resource-group "$group" --account-name "$cosmos" --role-assignment-id %s --role-definition-id %s --principal-id "$%s" --scope %s --output none   # %s`,
			s.id("assignment to "+g.Identity), s.id("role"), principal, shellQuote("/dbs/"+g.Scope.Name), g.Why)
	case deployment.QueueScope:
		scope = "$bus_id/queues/" + (&deployment.Queue{Name: g.Scope.Name}).ResourceName()
	case deployment.BlobContainerScope:
		scope = "$storage_id/blobServices/default/containers/" + g.Scope.Name
	case deployment.StorageScope:
		scope = "$storage_id"
	}
	return fmt.Sprintf(`assign "$%s" %s "%s"   # %s: %s`, principal, g.Role.ID, scope, g.Role.Name, g.Why)
}
