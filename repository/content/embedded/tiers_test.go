package embedded_test

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

func TestSetTier_KeepsTheETagAndTheContent(t *testing.T) {
	eachAccountReopened(t, func(t *testing.T, a *embedded.Account, reopen func() *embedded.Account) {
		c := newClient(t, a, "c-c")
		etag := putBlob(t, c, "x", "data")
		got, err := c.NewBlobClient("x").GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "Hot", *got.AccessTier)
		require.True(t, *got.AccessTierInferred)
		_, err = c.NewBlobClient("x").SetTier(t.Context(), "P4", nil)
		requireRefused(t, err, 400, bloberror.InvalidHeaderValue)
		_, err = c.NewBlobClient("none").SetTier(t.Context(), blob.AccessTierCool, nil)
		requireRefused(t, err, 404, bloberror.BlobNotFound)
		_, err = c.NewBlobClient("x").SetTier(t.Context(), blob.AccessTierCool, nil)
		require.NoError(t, err)

		c = newClient(t, reopen(), "c-c")
		got, err = c.NewBlobClient("x").GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "Cool", *got.AccessTier)
		require.False(t, *got.AccessTierInferred)
		require.NotNil(t, got.AccessTierChangeTime)
		require.Equal(t, etag, *got.ETag)
		require.Equal(t, "data", getBlob(t, c, "x"))
		_, err = c.NewBlobClient("x").SetMetadata(t.Context(), map[string]*string{"A": to.Ptr("1")}, nil)
		require.NoError(t, err)
		page, err := c.NewListBlobsFlatPager(nil).NextPage(t.Context())
		require.NoError(t, err)
		require.Equal(t, blob.AccessTierCool, *page.Segment.BlobItems[0].Properties.AccessTier)
		require.Nil(t, page.Segment.BlobItems[0].Properties.AccessTierInferred)

		putBlob(t, c, "x", "new")
		got, err = c.NewBlobClient("x").GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.True(t, *got.AccessTierInferred)
	})
}

func TestArchivedBlob_CannotBeReadOrCopied(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
	c := newClient(t, a, "c-c")
	x := c.NewBlockBlobClient("x")
	_, err := x.Upload(t.Context(), bodyOf("data"), &blockblob.UploadOptions{Tier: to.Ptr(blob.AccessTierArchive)})
	require.NoError(t, err)
	archived, err := x.GetProperties(t.Context(), nil)
	require.NoError(t, err)
	require.NotNil(t, archived.AccessTierChangeTime)

	_, err = x.DownloadStream(t.Context(), nil)
	requireRefused(t, err, 409, bloberror.BlobArchived)
	_, err = x.SetMetadata(t.Context(), nil, nil)
	requireRefused(t, err, 409, bloberror.BlobArchived)
	y := c.NewBlobClient("y")
	_, err = y.StartCopyFromURL(t.Context(), x.URL(), nil)
	requireRefused(t, err, 409, bloberror.BlobArchived)
	_, err = y.StartCopyFromURL(t.Context(), x.URL(), &blob.StartCopyFromURLOptions{Tier: to.Ptr(blob.AccessTierCold)})
	require.NoError(t, err)
	require.Equal(t, "data", getBlob(t, c, "y"))

	setTier := func(tier string) int {
		status, _, _ := sendRequest(t, a, newSignedRequest(t, a, "PUT", "/devstoreaccount1/c-c/x?comp=tier", "", "x-ms-access-tier: "+tier))
		return status
	}
	require.Equal(t, 200, setTier("Archive"))
	require.Equal(t, 202, setTier("Hot"))
	require.Equal(t, "data", getBlob(t, c, "x"))
}

func TestPutBlockList_SetsTheTier(t *testing.T) {
	c := newClient(t, openAccount(t, embedded.Options{Containers: []string{"c-c"}}), "c-c")
	require.NoError(t, stageBlock(c, "x", "1", "data"))
	_, err := c.NewBlockBlobClient("x").CommitBlockList(t.Context(), []string{blockID("1")}, &blockblob.CommitBlockListOptions{Tier: to.Ptr(blob.AccessTierArchive)})
	require.NoError(t, err)
	requireRefused(t, commitBlockList(c, "x", "1"), 409, bloberror.BlobArchived)
	require.NoError(t, uploadBlob(c, "x", "data", ifNoneMatch(azcore.ETag("other"))))
}
