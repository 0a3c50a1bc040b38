package embedded_test

import (
	"io"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

func TestSecondaryEndpoint_PermitsOnlyReads(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
	c := newClient(t, a, "c-c")
	putBlob(t, c, "dir/a b+é%", "data")
	const secondary = "/devstoreaccount1-secondary"
	path := strings.Replace(linkedPath, "/devstoreaccount1", secondary, 1)
	for name, tc := range map[string]struct {
		method, path string
		status       int
		code         string
	}{
		"a read":           {"GET", path, 200, ""},
		"a list":           {"GET", secondary + "/?comp=list", 200, ""},
		"statistics":       {"GET", secondary + "/?restype=service&comp=stats", 200, ""},
		"of the primary":   {"GET", "/devstoreaccount1/?restype=service&comp=stats", 400, "InvalidQueryParameterValue"},
		"a deletion":       {"DELETE", path, 403, "InsufficientAccountPermissions"},
		"a new container":  {"PUT", secondary + "/d-d?restype=container", 403, "InsufficientAccountPermissions"},
		"another account":  {"GET", secondary + "x/c-c", 404, "ResourceNotFound"},
		"another endpoint": {"GET", "/devstoreaccount1-tertiary/c-c", 404, "ResourceNotFound"},
	} {
		status, code, resp := sendRequest(t, a, newSignedRequest(t, a, tc.method, tc.path, ""))
		require.Equal(t, tc.status, status, name)
		require.Equal(t, tc.code, code, name)
		if name == "statistics" {
			text, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Contains(t, string(text), "<Status>live</Status><LastSyncTime>")
		}
	}
	primary := newSignedRequest(t, a, "GET", linkedPath, "") // some clients sign the path of the primary endpoint
	primary.URL.Path, primary.URL.RawPath = secondary+"/c-c/dir/a b+é%", path
	status, _, _ := sendRequest(t, a, primary)
	require.Equal(t, 200, status)
	link := linkTo(t, a, func(*sas.BlobSignatureValues) {})
	status, body, _ := followLink(t, a, "GET", path, link)
	require.Equal(t, 200, status, body)
}
