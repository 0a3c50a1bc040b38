package deployment_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
)

// loadConfig returns the configuration specified by environment variables.
func loadConfig(t *testing.T, environ ...string) *config.Config {
	t.Helper()
	cfg, err := config.Load(config.Inputs{Environ: environ})
	require.NoError(t, err)
	return &cfg
}

// testedConfigs returns the configurations for which tests check the table.
func testedConfigs(t *testing.T) map[string]*config.Config {
	return map[string]*config.Config{
		"default": loadConfig(t),
		"domains with queues of their own": loadConfig(t,
			"MESSAGEHUB_DOMAINS=[{name: Charges, ingest-queue: charges-events}, {name: Billing, queue: invoices, reply-queue: invoices/answers}]",
			"MESSAGEHUB_SERVICEBUS_PLAIN_QUEUE=none", "MESSAGEHUB_OBJECTS_QUEUE=none"),
		"other names": loadConfig(t,
			"MESSAGEHUB_COSMOS_ENDPOINT=https://energy.documents.azure.com/", "MESSAGEHUB_COSMOS_DATABASE=energy", "MESSAGEHUB_BLOB_ENDPOINT=https://energy.blob.core.windows.net/", "MESSAGEHUB_BLOB_CONTAINER=energy",
			"MESSAGEHUB_SERVICEBUS_FIFO_QUEUE=events"),
	}
}

func TestTable_EachQueueHasASenderAndAReceiver(t *testing.T) {
	for name, cfg := range testedConfigs(t) {
		table := deployment.NewTable(cfg)
		for _, q := range table.Queues {
			has := func(role deployment.Role) bool {
				return slices.ContainsFunc(table.Grants, func(g deployment.Grant) bool {
					return g.Role == role && g.Scope == deployment.Scope{Kind: deployment.QueueScope, Name: q.Name} && g.Identity != deployment.Scaler
				})
			}
			require.True(t, has(deployment.Receiver), "%s: %s", name, q.Name)
			if q.Name != cfg.Objects.Queue { // object stores, which have no identity in the table, send to this queue
				require.True(t, has(deployment.Sender), "%s: %s", name, q.Name)
			}
		}
	}
}

func TestTable_GrantsNameResourcesOfTheTable(t *testing.T) {
	for name, cfg := range testedConfigs(t) {
		table := deployment.NewTable(cfg)
		seen := make(map[deployment.Grant]bool)
		for _, g := range table.Grants {
			why := g.Why
			g.Why = ""
			require.False(t, seen[g], "%s: %v twice", name, g)
			seen[g] = true
			require.NotEmpty(t, why)
			require.True(t, slices.ContainsFunc(table.Identities, func(i deployment.Identity) bool { return i.Name == g.Identity }), "%s: %v", name, g)
			var exists bool
			switch g.Scope.Kind {
			case deployment.DatabaseScope:
				exists = g.Scope.Name == table.Database && g.Identity == deployment.Hub
			case deployment.QueueScope:
				exists = slices.ContainsFunc(table.Queues, func(q deployment.Queue) bool { return q.Name == g.Scope.Name })
			case deployment.BlobContainerScope:
				exists = slices.ContainsFunc(table.Blobs, func(b deployment.BlobContainer) bool { return b.Name == g.Scope.Name })
			case deployment.StorageScope:
				exists = g.Role == deployment.BlobDelegator && g.Scope.Name == ""
			}
			require.True(t, exists, "%s: %v", name, g)
		}
	}
}

// A domain's scopes must include only the queues that the domain may use, and
// no queues of other domains.
func TestTable_ADomainReachesOnlyItsOwnQueues(t *testing.T) {
	cfg := loadConfig(t, "MESSAGEHUB_DOMAINS=[{name: Charges, ingest-queue: charges-events}]")
	var scopes []string
	for _, g := range deployment.NewTable(cfg).Grants {
		if g.Identity == "domain:Charges" {
			scopes = append(scopes, g.Role.Name+" "+g.Scope.Name)
		}
	}
	require.Equal(t, []string{
		"Azure Service Bus Data Sender charges-events",
		"Azure Service Bus Data Receiver charges",
		"Azure Service Bus Data Sender charges-reply",
		"Azure Service Bus Data Receiver charges-dequeue",
		"Storage Blob Data Contributor messagehub-exchange",
	}, scopes)
}

func TestTable_IsADocumentOfOneFormat(t *testing.T) {
	text, err := json.Marshal(deployment.NewTable(loadConfig(t)))
	require.NoError(t, err)
	var document struct {
		Format int
		Cosmos struct {
			Database   string
			Containers []struct {
				Name       string
				DefaultTTL *int
			}
		}
		ServiceBus struct{ Queues []deployment.Queue }
		Storage    struct{ Containers []deployment.BlobContainer }
		Roles      []deployment.Grant
	}
	require.NoError(t, json.Unmarshal(text, &document))
	require.Equal(t, 1, document.Format)
	require.Equal(t, "messagehub", document.Cosmos.Database)
	require.Len(t, document.Cosmos.Containers, len(deployment.Containers()))
	require.Equal(t, deployment.Queues(loadConfig(t)), document.ServiceBus.Queues)
	require.Equal(t, deployment.Blobs(loadConfig(t)), document.Storage.Containers)
	require.NotEmpty(t, document.Roles)
}
