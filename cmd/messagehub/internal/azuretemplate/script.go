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

// Script returns a script of the Azure CLI that creates the same resources as
// the template, except for private endpoints. The script may be run repeatedly:
// each of its commands creates or corrects a resource.
func Script(cfg *config.Config) []byte {
	s := &script{table: deployment.NewTable(cfg), variables: make(map[string]string)}
	used := make(map[string]bool)
	for _, i := range s.table.Identities {
		s.variables[i.Name] = uniqueSymbol(used, shellName(i.Name))
	}
	s.addLine("#!/bin/sh")
	s.addLine("# Not run by the project, which has no Azure account. Check with: sh -n FILE, and run it in a resource group of its own.")
	s.addLine("# Creates the accounts, queues, containers, identities and roles of MessageHub. Written by messagehub provision --format az.")
	s.addLine("# Needs the rights to create resources and to assign roles in the resource group.")
	s.addLine("set -eu")
	s.addLine("group=${RESOURCE_GROUP:?set it to the name of a resource group}")
	s.addLine("location=${LOCATION:?set it to a region, such as westeurope}")
	s.addVariable("cosmos", "COSMOS_ACCOUNT", azureName(cfg.Cosmos.Endpoint, ".documents."))
	s.addVariable("bus", "SERVICEBUS_NAMESPACE", azureName("https://"+cfg.ServiceBus.Namespace, ".servicebus."))
	s.addVariable("storage", "STORAGE_ACCOUNT", azureName(cfg.Blob.Endpoint, ".blob."))
	s.addLine("prefix=${PREFIX:-messagehub}   # of the identities")
	for _, i := range s.table.Identities {
		if i.Domain != (domain.Origin{}) {
			s.addLine("%s=${%s:-}   # object id of the identity of the domain %s; empty: it gets no roles", s.variables[i.Name], strings.ToUpper(s.variables[i.Name]), i.Domain)
		}
	}
	s.addIdentities()
	s.addCosmos()
	s.addBus()
	s.addStorage()
	s.addRoles()
	return s.text.Bytes()
}

type script struct {
	table     deployment.Table
	variables map[string]string // shell variables that contain the principal ids, by identity name
	text      bytes.Buffer
}

func (s *script) addLine(format string, args ...any) {
	fmt.Fprintf(&s.text, format+"\n", args...)
}

func (s *script) addSection(title string) { s.addLine("\necho %s", shellQuote(title)) }

func (s *script) addVariable(name, from, value string) {
	if value == "" {
		s.addLine("%s=${%s:?set it to the name that the account gets}", name, from)
		return
	}
	s.addLine("%s=${%s:-%s}", name, from, value)
}

// shellName converts a name to the name of a shell variable.
func shellName(name string) string {
	return strings.Map(func(c rune) rune {
		if isWord(c) {
			return c
		}
		return '_'
	}, name)
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (s *script) addIdentities() {
	s.addSection("Identities")
	for _, i := range s.table.Identities {
		if i.Domain == (domain.Origin{}) {
			s.addLine(`%s=$(az identity create --resource-group "$group" --location "$location" --name "$prefix-%s" --query principalId --output tsv)`, s.variables[i.Name], i.Name)
		}
	}
}

func (s *script) addCosmos() {
	s.addSection("Cosmos DB")
	s.addLine(`az cosmosdb create --resource-group "$group" --name "$cosmos" --locations regionName="$location" failoverPriority=0 isZoneRedundant=true` +
		" --default-consistency-level Session --enable-automatic-failover true --backup-policy-type Continuous --continuous-tier Continuous7Days" +
		" --minimal-tls-version Tls12 --disable-key-based-metadata-write-access true --output none")
	s.addLine(`cosmos_id=$(az cosmosdb show --resource-group "$group" --name "$cosmos" --query id --output tsv)`)
	s.addLine(`az resource update --ids "$cosmos_id" --set properties.disableLocalAuth=true --output none`)
	const where = `--resource-group "$group" --account-name "$cosmos"`
	database := shellQuote(s.table.Database)
	s.addLine("az cosmosdb sql database create %s --name %s --output none", where, database)
	for i := range s.table.Containers {
		s.addLine("az cosmosdb sql container create %s --database-name %s %s --output none", where, database, deployment.ContainerArguments(&s.table.Containers[i]))
	}
	role := s.table.DataRole
	body, err := json.Marshal(map[string]any{
		"Id": s.stableID("role"), "RoleName": role.Name + " " + s.table.Database, "Type": "CustomRole",
		"AssignableScopes": []string{"/dbs/" + s.table.Database}, "Permissions": []map[string]any{{"DataActions": role.Actions}},
	})
	if err != nil {
		panic(err) // strings can always be encoded
	}
	s.addLine("az cosmosdb sql role definition create %s --body %s --output none", where, shellQuote(string(body)))
}

// stableID returns the same id for the same arguments, so that repeated runs of
// the script change nothing.
func (s *script) stableID(of string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("messagehub/"+s.table.Database+"/"+of)).String()
}

func (s *script) addBus() {
	s.addSection("Service Bus")
	s.addLine(`az servicebus namespace create --resource-group "$group" --location "$location" --name "$bus" --sku Standard --disable-local-auth true --minimum-tls-version 1.2 --output none`)
	s.addLine(`bus_id=$(az servicebus namespace show --resource-group "$group" --name "$bus" --query id --output tsv)`)
	for i := range s.table.Queues {
		s.addLine(`az servicebus queue create --resource-group "$group" --namespace-name "$bus" %s --output none`, s.table.Queues[i].Arguments())
	}
}

// restoreDays is the number of days in which a deleted or replaced blob can be
// restored.
const restoreDays = 7

func (s *script) addStorage() {
	s.addSection("Storage")
	s.addLine(`az storage account create --resource-group "$group" --location "$location" --name "$storage" --kind StorageV2 --sku Standard_ZRS` +
		" --allow-shared-key-access false --allow-blob-public-access false --min-tls-version TLS1_2 --https-only true --output none")
	s.addLine(`storage_id=$(az storage account show --resource-group "$group" --name "$storage" --query id --output tsv)`)
	s.addLine(`az storage account blob-service-properties update --resource-group "$group" --account-name "$storage" --enable-versioning true`+
		" --enable-delete-retention true --delete-retention-days %d --enable-container-delete-retention true --container-delete-retention-days %[1]d --output none", restoreDays)
	for _, b := range s.table.Blobs {
		s.addLine(`az storage container-rm create --resource-group "$group" --storage-account "$storage" --name %s --public-access off --output none`, b.Name)
	}
	policy, err := json.Marshal(map[string]any{"rules": plainValue(storageRules(s.table.Blobs, restoreDays))})
	if err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	s.addLine(`az storage account management-policy create --resource-group "$group" --account-name "$storage" --policy %s --output none`, shellQuote(string(policy)))
}

// plainValue converts a value without expressions to the types of
// encoding/json.
func plainValue(v any) any {
	switch v := v.(type) {
	case orderedObject:
		all := make(map[string]any, len(v))
		for _, m := range v {
			all[m.name] = plainValue(m.value)
		}
		return all
	case array:
		all := make([]any, len(v))
		for i, x := range v {
			all[i] = plainValue(x)
		}
		return all
	default:
		return v
	}
}

func (s *script) addRoles() {
	s.addSection("Roles")
	s.addLine(`assign() { az role assignment create --assignee-object-id "$1" --assignee-principal-type ServicePrincipal --role "$2" --scope "$3" --output none; }`)
	for _, i := range s.table.Identities {
		indent, isDomain := "", i.Domain != (domain.Origin{})
		if isDomain {
			s.addLine(`if [ -n "$%s" ]; then`, s.variables[i.Name])
			indent = "  "
		}
		for _, g := range s.table.Grants {
			if g.Identity == i.Name {
				s.addLine("%s%s", indent, s.assignmentCommand(&g))
			}
		}
		if isDomain {
			s.addLine("fi")
		}
	}
}

// assignmentCommand returns the command that assigns a role.
func (s *script) assignmentCommand(g *deployment.Grant) string {
	principal := s.variables[g.Identity]
	scope := ""
	switch g.Scope.Kind {
	case deployment.DatabaseScope:
		return fmt.Sprintf(`az cosmosdb sql role assignment create --resource-group "$group" --account-name "$cosmos" --role-assignment-id %s --role-definition-id %s --principal-id "$%s" --scope %s --output none   # %s`,
			s.stableID("assignment to "+g.Identity), s.stableID("role"), principal, shellQuote("/dbs/"+g.Scope.Name), g.Why)
	case deployment.QueueScope:
		scope = "$bus_id/queues/" + (&deployment.Queue{Name: g.Scope.Name}).ResourceName()
	case deployment.BlobContainerScope:
		scope = "$storage_id/blobServices/default/containers/" + g.Scope.Name
	case deployment.StorageScope:
		scope = "$storage_id"
	}
	return fmt.Sprintf(`assign "$%s" %s "%s"   # %s: %s`, principal, g.Role.ID, scope, g.Role.Name, g.Why)
}
