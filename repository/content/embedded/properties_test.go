package embedded_test

import (
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

// eachAccountReopened is eachAccount for tests that reopen the account. reopen closes and opens an account in a folder;
// it returns an account in memory unchanged.
func eachAccountReopened(t *testing.T, test func(t *testing.T, a *embedded.Account, reopen func() *embedded.Account)) {
	t.Run("in memory", func(t *testing.T) {
		a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
		test(t, a, func() *embedded.Account { return a })
	})
	t.Run("in a folder", func(t *testing.T) {
		dir := t.TempDir()
		a := openAccount(t, embedded.Options{Dir: dir, Containers: []string{"c-c"}})
		test(t, a, func() *embedded.Account {
			require.NoError(t, a.Close())
			return openAccount(t, embedded.Options{Dir: dir})
		})
	})
}

func TestSetMetadata_KeepsTheContentAndProperties(t *testing.T) {
	eachAccountReopened(t, func(t *testing.T, a *embedded.Account, reopen func() *embedded.Account) {
		c := newClient(t, a, "c-c")
		x := c.NewBlobClient("x")
		require.NoError(t, stageBlock(c, "x", "1", "data"))
		require.NoError(t, commitBlockList(c, "x", "1"))
		before, err := x.GetProperties(t.Context(), nil)
		require.NoError(t, err)
		_, err = x.SetHTTPHeaders(t.Context(), blob.HTTPHeaders{BlobContentType: to.Ptr("a/b"), BlobCacheControl: to.Ptr("none")}, nil)
		require.NoError(t, err)
		own := []byte("own hash")
		_, err = x.SetHTTPHeaders(t.Context(), blob.HTTPHeaders{BlobContentType: to.Ptr("a/b"), BlobCacheControl: to.Ptr("none"), BlobContentMD5: own}, nil)
		require.NoError(t, err, "as on Azure, the hash need not be an MD5")
		hashed, err := x.GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, own, hashed.ContentMD5)
		_, err = x.SetMetadata(t.Context(), map[string]*string{"Key": to.Ptr("1")}, &blob.SetMetadataOptions{AccessConditions: ifMatch(*before.ETag)})
		requireRefused(t, err, 412, bloberror.ConditionNotMet)
		set, err := x.SetMetadata(t.Context(), map[string]*string{"Key": to.Ptr("1")}, nil)
		require.NoError(t, err)
		require.NotEqual(t, *before.ETag, *set.ETag)
		require.False(t, *set.IsServerEncrypted)

		c = newClient(t, reopen(), "c-c")
		x = c.NewBlobClient("x")
		after, err := x.GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, *set.ETag, *after.ETag)
		require.Equal(t, *before.CreationTime, *after.CreationTime)
		require.Equal(t, "a/b", *after.ContentType)
		require.Equal(t, "none", *after.CacheControl)
		require.Equal(t, map[string]*string{"Key": to.Ptr("1")}, after.Metadata)
		require.Equal(t, "data", getBlob(t, c, "x"))
		committed, _ := listedBlocks(t, c, "x")
		require.Equal(t, "1:4", committed)

		_, err = x.SetHTTPHeaders(t.Context(), blob.HTTPHeaders{BlobContentType: to.Ptr("c/d")}, nil)
		require.NoError(t, err)
		after, err = x.GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "c/d", *after.ContentType)
		require.Nil(t, after.CacheControl, "a property that the request does not name is removed")
		require.Equal(t, map[string]*string{"Key": to.Ptr("1")}, after.Metadata)
		_, err = x.SetHTTPHeaders(t.Context(), blob.HTTPHeaders{}, nil)
		require.NoError(t, err)
		after, err = x.GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Nil(t, after.ContentType)
		_, err = x.SetMetadata(t.Context(), nil, nil)
		require.NoError(t, err)
		after, err = x.GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, after.Metadata)
		_, err = c.NewBlobClient("none").SetMetadata(t.Context(), nil, nil)
		requireRefused(t, err, 404, bloberror.BlobNotFound)
	})
}

// SetMetadata copies the content. If another request replaces the content meanwhile, the old content must not come
// back.
func TestSetMetadata_KeepsConcurrentWrites(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		putBlob(t, c, "x", "0")
		var changing sync.WaitGroup
		done := make(chan struct{})
		changing.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_, _ = c.NewBlobClient("x").SetMetadata(t.Context(), map[string]*string{"A": to.Ptr("1")}, nil)
				}
			}
		})
		for i := range 50 {
			text := string(rune('a' + i%26))
			putBlob(t, c, "x", text)
			require.Equal(t, text, getBlob(t, c, "x"))
		}
		close(done)
		changing.Wait()
	})
}

func TestContainer_ChangesItsMetadata(t *testing.T) {
	eachAccountReopened(t, func(t *testing.T, a *embedded.Account, reopen func() *embedded.Account) {
		c := newClient(t, a, "c-c")
		putBlob(t, c, "x", "data")
		before, err := c.GetProperties(t.Context(), nil)
		require.NoError(t, err)
		_, err = c.SetMetadata(t.Context(), &container.SetMetadataOptions{Metadata: map[string]*string{"Key": to.Ptr("1")}})
		require.NoError(t, err)
		c = newClient(t, reopen(), "c-c")
		after, err := c.GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, map[string]*string{"Key": to.Ptr("1")}, after.Metadata)
		require.NotEqual(t, *before.ETag, *after.ETag)
		require.Equal(t, "data", getBlob(t, c, "x"))
		_, err = newClient(t, a, "none").SetMetadata(t.Context(), nil)
		if err == nil {
			t.Fatal("the container does not exist")
		}
	})
}

func TestCopy_CopiesWithinTheAccount(t *testing.T) {
	eachAccountReopened(t, func(t *testing.T, a *embedded.Account, reopen func() *embedded.Account) {
		c := newClient(t, a, "c-c")
		require.NoError(t, stageBlock(c, "a b/æ", "1", "data"))
		require.NoError(t, commitBlockList(c, "a b/æ", "1"))
		source := c.NewBlobClient("a b/æ")
		_, err := source.SetMetadata(t.Context(), map[string]*string{"Key": to.Ptr("1")}, nil)
		require.NoError(t, err)
		other := newClient(t, a, "other")
		_, err = other.Create(t.Context(), nil)
		require.NoError(t, err)

		copied, err := other.NewBlobClient("to").StartCopyFromURL(t.Context(), source.URL(), nil)
		require.NoError(t, err)
		require.Equal(t, blob.CopyStatusTypeSuccess, *copied.CopyStatus)
		synced, err := other.NewBlobClient("synced").CopyFromURL(t.Context(), source.URL(), &blob.CopyFromURLOptions{Metadata: map[string]*string{"Other": to.Ptr("2")}})
		require.NoError(t, err)
		require.NotEmpty(t, *synced.ETag)
		none := azcore.ETagAny
		_, err = other.NewBlobClient("to").StartCopyFromURL(t.Context(), source.URL(), &blob.StartCopyFromURLOptions{AccessConditions: ifNoneMatch(none)})
		requireRefused(t, err, 409, bloberror.BlobAlreadyExists)
		_, err = other.NewBlobClient("to").StartCopyFromURL(t.Context(), source.URL(), &blob.StartCopyFromURLOptions{
			SourceModifiedAccessConditions: &blob.SourceModifiedAccessConditions{SourceIfMatch: to.Ptr(azcore.ETag("1"))},
		})
		requireRefused(t, err, 412, bloberror.SourceConditionNotMet)
		_, err = other.NewBlobClient("to").StartCopyFromURL(t.Context(), source.URL()+"none", nil)
		requireRefused(t, err, 404, bloberror.CannotVerifyCopySource)
		_, err = other.NewBlobClient("to").StartCopyFromURL(t.Context(), "http://example.org/devstoreaccount1/c-c/x", nil)
		requireRefused(t, err, 501, "NotImplemented")
		_, err = other.NewBlobClient("to").AbortCopyFromURL(t.Context(), "copy", nil)
		requireRefused(t, err, 400, bloberror.InvalidQueryParameterValue)
		_, err = other.NewBlobClient("to").AbortCopyFromURL(t.Context(), *copied.CopyID, nil)
		requireRefused(t, err, 409, bloberror.NoPendingCopyOperation)

		a = reopen()
		other = newClient(t, a, "other")
		require.Equal(t, "data", getBlob(t, other, "to"))
		got, err := other.NewBlobClient("to").GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, *copied.CopyID, *got.CopyID)
		require.Equal(t, "4/4", *got.CopyProgress)
		require.Equal(t, source.URL(), *got.CopySource)
		require.Equal(t, map[string]*string{"Key": to.Ptr("1")}, got.Metadata)
		committed, _ := listedBlocks(t, other, "to")
		require.Equal(t, "1:4", committed)
		got, err = other.NewBlobClient("synced").GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, map[string]*string{"Other": to.Ptr("2")}, got.Metadata)
		putBlob(t, other, "to", "new")
		got, err = other.NewBlobClient("to").GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Nil(t, got.CopyID, "the copy is overwritten")
	})
}
