package embedded_test

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

func uniqueMail(p *azcosmos.ContainerProperties) {
	p.UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{
		{Paths: []string{"/mail"}}, {Paths: []string{"/name/first", "/name/last"}},
	}}
}

func TestUniqueKey_IsUniqueInAPartition(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	_, c := openEngine(t, embedded.Options{Clock: func() time.Time { return now }}, uniqueMail, withTTL(100))
	write := func(id, partition, rest string) int {
		answer, err := c.UpsertItem(t.Context(), azcosmos.NewPartitionKeyString(partition), []byte(`{"id":"`+id+`","pk":"`+partition+`",`+rest+`}`), nil)
		return clientStatus(t, answer.RawResponse, err)
	}
	require.Equal(t, 201, write("a", "p", `"mail":"a@x","name":{"first":"A","last":"B"}`))
	require.Equal(t, 409, write("b", "p", `"mail":"a@x","name":{"first":"C","last":"D"}`))
	require.Equal(t, 409, write("b", "p", `"mail":"b@x","name":{"first":"A","last":"B"}`), "each key for itself")
	require.Equal(t, 201, write("b", "p", `"mail":"b@x","name":{"first":"A","last":"C"}`))
	require.Equal(t, 201, write("a", "q", `"mail":"a@x","name":{"first":"A","last":"B"}`), "in another partition")
	require.Equal(t, 200, write("a", "p", `"mail":"a@x","name":{"first":"A","last":"B"},"n":1`), "its own key is no conflict")
	require.Equal(t, 409, write("a", "p", `"mail":"b@x","name":{"first":"A","last":"B"}`))
	require.Equal(t, 201, write("d", "p", `"name":{"first":"none"}`))
	require.Equal(t, 409, write("e", "p", `"mail":null,"name":{"first":"other"}`), "missing is null")

	_, err := c.PatchItem(t.Context(), pk, "b", patchOf(func(p *azcosmos.PatchOperations) { p.AppendSet("/mail", "a@x") }), nil)
	require.Equal(t, 409, clientStatus(t, nil, err))
	_, err = c.PatchItem(t.Context(), pk, "b", patchOf(func(p *azcosmos.PatchOperations) { p.AppendSet("/mail", "c@x") }), nil)
	require.NoError(t, err)
	require.Equal(t, 201, write("f", "p", `"mail":"b@x","name":{"first":"F"}`), "the key was given up")

	batch := c.NewTransactionalBatch(pk)
	batch.DeleteItem("a", nil)
	batch.CreateItem([]byte(`{"id":"g","pk":"p","mail":"a@x","name":{"first":"A","last":"B"}}`), nil)
	batch.CreateItem([]byte(`{"id":"h","pk":"p","mail":"a@x"}`), nil)
	answer, err := c.ExecuteTransactionalBatch(t.Context(), batch, nil)
	require.NoError(t, err)
	require.EqualValues(t, 409, answer.OperationResults[2].StatusCode)
	_, err = c.ReadItem(t.Context(), pk, "a", nil)
	require.NoError(t, err)

	now = now.Add(time.Minute)
	require.Equal(t, 409, write("i", "p", `"mail":"a@x"`))
	now = now.Add(time.Minute)
	require.Equal(t, 409, write("i", "p", `"mail":"a@x"`), "until it is swept, an expired document keeps its keys")
	read, err := c.Read(t.Context(), nil)
	require.NoError(t, err)
	read.ContainerProperties.UniqueKeyPolicy = nil
	_, err = c.Replace(t.Context(), *read.ContainerProperties, nil)
	require.Equal(t, 400, clientStatus(t, nil, err), "unique keys stay as they were made")
}
