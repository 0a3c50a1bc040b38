package azuretemplate

import "github.com/messagehub/messagehub/cmd/node/deployment"

const storageAPI = "2023-05-01"

// addStorage adds the storage account and its containers. The account accepts no keys. What was
// deleted or replaced can be restored for a time, and is then deleted by a rule.
func (r *resources) addStorage() {
	name := r.accountParam("storageAccountName", "Name of the storage account: up to 24 lower case letters and digits", r.names.blob, text{paramRef("prefix"), unique()})
	days := r.param(param{name: "blobRestoreDays", kind: "int", description: "Days in which a blob that was deleted or replaced can be restored", value: 7})
	r.blob = r.add(&resource{
		symbol: "storage", kind: "Microsoft.Storage/storageAccounts", api: storageAPI, name: name,
		body: object{
			{"location", r.location},
			{"kind", "StorageV2"},
			{"sku", object{{"name", choice{r.zones, "Standard_ZRS", "Standard_LRS"}}}},
			{"properties", object{
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
	blobs := r.add(&resource{
		symbol: "blobs", kind: "Microsoft.Storage/storageAccounts/blobServices", api: storageAPI, parent: r.blob, name: "default",
		body: object{{"properties", object{
			{"isVersioningEnabled", true},
			{"deleteRetentionPolicy", object{{"enabled", true}, {"days", days}}},
			{"containerDeleteRetentionPolicy", object{{"enabled", true}, {"days", days}}},
		}}},
	})
	for _, b := range r.table.Blobs {
		r.scopes[deployment.Scope{Kind: deployment.BlobContainerScope, Name: b.Name}] = r.add(&resource{
			comment: b.Use,
			symbol:  "blobs" + title(b.Name), kind: "Microsoft.Storage/storageAccounts/blobServices/containers", api: storageAPI, parent: blobs, name: b.Name,
			body: object{{"properties", object{{"publicAccess", "None"}}}},
		})
	}
	r.add(&resource{
		symbol: "blobRules", kind: "Microsoft.Storage/storageAccounts/managementPolicies", api: storageAPI, parent: r.blob, name: "default",
		body: object{{"properties", object{{"policy", object{{"rules", storageRules(r.table.Blobs, days)}}}}}},
	})
	r.addPrivateEndpoint("blob", "blob", r.blob)
}

// storageRules returns the rules by which the account deletes blobs; days is how long versions are kept
// that were replaced.
func storageRules(blobs []deployment.BlobContainer, days any) array {
	rules := array{object{
		{"name", "replaced"},
		{"type", "Lifecycle"},
		{"enabled", true},
		{"definition", object{
			{"filters", object{{"blobTypes", array{"blockBlob"}}}},
			{"actions", object{{"version", object{{"delete", object{{"daysAfterCreationGreaterThan", days}}}}}}},
		}},
	}}
	for _, b := range blobs {
		if b.DeleteAfterDays > 0 {
			rules = append(rules, object{
				{"name", b.Name},
				{"type", "Lifecycle"},
				{"enabled", true},
				{"definition", object{
					{"filters", object{{"blobTypes", array{"blockBlob"}}, {"prefixMatch", array{b.Name + "/"}}}},
					{"actions", object{{"baseBlob", object{{"delete", object{{"daysAfterModificationGreaterThan", b.DeleteAfterDays}}}}}}},
				}},
			})
		}
	}
	return rules
}
