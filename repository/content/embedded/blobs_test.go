package embedded_test

import (
	"bytes"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

func TestContainer_IsCreatedOnceAndHasProperties(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "made")
		_, err := c.GetProperties(t.Context(), nil)
		requireRefused(t, err, 404, bloberror.ContainerNotFound)
		value := "x"
		made, err := c.Create(t.Context(), &container.CreateOptions{Metadata: map[string]*string{"owner": &value}})
		require.NoError(t, err)
		_, err = c.Create(t.Context(), nil)
		requireRefused(t, err, 409, bloberror.ContainerAlreadyExists)
		got, err := c.GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, made.ETag, got.ETag)
		require.Equal(t, "x", *got.Metadata["Owner"])
		require.NotEmpty(t, *got.RequestID)
		_, err = newClient(t, a, "c-c").GetProperties(t.Context(), nil)
		require.NoError(t, err, "the container was created when the account was opened")
		for _, name := range []string{"A-b-c", "a--b", "-abc", "abc-", "a_b", "$root", "a.b"} {
			_, err := newClient(t, a, name).Create(t.Context(), nil)
			requireRefused(t, err, 400, bloberror.InvalidResourceName)
		}
		for _, name := range []string{"ab", strings.Repeat("a", 64)} {
			_, err := newClient(t, a, name).Create(t.Context(), nil)
			requireRefused(t, err, 400, bloberror.OutOfRangeInput)
		}
		_, err = newClient(t, a, "$logs").GetProperties(t.Context(), nil)
		requireRefused(t, err, 404, bloberror.ContainerNotFound)
	})
}

func TestBlob_IsReturnedWithItsProperties(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		began := time.Now().Add(-time.Second)
		kind, language, how, cache, value := "application/xml", "da", "attachment", "no-store", "7, 8"
		sum := md5.Sum([]byte("0123456789"))
		made, err := c.NewBlockBlobClient("a/b").Upload(t.Context(), bodyOf("0123456789"), &blockblob.UploadOptions{
			HTTPHeaders: &blob.HTTPHeaders{
				BlobContentType: &kind, BlobContentLanguage: &language, BlobContentDisposition: &how, BlobCacheControl: &cache, BlobContentMD5: sum[:],
			},
			Metadata:                map[string]*string{"A_b": &value, "a1": &value, "ab": &value}, // clients sort these names in two different orders
			TransactionalValidation: blob.TransferValidationTypeMD5(sum[:]),
		})
		require.NoError(t, err)
		require.Equal(t, sum[:], made.ContentMD5)
		got, err := c.NewBlobClient("a/b").GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, *made.ETag, *got.ETag)
		require.Equal(t, int64(10), *got.ContentLength)
		require.Equal(t, []any{kind, language, how, cache}, []any{*got.ContentType, *got.ContentLanguage, *got.ContentDisposition, *got.CacheControl})
		require.Equal(t, sum[:], got.ContentMD5)
		require.Len(t, got.Metadata, 3)
		require.Equal(t, "7, 8", *got.Metadata["A_b"])
		require.True(t, began.Before(*got.LastModified) && began.Before(*got.CreationTime))
		require.Equal(t, blob.BlobTypeBlockBlob, *got.BlobType)
		require.Equal(t, "0123456789", getBlob(t, c, "a/b"))

		page, err := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Metadata: true}}).NextPage(t.Context())
		require.NoError(t, err)
		require.Len(t, page.Segment.BlobItems, 1)
		item := page.Segment.BlobItems[0]
		require.Equal(t, "a/b", *item.Name)
		require.Equal(t, int64(10), *item.Properties.ContentLength)
		require.Equal(t, strings.Trim(string(*made.ETag), `"`), string(*item.Properties.ETag))
		require.Equal(t, sum[:], item.Properties.ContentMD5)
		require.Equal(t, "7, 8", *item.Metadata["a_b"])

		_, err = c.NewBlobClient("a/b").Delete(t.Context(), nil)
		require.NoError(t, err)
		for _, name := range []string{"a/b", "a"} {
			_, err = c.NewBlobClient(name).Delete(t.Context(), nil)
			requireRefused(t, err, 404, bloberror.BlobNotFound)
			_, err = c.NewBlobClient(name).GetProperties(t.Context(), nil)
			requireRefused(t, err, 404, bloberror.BlobNotFound)
			_, err = c.NewBlobClient(name).DownloadStream(t.Context(), nil)
			requireRefused(t, err, 404, bloberror.BlobNotFound)
		}
	})
}

func TestPutBlob_RefusesContentWithAWrongMD5(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		wrong := md5.Sum([]byte("else"))
		_, err := c.NewBlockBlobClient("x").Upload(t.Context(), bodyOf("data"), &blockblob.UploadOptions{TransactionalValidation: blob.TransferValidationTypeMD5(wrong[:])})
		requireRefused(t, err, 400, bloberror.MD5Mismatch)
		_, err = c.NewBlockBlobClient("x").Upload(t.Context(), bodyOf("data"), &blockblob.UploadOptions{HTTPHeaders: &blob.HTTPHeaders{BlobContentMD5: wrong[:]}})
		requireRefused(t, err, 400, bloberror.MD5Mismatch)
		r := newSignedRequest(t, a, "PUT", "/devstoreaccount1/c-c/x", "data", "x-ms-blob-type: BlockBlob", "Content-MD5: eA==")
		_, code, _ := sendRequest(t, a, r)
		require.Equal(t, "InvalidMd5", code)
		r = newSignedRequest(t, a, "PUT", "/devstoreaccount1/c-c/x", "data", "x-ms-blob-type: BlockBlob")
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader("da"), errReader{}))
		_, code, _ = sendRequest(t, a, r)
		require.Equal(t, "InvalidInput", code)
		r = newSignedRequest(t, a, "PUT", "/devstoreaccount1/c-c/x", "data", "x-ms-blob-type: BlockBlob")
		r.Body = io.NopCloser(strings.NewReader("da"))
		_, code, _ = sendRequest(t, a, r)
		require.Equal(t, "InvalidInput", code)
		_, err = c.NewBlobClient("x").GetProperties(t.Context(), nil)
		requireRefused(t, err, 404, bloberror.BlobNotFound)
	})
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("the connection broke") }

func TestConditions_AreCheckedByEachRequest(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		missing := uploadBlob(c, "x", "0", ifMatch(azcore.ETagAny))
		requireRefused(t, missing, 412, bloberror.ConditionNotMet)
		requireRefused(t, uploadBlob(c, "x", "0", ifMatch(`"0x1"`)), 412, bloberror.ConditionNotMet)
		require.NoError(t, uploadBlob(c, "x", "1", ifNoneMatch(azcore.ETagAny)))
		requireRefused(t, uploadBlob(c, "x", "2", ifNoneMatch(azcore.ETagAny)), 409, bloberror.BlobAlreadyExists)
		first := putBlob(t, c, "x", "3")
		second := putBlob(t, c, "x", "3")
		require.NotEqual(t, first, second, "the same content is another version")
		requireRefused(t, uploadBlob(c, "x", "4", ifMatch(first)), 412, bloberror.ConditionNotMet)
		requireRefused(t, uploadBlob(c, "x", "4", ifNoneMatch(second)), 412, bloberror.ConditionNotMet)
		require.NoError(t, uploadBlob(c, "x", "5", ifMatch(second)))
		require.NoError(t, uploadBlob(c, "x", "6", ifNoneMatch(second)))
		third := putBlob(t, c, "x", "7")

		x := c.NewBlobClient("x")
		_, err := x.DownloadStream(t.Context(), &blob.DownloadStreamOptions{AccessConditions: ifMatch(second)})
		requireRefused(t, err, 412, bloberror.ConditionNotMet)
		_, err = x.GetProperties(t.Context(), &blob.GetPropertiesOptions{AccessConditions: ifNoneMatch(third)})
		requireRefused(t, err, 304, bloberror.ConditionNotMet)
		_, err = x.GetProperties(t.Context(), &blob.GetPropertiesOptions{AccessConditions: ifMatch(third)})
		require.NoError(t, err)
		past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		for _, tc := range []struct {
			when   blob.ModifiedAccessConditions
			status int
		}{
			{blob.ModifiedAccessConditions{IfModifiedSince: &past}, 200},
			{blob.ModifiedAccessConditions{IfModifiedSince: &future}, 304},
			{blob.ModifiedAccessConditions{IfUnmodifiedSince: &future}, 200},
			{blob.ModifiedAccessConditions{IfUnmodifiedSince: &past}, 412},
		} {
			_, err := x.GetProperties(t.Context(), &blob.GetPropertiesOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &tc.when}})
			if tc.status == 200 {
				require.NoError(t, err)
			} else {
				requireRefused(t, err, tc.status, bloberror.ConditionNotMet)
			}
		}
		_, err = x.Delete(t.Context(), &blob.DeleteOptions{AccessConditions: ifMatch(second)})
		requireRefused(t, err, 412, bloberror.ConditionNotMet)
		_, err = x.Delete(t.Context(), &blob.DeleteOptions{AccessConditions: ifMatch(third)})
		require.NoError(t, err)
	})
}

func TestPutBlob_SucceedsOnceForWritersWithTheSameETag(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		etag := putBlob(t, c, "x", "old")
		for _, when := range []*blob.AccessConditions{ifMatch(etag), ifNoneMatch(azcore.ETagAny)} {
			name := map[bool]string{true: "x", false: "new"}[when.ModifiedAccessConditions.IfMatch != nil]
			var won atomic.Int64
			var writers sync.WaitGroup
			for range 8 {
				writers.Go(func() {
					if uploadBlob(c, name, "new", when) == nil {
						won.Add(1)
					}
				})
			}
			writers.Wait()
			require.Equal(t, int64(1), won.Load())
			require.Equal(t, "new", getBlob(t, c, name))
		}
	})
}

func TestGetBlob_ReturnsTheRequestedRange(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		putBlob(t, c, "x", "0123456789")
		putBlob(t, c, "empty", "")
		require.Empty(t, getBlob(t, c, "empty"))
		for _, tc := range []struct {
			header, want, contentRange, code string
		}{
			{"Range: bytes=0-3", "0123", "bytes 0-3/10", ""},
			{"x-ms-range: bytes=0-3", "0123", "bytes 0-3/10", ""},
			{"x-ms-range: bytes=4-", "456789", "bytes 4-9/10", ""},
			{"x-ms-range: bytes=9-9", "9", "bytes 9-9/10", ""},
			{"x-ms-range: bytes=8-1000", "89", "bytes 8-9/10", ""},
			{"x-ms-range: bytes=10-10", "", "bytes */10", "InvalidRange"},
			{"x-ms-range: bytes=9223372036854775807-", "", "bytes */10", "InvalidRange"},
			{"x-ms-range: bytes=9223372036854775808-", "", "", "InvalidHeaderValue"},
			{"x-ms-range: bytes=3-2", "", "", "InvalidHeaderValue"},
			{"x-ms-range: bytes=-3", "", "", "InvalidHeaderValue"},
			{"x-ms-range: bytes=0-1,3-4", "", "", "InvalidHeaderValue"},
			{"x-ms-range: lines=0-1", "", "", "InvalidHeaderValue"},
		} {
			status, code, resp := sendRequest(t, a, newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c/x", "", tc.header))
			require.Equal(t, tc.code, code, tc.header)
			require.Equal(t, tc.contentRange, resp.Header.Get("Content-Range"), tc.header)
			if tc.code == "" {
				require.Equal(t, http.StatusPartialContent, status)
				data, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, tc.want, string(data))
				require.Equal(t, fmt.Sprint(len(data)), resp.Header.Get("Content-Length"))
			}
		}
		for _, header := range []string{"Range: bytes=0--1", "Range: bytes=-3", "Range: lines=0-1"} {
			status, _, resp := sendRequest(t, a, newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c/x", "", header))
			require.Equal(t, http.StatusOK, status, header)
			require.Empty(t, resp.Header.Get("Content-Range"), header)
			require.Equal(t, "10", resp.Header.Get("Content-Length"), header)
		}
		both := newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c/x", "", "Range: bytes=0-3", "x-ms-range: bytes=4-5")
		_, _, resp := sendRequest(t, a, both)
		require.Equal(t, "bytes 4-5/10", resp.Header.Get("Content-Range"), "x-ms-range overrides Range")
		_, code, _ := sendRequest(t, a, newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c/empty", "", "Range: bytes=0-"))
		require.Equal(t, "InvalidRange", code)
	})
}

func TestGetBlob_ReadsAnOldVersionToItsEnd(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		data := make([]byte, 1<<20)
		_, _ = rand.NewChaCha8([32]byte{}).Read(data)
		for _, change := range []func(){
			func() { putBlob(t, c, "x", "new") },
			func() { _, err := c.NewBlobClient("x").Delete(t.Context(), nil); require.NoError(t, err) },
		} {
			putBlob(t, c, "x", string(data))
			got, err := c.NewBlobClient("x").DownloadStream(t.Context(), nil)
			require.NoError(t, err)
			change()
			read, err := io.ReadAll(got.Body)
			require.NoError(t, err)
			require.NoError(t, got.Body.Close())
			require.True(t, bytes.Equal(data, read))
		}
	})
}

func TestListBlobs_ListsAllNamesInOrder(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		want := []string{"a", "a.b", "a/1", "a/2", "a/3", "a/<&>\"'", "a/ x", "a/é", "ab"}
		for _, name := range want {
			putBlob(t, c, name, name)
		}
		want = []string{"a/ x", "a/1", "a/2", "a/3", "a/<&>\"'", "a/é"}
		for _, size := range []int32{1, 2, 3, 6, 7, 5000} {
			prefix := "a/"
			var got []string
			pages := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix, MaxResults: &size})
			for pages.More() {
				page, err := pages.NextPage(t.Context())
				require.NoError(t, err)
				require.LessOrEqual(t, len(page.Segment.BlobItems), int(size))
				for _, item := range page.Segment.BlobItems {
					got = append(got, *item.Name)
				}
			}
			require.Equal(t, want, got)
		}
		for _, query := range []string{"maxresults=0", "maxresults=x", "include=permissions"} {
			status, code, _ := sendRequest(t, a, newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c?restype=container&comp=list&"+query, ""))
			require.GreaterOrEqual(t, status, 400, query)
			require.NotEmpty(t, code)
		}
		_, err := newClient(t, a, "none").NewListBlobsFlatPager(nil).NextPage(t.Context())
		requireRefused(t, err, 404, bloberror.ContainerNotFound)
	})
}
