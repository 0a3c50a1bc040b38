package embedded_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

func blockID(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func stageBlock(c *container.Client, name, block, data string) error {
	_, err := c.NewBlockBlobClient(name).StageBlock(context.Background(), blockID(block), bodyOf(data), nil)
	return err
}

func commitBlockList(c *container.Client, name string, blocks ...string) error {
	ids := make([]string, len(blocks))
	for i, b := range blocks {
		ids[i] = blockID(b)
	}
	_, err := c.NewBlockBlobClient(name).CommitBlockList(context.Background(), ids, nil)
	return err
}

func TestUploadStream_IsReturnedUnchanged(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		data := make([]byte, 5<<20+17)
		_, _ = rand.NewChaCha8([32]byte{}).Read(data)
		_, err := c.NewBlockBlobClient("x").UploadStream(t.Context(), bytes.NewReader(data), &blockblob.UploadStreamOptions{BlockSize: 1 << 20, Concurrency: 3})
		require.NoError(t, err)
		require.True(t, string(data) == getBlob(t, c, "x"))
	})
}

func TestPutBlockList_CreatesABlob(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		require.NoError(t, stageBlock(c, "x", "1", "one"))
		require.NoError(t, stageBlock(c, "x", "2", "two"))
		require.NoError(t, stageBlock(c, "x", "3", "three"))
		_, err := c.NewBlobClient("x").GetProperties(t.Context(), nil)
		requireRefused(t, err, 404, bloberror.BlobNotFound)
		require.NoError(t, stageBlock(c, "x", "2", "TWO"), "a block may be replaced")
		require.NoError(t, commitBlockList(c, "x", "2", "1", "2"))
		require.Equal(t, "TWOoneTWO", getBlob(t, c, "x"))
		requireRefused(t, commitBlockList(c, "x", "3"), 400, bloberror.InvalidBlockList)
		require.NoError(t, commitBlockList(c, "x"), "a list may be empty")
		require.Empty(t, getBlob(t, c, "x"))

		for _, write := range []func(){
			func() { putBlob(t, c, "x", "whole") },
			func() { _, err := c.NewBlobClient("x").Delete(t.Context(), nil); require.NoError(t, err) },
		} {
			require.NoError(t, stageBlock(c, "x", "1", "one"))
			write()
			requireRefused(t, commitBlockList(c, "x", "1"), 400, bloberror.InvalidBlockList)
		}

		putBlob(t, c, "there", "old")
		require.NoError(t, stageBlock(c, "there", "1", "new"))
		none := azcore.ETagAny
		_, err = c.NewBlockBlobClient("there").CommitBlockList(t.Context(), []string{blockID("1")}, &blockblob.CommitBlockListOptions{AccessConditions: ifNoneMatch(none)})
		requireRefused(t, err, 409, bloberror.BlobAlreadyExists)
		require.NoError(t, commitBlockList(c, "there", "1"), "a refused list leaves the blocks")
		require.Equal(t, "new", getBlob(t, c, "there"))
	})
}

func TestPutBlock_RefusesInvalidBlocks(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		require.NoError(t, stageBlock(c, "x", "11", "one"))
		requireRefused(t, stageBlock(c, "x", "1", "one"), 400, bloberror.InvalidBlobOrBlock)
		requireRefused(t, stageBlock(c, "x", "22", ""), 400, bloberror.InvalidHeaderValue)
		requireRefused(t, stageBlock(c, "x", strings.Repeat("1", 65), "one"), 400, bloberror.InvalidQueryParameterValue)
		requireRefused(t, stageBlock(newClient(t, a, "none"), "x", "1", "one"), 404, bloberror.ContainerNotFound)
		for list, code := range map[string]string{
			"": "InvalidXmlDocument", "<Block": "InvalidXmlDocument", "<List/>": "InvalidXmlDocument",
			"<BlockList><Latest>%</Latest></BlockList>":                                      "InvalidBlockId",
			"<BlockList><Latest></Latest></BlockList>":                                       "InvalidBlockId",
			"<BlockList><Other>MTE=</Other></BlockList>":                                     "InvalidXmlNodeValue",
			"<BlockList><Committed>MTE=</Committed></BlockList>":                             "InvalidBlockList",
			"<BlockList><Uncommitted>MTI=</Uncommitted></BlockList>":                         "InvalidBlockList",
			"<BlockList><Latest>MTE=</Latest><Latest>MQ==</Latest></BlockList>":              "InvalidBlobOrBlock",
			"<BlockList>" + strings.Repeat("<Latest>MTE=</Latest>", 50_001) + "</BlockList>": "BlockListTooLong",
			strings.Repeat(" ", 8<<20) + "<BlockList/>":                                      "RequestBodyTooLarge",
		} {
			_, code2, _ := sendRequest(t, a, newSignedRequest(t, a, "PUT", "/devstoreaccount1/c-c/x?comp=blocklist", list))
			require.Equal(t, code, code2, "%.100s", list)
		}
		require.NoError(t, commitBlockList(c, "x", "11"))
		require.Equal(t, "one", getBlob(t, c, "x"))
	})
}

func TestUncommittedBlocks_AreBoundedAndExpire(t *testing.T) {
	dir := t.TempDir()
	var now atomic.Int64
	now.Store(time.Now().Unix())
	a := openAccount(t, embedded.Options{Dir: dir, Containers: []string{"c-c"}, MaxUncommitted: 100, MaxBlob: 90, Clock: func() time.Time { return time.Unix(now.Load(), 0) }})
	c := newClient(t, a, "c-c")
	some := strings.Repeat("x", 45)
	require.NoError(t, stageBlock(c, "left", "1", some))
	require.NoError(t, stageBlock(c, "left", "1", some), "the block replaces the first block")
	require.NoError(t, stageBlock(c, "x", "1", some))
	requireRefused(t, stageBlock(c, "x", "2", some), 503, bloberror.ServerBusy)
	requireRefused(t, commitBlockList(c, "x", "1", "1", "1"), 413, bloberror.RequestBodyTooLarge)
	require.NoError(t, commitBlockList(c, "x", "1"))
	require.NoError(t, stageBlock(c, "y", "1", some), "there is room again")
	requireRefused(t, stageBlock(c, "y", "2", some), 503, bloberror.ServerBusy)
	now.Add(int64(2 * time.Hour / time.Second))
	require.NoError(t, stageBlock(c, "y", "2", some), "the expired blocks were removed")
	requireRefused(t, commitBlockList(c, "left", "1"), 400, bloberror.InvalidBlockList)
	requireRefused(t, uploadBlob(c, "z", strings.Repeat("x", 91), nil), 413, bloberror.RequestBodyTooLarge)
	requireRefused(t, stageBlock(c, "z", "1", strings.Repeat("x", 91)), 503, bloberror.ServerBusy)

	drafts, err := os.ReadDir(filepath.Join(dir, "+unfinished"))
	require.NoError(t, err)
	require.Len(t, drafts, 1, "only the last block of y is left")
	require.NoError(t, a.Close())
	drafts, err = os.ReadDir(filepath.Join(dir, "+unfinished"))
	require.NoError(t, err)
	require.Empty(t, drafts)
}

func TestPutBlockList_CommitsConcurrently(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		done := make(chan error)
		for w := range 8 {
			go func() {
				data := strings.Repeat(fmt.Sprint(w), 50_000)
				_, err := c.NewBlockBlobClient("x").UploadStream(t.Context(), strings.NewReader(data), &blockblob.UploadStreamOptions{BlockSize: 10_000, Concurrency: 2})
				if bloberror.HasCode(err, bloberror.InvalidBlockList) {
					err = nil // another upload was committed first, which removed these blocks
				}
				done <- err
			}()
		}
		for range 8 {
			require.NoError(t, <-done)
		}
		got := getBlob(t, c, "x")
		require.Len(t, got, 50_000)
		require.Equal(t, strings.Repeat(got[:1], 50_000), got, "all blocks are blocks of one writer")
	})
}
