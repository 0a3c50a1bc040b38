package embedded_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

func newServiceClient(t *testing.T, a *embedded.Account) *service.Client {
	t.Helper()
	key, err := service.NewSharedKeyCredential(a.Name(), a.Key())
	require.NoError(t, err)
	c, err := service.NewClientWithSharedKeyCredential(a.Endpoint(), key, &service.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: a.Transport(), Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	require.NoError(t, err)
	return c
}

// listContainers returns the names of all containers with a prefix. size is the number of containers in a page.
func listContainers(t *testing.T, a *embedded.Account, prefix string, size int32) (names []string) {
	t.Helper()
	pages := newServiceClient(t, a).NewListContainersPager(&service.ListContainersOptions{
		Prefix: &prefix, MaxResults: &size, Include: service.ListContainersInclude{Metadata: true},
	})
	for pages.More() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.ContainerItems), int(size))
		for _, item := range page.ContainerItems {
			require.NotEmpty(t, *item.Properties.ETag)
			name := *item.Name
			if m := item.Metadata["key"]; m != nil {
				name += "=" + *m
			}
			names = append(names, name)
		}
	}
	return names
}

func TestListContainers_ListsContainersInOrder(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		for _, name := range []string{"b-2", "a-1", "b-1", "c-1"} {
			_, err := newClient(t, a, name).Create(t.Context(), &container.CreateOptions{Metadata: map[string]*string{"key": to.Ptr(name)}})
			require.NoError(t, err)
		}
		for _, size := range []int32{1, 2, 5} {
			require.Equal(t, []string{"a-1=a-1", "b-1=b-1", "b-2=b-2", "c-1=c-1", "c-c"}, listContainers(t, a, "", size))
			require.Equal(t, []string{"b-1=b-1", "b-2=b-2"}, listContainers(t, a, "b-", size))
		}
	})
}

func TestDeleteContainer_RemovesItsBlobs(t *testing.T) {
	eachAccountReopened(t, func(t *testing.T, a *embedded.Account, reopen func() *embedded.Account) {
		c := newClient(t, a, "c-d")
		_, err := c.Create(t.Context(), nil)
		require.NoError(t, err)
		putBlob(t, c, "x", "data")
		require.NoError(t, stageBlock(c, "y", "1", "data"))
		reading, err := c.NewBlobClient("x").DownloadStream(t.Context(), nil)
		require.NoError(t, err)
		_, err = c.Delete(t.Context(), nil)
		require.NoError(t, err)
		_, err = c.Delete(t.Context(), nil)
		requireRefused(t, err, 404, bloberror.ContainerNotFound)
		require.Equal(t, 404, statusOf(t, a, "c-d/x"))
		requireRefused(t, uploadBlob(c, "x", "1", nil), 404, bloberror.ContainerNotFound)
		data := make([]byte, 4)
		_, err = reading.Body.Read(data)
		require.NoError(t, err)
		require.Equal(t, "data", string(data), "a reader reads to the end")
		require.NoError(t, reading.Body.Close())

		_, err = c.GetAccessPolicy(t.Context(), nil)
		requireRefused(t, err, 404, bloberror.ContainerNotFound)
		_, err = c.Create(t.Context(), nil)
		require.NoError(t, err, "it can be created again")
		policies, err := c.GetAccessPolicy(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, policies.SignedIdentifiers)
		requireRefused(t, commitBlockList(c, "y", "1"), 400, bloberror.InvalidBlockList)
		_, err = c.Delete(t.Context(), nil)
		require.NoError(t, err)
		a = reopen()
		require.Equal(t, []string{"c-c"}, listContainers(t, a, "", 5))
		require.Equal(t, 404, statusOf(t, a, "c-d/x"))
	})
}

// The files of a deleted container must remain until a hold is released, because a backup may still read them.
func TestDeleteContainer_KeepsItsFilesDuringAHold(t *testing.T) {
	dir := t.TempDir()
	a := openAccount(t, embedded.Options{Dir: dir, Containers: []string{"c-c"}})
	c := newClient(t, a, "c-c")
	putBlob(t, c, "x", "data")
	hold, err := a.Hold()
	require.NoError(t, err)
	_, err = c.Delete(t.Context(), nil)
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(dir, "c-c"))
	held, err := filepath.Glob(filepath.Join(dir, "+held", "*", "*"))
	require.NoError(t, err)
	require.Len(t, held, 2)
	require.NoError(t, hold.Release())
	require.NoDirExists(t, filepath.Join(dir, "+held"))
	drafts, err := os.ReadDir(filepath.Join(dir, "+unfinished"))
	require.NoError(t, err)
	require.Empty(t, drafts)
}

// Blobs are written while their container is deleted. They must be deleted with it, and must not appear in a new
// container of the same name.
func TestDeleteContainer_RemovesBlobsOfConcurrentWrites(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		for range 20 {
			var writing sync.WaitGroup
			for i := range 4 {
				writing.Go(func() { _ = uploadBlob(c, fmt.Sprint(i), "data", nil) })
			}
			_, err := c.Delete(t.Context(), nil)
			require.NoError(t, err)
			writing.Wait()
			_, err = c.Create(t.Context(), nil)
			require.NoError(t, err)
			for i := range 4 {
				require.Equal(t, 404, statusOf(t, a, fmt.Sprint("c-c/", i)))
			}
		}
	})
}

func TestListBlobs_ReturnsTheLastEntryAsMarker(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-a", "c-b", "c-c", "d-d"}})
	c := newClient(t, a, "c-c")
	for _, name := range []string{"a", "b/1", "b/2", "c"} {
		putBlob(t, c, name, "")
	}
	for _, tc := range []struct{ path, want string }{
		{"/c-c?restype=container&comp=list&maxresults=2", "<Name>a</Name> <Name>b/1</Name> <NextMarker>b/1</NextMarker>"},
		{"/c-c?restype=container&comp=list&maxresults=2&marker=b/1", "<Name>b/2</Name> <Name>c</Name> <NextMarker></NextMarker>"},
		{"/c-c?restype=container&comp=list&maxresults=2&delimiter=/", "<Name>a</Name> <Name>b/</Name> <NextMarker>b/</NextMarker>"},
		{"/c-c?restype=container&comp=list&maxresults=2&delimiter=/&marker=b/", "<Name>c</Name> <NextMarker></NextMarker>"},
		{"/c-c?restype=container&comp=list&prefix=b/&marker=a", "<Name>b/1</Name> <Name>b/2</Name> <NextMarker></NextMarker>"},
		{"/?comp=list&maxresults=1&marker=c-a", "<Name>c-b</Name> <NextMarker>c-b</NextMarker>"},
		{"/?comp=list&prefix=c&marker=c-b", "<Name>c-c</Name> <NextMarker></NextMarker>"},
	} {
		_, _, resp := sendRequest(t, a, newSignedRequest(t, a, "GET", "/devstoreaccount1"+tc.path, ""))
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, tc.want, strings.Join(listedNames.FindAllString(string(text), -1), " "), tc.path)
	}
}

var listedNames = regexp.MustCompile(`<(Name|NextMarker)>[^<]*</(Name|NextMarker)>`)

func TestListBlobs_IncludesUncommittedBlobs(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		putBlob(t, c, "b", "data")
		for _, name := range []string{"a/1", "b", "c"} {
			require.NoError(t, stageBlock(c, name, "1", "data"))
		}
		for include, want := range map[container.ListBlobsInclude]string{{}: "b 4", {UncommittedBlobs: true}: "a/1 0 b 4 c 0"} {
			page, err := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Include: include}).NextPage(t.Context())
			require.NoError(t, err)
			var listed []string
			for _, item := range page.Segment.BlobItems {
				listed = append(listed, *item.Name, fmt.Sprint(*item.Properties.ContentLength))
			}
			require.Equal(t, want, strings.Join(listed, " "))
		}
		page, err := c.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Include: container.ListBlobsInclude{UncommittedBlobs: true}}).NextPage(t.Context())
		require.NoError(t, err)
		require.Equal(t, "a/", *page.Segment.BlobPrefixes[0].Name)
	})
}

func TestListBlobs_GroupsByDelimiter(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		for _, name := range []string{"a", "b/", "b/1", "b/c/2", "b0", "d//e", "d/f", "gæh", "gæi"} {
			putBlob(t, c, name, "")
		}
		for _, tc := range []struct{ prefix, delimiter, want string }{
			{"", "/", "a b0 gæh gæi | b/ d/"},
			{"b", "/", "b0 | b/"},
			{"b/", "/", "b/ b/1 | b/c/"},
			{"d/", "/", "d/f | d//"},
			{"", "æ", "a b/ b/1 b/c/2 b0 d//e d/f | gæ"},
			{"", "", "a b/ b/1 b/c/2 b0 d//e d/f gæh gæi |"},
			{"none", "/", "|"},
		} {
			for _, size := range []int32{1, 2, 100} {
				var blobs, prefixes []string
				pages := c.NewListBlobsHierarchyPager(tc.delimiter, &container.ListBlobsHierarchyOptions{Prefix: &tc.prefix, MaxResults: &size})
				for pages.More() {
					page, err := pages.NextPage(t.Context())
					require.NoError(t, err)
					require.LessOrEqual(t, len(page.Segment.BlobItems)+len(page.Segment.BlobPrefixes), int(size))
					for _, item := range page.Segment.BlobItems {
						blobs = append(blobs, *item.Name)
					}
					for _, prefix := range page.Segment.BlobPrefixes {
						prefixes = append(prefixes, *prefix.Name)
					}
				}
				require.Equal(t, tc.want, strings.TrimSpace(strings.Join(blobs, " ")+" | "+strings.Join(prefixes, " ")), "prefix %q delimiter %q", tc.prefix, tc.delimiter)
			}
		}
		status, code, _ := sendRequest(t, a, newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c?restype=container&comp=list&delimiter=", ""))
		require.Equal(t, 200, status, code)
		status, _, _ = sendRequest(t, a, newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c?restype=container&comp=list&delimiter="+strings.Repeat("x", 1025), ""))
		require.Equal(t, 400, status)
	})
}
