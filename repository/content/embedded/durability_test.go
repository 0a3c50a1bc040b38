package embedded_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

func TestAccount_KeepsItsBlobsWhenItIsReopened(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "if", "need", "be")
	a := openAccount(t, embedded.Options{Dir: dir, Containers: []string{"c-c", "c-d"}})
	c := newClient(t, a, "c-c")
	putBlob(t, c, "old", "0")
	putBlob(t, c, "gone", "0")
	etag := putBlob(t, c, "old", "new")
	_, err := c.NewBlobClient("gone").Delete(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, stageBlock(c, "staged", "1", "data"))
	about, err := c.GetProperties(t.Context(), nil)
	require.NoError(t, err)

	_, err = embedded.Open(embedded.Options{Dir: dir})
	require.ErrorContains(t, err, "another account uses this folder")
	require.NoError(t, a.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "+unfinished", "leftover"), []byte("half"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "half-made"), 0o700)) // a crash can leave such a folder

	a = openAccount(t, embedded.Options{Dir: dir, Containers: []string{"c-c"}})
	c = newClient(t, a, "c-c")
	require.Equal(t, "new", getBlob(t, c, "old"))
	requireRefused(t, uploadBlob(c, "old", "x", ifMatch("other")), 412, "ConditionNotMet")
	require.NoError(t, uploadBlob(c, "old", "x", ifMatch(etag)))
	require.Equal(t, 404, statusOf(t, a, "c-c/gone"))
	require.Equal(t, 404, statusOf(t, a, "c-c/staged"))
	again, err := c.GetProperties(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, *about.ETag, *again.ETag)
	require.Equal(t, *about.LastModified, *again.LastModified)
	_, err = newClient(t, a, "c-d").GetProperties(t.Context(), nil)
	require.NoError(t, err)
	leftover, err := os.ReadDir(filepath.Join(dir, "+unfinished"))
	require.NoError(t, err)
	require.Empty(t, leftover)
	require.NoDirExists(t, filepath.Join(dir, "half-made"))
}

func TestOpen_ReadsPropertiesAtTheirLimits(t *testing.T) {
	dir := t.TempDir()
	a := openAccount(t, embedded.Options{Dir: dir, Containers: []string{"c-c"}})
	long := strings.Repeat("<", 1<<10) // this character takes six bytes in JSON
	headers := []string{"x-ms-blob-type: BlockBlob", "x-ms-meta-m: " + strings.Repeat(long, 8)[1:]}
	for _, name := range []string{"content-type", "content-encoding", "content-language", "content-disposition", "cache-control"} {
		headers = append(headers, "x-ms-blob-"+name+": "+long)
	}
	path := "/devstoreaccount1/c-c/" + strings.Repeat("%E2%80%A8", 1024)
	status, resp, _ := sendRequest(t, a, newSignedRequest(t, a, "PUT", path, "data", headers...))
	require.Equal(t, 201, status, resp)
	for _, header := range []string{"x-ms-meta-m: \xff", "x-ms-blob-content-type: \xff"} {
		status, resp, _ := sendRequest(t, a, newSignedRequest(t, a, "PUT", "/devstoreaccount1/c-c/x", "data", "x-ms-blob-type: BlockBlob", header))
		require.Equal(t, 400, status, "it cannot be stored unchanged: %s", resp)
	}
	require.NoError(t, a.Close())

	a = openAccount(t, embedded.Options{Dir: dir})
	status, resp, got := sendRequest(t, a, newSignedRequest(t, a, "GET", path, ""))
	require.Equal(t, 200, status, resp)
	require.Equal(t, long, got.Header.Get("Cache-Control"))
	require.Len(t, got.Header.Get("X-Ms-Meta-M"), 8<<10-1)
}

func statusOf(t *testing.T, a *embedded.Account, path string) int {
	t.Helper()
	status, _, _ := sendRequest(t, a, newSignedRequest(t, a, "HEAD", "/devstoreaccount1/"+path, ""))
	return status
}

func TestOpen_FindsDamagedProperties(t *testing.T) {
	dir := t.TempDir()
	a := openAccount(t, embedded.Options{Dir: dir, Containers: []string{"c-c"}})
	putBlob(t, newClient(t, a, "c-c"), "x", "content")
	require.NoError(t, a.Close())
	files, err := filepath.Glob(filepath.Join(dir, "c-c", "*"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		whole, err := os.ReadFile(file)
		require.NoError(t, err)
		damaged := bytes.Clone(whole)
		damaged[len(whole)-30] ^= 4
		for _, data := range [][]byte{damaged, whole[:len(whole)-1], nil} {
			require.NoError(t, os.WriteFile(file, data, 0o600))
			_, err = embedded.Open(embedded.Options{Dir: dir})
			require.ErrorContains(t, err, "open the blobs in "+dir+": c-c/"+filepath.Base(file)+" is damaged; move it away")
		}
		require.NoError(t, os.WriteFile(file, whole, 0o600))
	}
	require.NoError(t, os.Rename(files[1], filepath.Join(dir, "c-c", strings.Repeat("0", 64))))
	_, err = embedded.Open(embedded.Options{Dir: dir})
	require.ErrorContains(t, err, "whose file has another name")
	require.NoError(t, os.Rename(filepath.Join(dir, "c-c", strings.Repeat("0", 64)), files[1]))
	require.NoError(t, os.Remove(files[0]))
	_, err = embedded.Open(embedded.Options{Dir: dir})
	require.ErrorContains(t, err, "is missing")
}

func TestOpen_ReportsWhyItFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for says, o := range map[string]embedded.Options{
		"not a directory":    {Dir: file},
		"want 3 to 24":       {Account: "No"},
		"want base64":        {Key: "%"},
		"want 3 to 63":       {Containers: []string{"X"}},
		"file name too long": {Dir: filepath.Join(t.TempDir(), strings.Repeat("x", 300))},
	} {
		_, err := embedded.Open(o)
		require.ErrorContains(t, err, says)
	}
}
