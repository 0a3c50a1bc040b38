package main

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"
)

func TestCheck_NamesMailboxesOfANewerFormatAndDoesNotCallThemDamaged(t *testing.T) {
	data := newStoppedFolder(t, 2)
	eachFound(t, data, "catalog", "SELECT * FROM c WHERE c.id = 'head' AND c.partitionKey = 'actor-1'", func(c *azcosmos.ContainerClient, key azcosmos.PartitionKey, id string) {
		var ops azcosmos.PatchOperations
		ops.AppendSet("/v", 1000)
		ops.AppendSet("/cabinets", "stored in another way")
		_, err := c.PatchItem(t.Context(), key, id, ops, nil)
		require.NoError(t, err)
	})
	for _, args := range [][]string{{}, {"--repair"}} {
		got := messagehub(t, "", append([]string{"check", "--data", data}, args...)...)
		require.Equal(t, 1, got.status, "not all was checked")
		require.Contains(t, got.out, "not checked   H1   newer-format         1 of 1 recipient, such as actor-1")
		require.Contains(t, got.out, "check them with the newer version")
		require.NotContains(t, got.out, "DAMAGE")
		require.NotContains(t, got.out, "--repair", "no repair would help")
	}
	url := startHub(t, "--data", data).url(t)
	require.Equal(t, 0, messagehub(t, "", "peek", "--url", url, "--actor", "actor-0").status, "other mailboxes are served")
	refused := messagehub(t, "", "peek", "--url", url, "--actor", "actor-1")
	require.Equal(t, 1, refused.status)
	require.Contains(t, refused.err, "The mailbox has a newer format (503)")
}
