package embedded_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

func TestMaxMemory_BoundsAllContents(t *testing.T) {
	a := openAccount(t, embedded.Options{MaxMemory: 100, Containers: []string{"c-c", "d-d"}})
	c, d := newClient(t, a, "c-c"), newClient(t, a, "d-d")
	const isFull = http.StatusInsufficientStorage
	putBlob(t, c, "one", strings.Repeat("a", 50))
	putBlob(t, d, "two", strings.Repeat("b", 40))
	requireRefused(t, uploadBlob(c, "three", strings.Repeat("c", 11), nil), isFull, "InsufficientStorage")
	requireRefused(t, stageBlock(c, "three", "1", strings.Repeat("c", 11)), isFull, "InsufficientStorage")
	_, err := d.NewBlobClient("two").SetMetadata(t.Context(), map[string]*string{}, nil)
	requireRefused(t, err, isFull, "InsufficientStorage") // SetMetadata copies the content, for which there is no memory

	putBlob(t, c, "one", "short") // this write releases the bytes of the old version
	require.NoError(t, stageBlock(c, "three", "1", strings.Repeat("c", 20)))
	require.NoError(t, commitBlockList(c, "three", "1"))
	putBlob(t, c, "four", strings.Repeat("d", 35))
	requireRefused(t, uploadBlob(c, "five", "e", nil), isFull, "InsufficientStorage")

	_, err = c.NewBlobClient("four").Delete(t.Context(), nil)
	require.NoError(t, err)
	putBlob(t, c, "five", strings.Repeat("e", 35))
	_, err = c.Delete(t.Context(), nil)
	require.NoError(t, err)
	putBlob(t, d, "six", strings.Repeat("f", 60))
	require.Equal(t, strings.Repeat("b", 40), getBlob(t, d, "two"))
}
