package embedded_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

// listedBlocks returns the committed and the uncommitted blocks of a blob. Each block is formatted as ID:SIZE.
func listedBlocks(t *testing.T, c *container.Client, name string) (committed, uncommitted string) {
	t.Helper()
	list, err := c.NewBlockBlobClient(name).GetBlockList(t.Context(), blockblob.BlockListTypeAll, nil)
	require.NoError(t, err)
	text := func(blocks []*blockblob.Block) string {
		var all []string
		for _, b := range blocks {
			id, err := base64.StdEncoding.DecodeString(*b.Name)
			require.NoError(t, err)
			all = append(all, fmt.Sprintf("%s:%d", id, *b.Size))
		}
		return strings.Join(all, " ")
	}
	return text(list.CommittedBlocks), text(list.UncommittedBlocks)
}

func TestPutBlockList_KeepsCommittedBlocks(t *testing.T) {
	dir := t.TempDir()
	for name, dir := range map[string]string{"in memory": "", "in a folder": dir} {
		t.Run(name, func(t *testing.T) {
			a := openAccount(t, embedded.Options{Dir: dir, Containers: []string{"c-c"}})
			c := newClient(t, a, "c-c")
			for _, id := range []string{"1", "2", "3"} {
				require.NoError(t, stageBlock(c, "x", id, "old"+strings.Repeat(id, 3)))
			}
			require.NoError(t, commitBlockList(c, "x", "3", "1", "2"))
			if dir != "" {
				require.NoError(t, a.Close())
				a = openAccount(t, embedded.Options{Dir: dir})
				c = newClient(t, a, "c-c")
			}
			require.NoError(t, stageBlock(c, "x", "2", "new2"))
			committed, uncommitted := listedBlocks(t, c, "x")
			require.Equal(t, "3:6 1:6 2:6", committed)
			require.Equal(t, "2:4", uncommitted)

			list := func(blocks ...string) (int, string) {
				var text strings.Builder
				for i := 0; i < len(blocks); i += 2 {
					fmt.Fprintf(&text, "<%s>%s</%[1]s>", blocks[i], blockID(blocks[i+1]))
				}
				status, code, _ := sendRequest(t, a, newSignedRequest(t, a, "PUT", "/devstoreaccount1/c-c/x?comp=blocklist", "<BlockList>"+text.String()+"</BlockList>"))
				return status, code
			}
			for _, refused := range [][]string{{"Uncommitted", "1"}, {"Latest", "4"}, {"Committed", "4"}} {
				status, code := list(refused...)
				require.Equal(t, 400, status)
				require.Equal(t, "InvalidBlockList", code)
			}
			status, code := list("Latest", "2", "Committed", "2", "Latest", "1", "Uncommitted", "2")
			require.Equal(t, 201, status, code)
			require.Equal(t, "new2old222old111new2", getBlob(t, c, "x"))
			committed, uncommitted = listedBlocks(t, c, "x")
			require.Equal(t, "2:4 2:6 1:6 2:4", committed)
			require.Empty(t, uncommitted)

			putBlob(t, c, "x", "whole")
			committed, _ = listedBlocks(t, c, "x")
			require.Empty(t, committed, "the blob has no blocks")
			requireRefused(t, commitBlockList(c, "x", "1"), 400, bloberror.InvalidBlockList)
			_, err := c.NewBlockBlobClient("none").GetBlockList(t.Context(), blockblob.BlockListTypeAll, nil)
			requireRefused(t, err, 404, bloberror.BlobNotFound)
		})
	}
}

// If the block list is too long for the file of the blob, the blob must still have its complete content. Later lists
// cannot name its blocks.
func TestPutBlockList_OmitsAListThatIsTooLong(t *testing.T) {
	dir := t.TempDir()
	a := openAccount(t, embedded.Options{Dir: dir, Containers: []string{"c-c"}})
	c := newClient(t, a, "c-c")
	id := blockID(strings.Repeat("i", 64))
	_, err := c.NewBlockBlobClient("x").StageBlock(t.Context(), id, bodyOf("1"), nil)
	require.NoError(t, err)
	list := "<BlockList>" + strings.Repeat("<Latest>"+id+"</Latest>", 2_000) + "</BlockList>"
	status, code, _ := sendRequest(t, a, newSignedRequest(t, a, "PUT", "/devstoreaccount1/c-c/x?comp=blocklist", list))
	require.Equal(t, 201, status, code)
	require.NoError(t, a.Close())
	a = openAccount(t, embedded.Options{Dir: dir})
	c = newClient(t, a, "c-c")
	require.Equal(t, strings.Repeat("1", 2_000), getBlob(t, c, "x"))
	status, code, _ = sendRequest(t, a, newSignedRequest(t, a, "PUT", "/devstoreaccount1/c-c/x?comp=blocklist", list))
	require.Equal(t, 501, status, code)
	status, code, _ = sendRequest(t, a, newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c/x?comp=blocklist", ""))
	require.Equal(t, 501, status, code)
}
