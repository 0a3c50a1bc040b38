package embedded_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// readPastDamage reads all pages of a query over all partitions. After an error for a damaged document, it resumes with
// the continuation token of the error. It returns the ids of all results, and the partitions of the damaged documents.
func readPastDamage(t *testing.T, c *azcosmos.ContainerClient, query string, size int32) (ids, partitions []string) {
	t.Helper()
	var token *string
	for range 100 {
		page, err := c.NewQueryItemsPager(query, azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{PageSizeHint: size, ContinuationToken: token}).NextPage(t.Context())
		if answer, ok := errors.AsType[*azcore.ResponseError](err); ok {
			require.Equal(t, 500, answer.StatusCode)
			h := answer.RawResponse.Header
			require.Equal(t, "1", h.Get("x-messagehub-damage"))
			partitions = append(partitions, h.Get("x-ms-documentdb-partitionkey"))
			resume := h.Get("x-ms-continuation")
			require.NotEmpty(t, resume)
			token = &resume
			continue
		}
		require.NoError(t, err)
		for _, item := range page.Items {
			var doc struct{ ID string }
			require.NoError(t, json.Unmarshal(item, &doc))
			ids = append(ids, doc.ID)
		}
		if token = page.ContinuationToken; token == nil {
			slices.Sort(ids)
			return ids, partitions
		}
	}
	t.Fatal("the query does not end")
	return nil, nil
}

func TestQuery_ResumesAfterDamagedDocuments(t *testing.T) {
	dir := t.TempDir()
	engine, err := embedded.Open(embedded.Options{Dir: dir})
	require.NoError(t, err)
	c := newContainer(t, engine)
	var want []string
	for i := range 24 { // the documents are distributed over four partitions
		id, partition := fmt.Sprintf("doc%02d", i), fmt.Sprint(i%4)
		_, err := c.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(partition), fmt.Appendf(nil, `{"id":%q,"pk":%q,"n":1}`, id, partition), nil)
		require.NoError(t, err)
		want = append(want, id)
	}
	require.NoError(t, engine.Close())
	image := readImage(t, filepath.Join(dir, disk.FileName))
	for _, damaged := range [][]int{{0}, {23}, {9}, {9, 13}, {4, 5, 6, 7}, {1, 5, 9, 13, 17, 21}} {
		for _, size := range []int32{1, 3, 100} {
			image, left := slices.Clone(image), slices.Clone(want)
			for _, i := range damaged {
				image = bytes.ReplaceAll(image, fmt.Appendf(nil, `{"id":"doc%02d","pk":"%d","n":1`, i, i%4), fmt.Appendf(nil, `{"id":"doc%02d","pk":"%d","n":3`, i, i%4))
				left = slices.DeleteFunc(left, func(id string) bool { return id == fmt.Sprintf("doc%02d", i) })
			}
			dir := t.TempDir()
			writeImage(t, dir, image)
			engine, err := embedded.Open(embedded.Options{Dir: dir})
			require.NoError(t, err)
			ids, partitions := readPastDamage(t, connectThrough(t, engine, engine.Transport()), "SELECT c.id FROM c WHERE c.n > 0", size)
			require.Equal(t, left, ids, "%d damaged, %d a page", damaged, size)
			require.Len(t, partitions, len(damaged))
			require.Contains(t, partitions, fmt.Sprintf(`[%q]`, fmt.Sprint(damaged[0]%4)))
			require.NoError(t, engine.Close())
		}
	}
}

// If an id index entry is damaged and refers to a missing document, a query must report the damage and not hide the
// document.
func TestQuery_ReportsADamagedIDIndex(t *testing.T) {
	dir := t.TempDir()
	engine, err := embedded.Open(embedded.Options{Dir: dir})
	require.NoError(t, err)
	c := newContainer(t, engine)
	for i := range 3 {
		partition := fmt.Sprint(i)
		_, err := c.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(partition), fmt.Appendf(nil, `{"id":"head","pk":%q}`, partition), nil)
		require.NoError(t, err)
	}
	require.NoError(t, engine.Close())
	image := readImage(t, filepath.Join(dir, disk.FileName))
	index := []byte("\x00\x05" + `["1"]head`)
	for _, bit := range []byte{1, 64} {
		changed := slices.Clone(image)
		for at := range len(changed) - len(index) - 8 {
			if bytes.HasPrefix(changed[at:], index) {
				changed[at+len(index)+7] ^= bit
			}
		}
		dir := t.TempDir()
		writeImage(t, dir, changed)
		engine, err := embedded.Open(embedded.Options{Dir: dir})
		require.NoError(t, err)
		ids, partitions := readPastDamage(t, connectThrough(t, engine, engine.Transport()), "SELECT c.id FROM c WHERE c.id = 'head'", 100)
		require.Equal(t, []string{"head", "head"}, ids)
		require.Equal(t, []string{`["1"]`}, partitions)
		require.NoError(t, engine.Close())
	}
}
