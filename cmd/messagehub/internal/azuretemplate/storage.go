package azuretemplate

import "github.com/messagehub/messagehub/cmd/node/deployment"

const storageAPI = "2023-05-01"

// addStorage adds the storage account and its containers. The account accepts
// no keys. A deleted or replaced blob can be restored for blobRestoreDays, and
// is then deleted by a rule.
func (r *resources) addStorage() {
	name := r.accountParam("storageAccountName", "Name of the storage account: up to 24 lower case letters and digits", r.names.blob, text{paramRef("prefix"), unique()})
	days := r.addParam(param{name: "blobRestoreDays", kind: "int", description: "Days in which a blob that was deleted or replaced can be restored", value: 7})
	r.blob = r.addResource(&templateResource{
		symbol: "storage", kind: "Microsoft.Storage/storageAccounts", api: storageAPI, name: name,
		body: orderedObject{
			{"location", r.location},
			{"kind", "StorageV2"},
			{"sku", orderedObject{{"name", conditional{r.zones, "Standard_ZRS", "Standard_LRS"}}}},
			{"properties", orderedObject{
				{"allowSharedKeyAccess", false},
				{"allowBlobPublicAccess", false},
				{"defaultToOAuthAuthentication", true},
				{"minimumTlsVersion", "TLS1_2"},
				{"supportsHttpsTrafficOnly", true},
				{"publicNetworkAccess", r.publicAccess()},
			}},
		},
	})
	r.scopes[deployment.Scope{Kind: deployment.StorageScope}] = r.blob
	blobs := r.addResource(&templateResource{
		symbol: "blobs", kind: "Microsoft.Storage/storageAccounts/blobServices", api: storageAPI, parent: r.blob, name: "default",
		body: orderedObject{{"properties", orderedObject{
			{"isVersioningEnabled", true},
			{"deleteRetentionPolicy", orderedObject{{"enabled", true}, {"days", days}}},
			{"containerDeleteRetentionPolicy", orderedObject{{"enabled", true}, {"days", days}}},
		}}},
	})
	for _, b := range r.table.Blobs {
		r.scopes[deployment.Scope{Kind: deployment.BlobContainerScope, Name: b.Name}] = r.addResource(&templateResource{
			comment: b.Use,
			symbol:  "blobs" + capitalizeName(b.Name), kind: "Microsoft.Storage/storageAccounts/blobServices/containers", api: storageAPI, parent: blobs, name: b.Name,
			body: orderedObject{{"properties", orderedObject{{"publicAccess", "None"}}}},
		})
	}
	r.addResource(&templateResource{
		symbol: "blobRules", kind: "Microsoft.Storage/storageAccounts/managementPolicies", api: storageAPI, parent: r.blob, name: "default",
		body: orderedObject{{"properties", orderedObject{{"policy", orderedObject{{"rules", storageRules(r.table.Blobs, days)}}}}}},
	})
	r.addPrivateEndpoint("blob", "blob", r.blob)
}

// storageRules returns the rules by which the storage account deletes blobs.
// Replaced versions are deleted after this number of days.
func storageRules(blobs []deployment.BlobContainer, days any) array {
	rules := array{orderedObject{
		{"name", "replaced"},
		{"type", "Lifecycle"},
		{"enabled", true},
		{"definition", orderedObject{
			{"filters", orderedObject{{"blobTypes", array{"blockBlob"}}}},
			{"actions", orderedObject{{"version", orderedObject{{"delete", orderedObject{{"daysAfterCreationGreaterThan", days}}}}}}},
		}},
	}}
	for _, b := range blobs {
		if b.DeleteAfterDays > 0 {
			rules = append(rules, orderedObject{
				{"name", b.Name},
				{"type", "Lifecycle"},
				{"enabled", true},
				{"definition", orderedObject{
					{"filters", orderedObject{{"blobTypes", array{"blockBlob"}}, {"prefixMatch", array{b.Name + "/"}}}},
					{"actions", orderedObject{{"baseBlob", orderedObject{{"delete", orderedObject{{"daysAfterModificationGreaterThan", b.DeleteAfterDays}}}}}}},
				}},
			})
		}
	}
	return rules
}
