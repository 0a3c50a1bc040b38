package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/azuretemplate/armtest"
)

// deploy evaluates a template, and creates its resources in the accounts with
// clients of the Azure SDK.
func (d *azureAccounts) deploy(template []byte, parameters map[string]any) {
	d.Helper()
	made, err := armtest.Evaluate(template, parameters, armtest.Options{
		Existing: []string{"Microsoft.ManagedIdentity/userAssignedIdentities"},
		Runtime:  func(r *armtest.Resource, path string) string { return r.Name + "." + path },
	})
	require.NoError(d, err)
	for _, r := range made.Resources {
		text, err := json.Marshal(r.Body["properties"])
		require.NoError(d, err)
		name := r.Name[strings.LastIndexByte(r.Name, '/')+1:]
		switch r.Type {
		case "Microsoft.DocumentDB/databaseAccounts/sqlDatabases":
			_, err = d.cosmos.CreateDatabase(d.Context(), azcosmos.DatabaseProperties{ID: name}, nil)
		case "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers":
			err = d.deployContainer(strings.Split(r.Name, "/")[1], text)
		case "Microsoft.ServiceBus/namespaces/queues":
			var properties admin.QueueProperties
			require.NoError(d, json.Unmarshal(text, &properties))
			_, err = d.bus.CreateQueue(d.Context(), strings.ReplaceAll(name, "~", "/"), &admin.CreateQueueOptions{Properties: &properties})
		case "Microsoft.Storage/storageAccounts/blobServices/containers":
			err = d.deployBlobs(name)
		}
		require.NoError(d, err, r.ID)
	}
}

func (d *azureAccounts) deployContainer(database string, text []byte) error {
	var properties struct {
		Resource azcosmos.ContainerProperties
		Options  struct {
			AutoscaleSettings struct{ MaxThroughput int32 }
		}
	}
	require.NoError(d, json.Unmarshal(text, &properties))
	db, err := d.cosmos.NewDatabase(database)
	require.NoError(d, err)
	throughput := azcosmos.NewAutoscaleThroughputProperties(properties.Options.AutoscaleSettings.MaxThroughput)
	_, err = db.CreateContainer(d.Context(), properties.Resource, &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput})
	return err
}

func (d *azureAccounts) deployBlobs(name string) error {
	account := d.setting("MESSAGEHUB_BLOB_ENDPOINT")
	key, err := container.NewSharedKeyCredential(account[strings.LastIndexByte(account, '/')+1:], d.setting("MESSAGEHUB_BLOB_KEY"))
	require.NoError(d, err)
	blobs, err := container.NewClientWithSharedKeyCredential(account+"/"+name, key, nil)
	require.NoError(d, err)
	_, err = blobs.Create(d.Context(), nil)
	return err
}

// setting returns the value of an environment variable.
func (d *azureAccounts) setting(name string) string {
	for _, v := range d.environ {
		if value, found := strings.CutPrefix(v, name+"="); found {
			return value
		}
	}
	return ""
}

func TestProvision_FindsNothingToDoAfterTheTemplate(t *testing.T) {
	d := newAccounts(t)
	template, err := os.ReadFile(filepath.Join("..", "..", "deploy", "azure", "main.json"))
	require.NoError(t, err)
	d.deploy(template, nil)
	require.NotContains(t, d.provision(0, "--check"), "note:")
	require.Empty(t, d.provision(0, "--diff"))
	require.NotContains(t, d.provision(0), "changed:")
}

// TestProvision_WritesATemplateOfTheSettings deploys the template of a hub with
// non-default domains and queues. The resources must match the settings of that
// hub.
func TestProvision_WritesATemplateOfTheSettings(t *testing.T) {
	d := newAccounts(t)
	d.setEnviron(
		"MESSAGEHUB_DOMAINS=[{name: Charges, ingest-queue: charges/events}, {name: Billing, queue: invoices}]",
		"MESSAGEHUB_SERVICEBUS_PLAIN_QUEUE=none", "MESSAGEHUB_COSMOS_DATABASE=energy", "MESSAGEHUB_BLOB_CONTAINER=energy",
	)
	require.Equal(t, 1+6+2+1+1+1+6*3, strings.Count(d.provision(1, "--diff"), "missing   "))
	d.deploy([]byte(d.provision(0, "--format", "arm")), nil)
	require.Empty(t, d.provision(0, "--diff"))
	for _, format := range []string{"az", "json"} { // these formats contain no key
		require.Contains(t, d.provision(0, "--format", format), "invoices-dequeue")
	}
	require.Contains(t, d.provision(0, "--format", "bicep"), "resource queueInvoicesReply 'Microsoft.ServiceBus/namespaces/queues@")
}
