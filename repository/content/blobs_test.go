package content_test

import (
	"bytes"
	"crypto/rand"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/repository/content"
	"github.com/messagehub/messagehub/repository/content/embedded"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connectionVariable is the environment variable with the connection string of another account to test,
// such as an account of Azurite.
const connectionVariable = "MESSAGEHUB_BLOB_TEST_CONNECTION"

// The suite runs on the embedded account, in memory and in a folder, in process and over TCP. If the
// environment variable is set, it runs on the account in this variable instead.
func TestBlobs(t *testing.T) {
	if connection := os.Getenv(connectionVariable); connection != "" {
		o, err := content.ParseConnection(connection)
		require.NoError(t, err)
		repositorytest.RunExchange(t, func(t *testing.T) repositorytest.Shared {
			o.Transport = newHTTPClient(t)
			return newShared(t, o)
		})
		return
	}
	for _, where := range []string{"memory", "folder"} {
		t.Run(where+" in process", func(t *testing.T) {
			repositorytest.RunExchange(t, func(t *testing.T) repositorytest.Shared {
				account := openAccount(t, where)
				return newShared(t, inProcess(account))
			})
		})
		t.Run(where+" over TCP", func(t *testing.T) {
			repositorytest.RunExchange(t, func(t *testing.T) repositorytest.Shared {
				return newShared(t, overTCP(t, openAccount(t, where)))
			})
		})
	}
}

func openAccount(t testing.TB, where string) *embedded.Account {
	t.Helper()
	o := embedded.Options{}
	if where == "folder" {
		o.Dir = t.TempDir()
	}
	account, err := embedded.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, account.Close()) })
	return account
}

func inProcess(account *embedded.Account) content.BlobOptions {
	return content.BlobOptions{Endpoint: account.Endpoint(), Key: account.Key(), Transport: account.Transport()}
}

func overTCP(t testing.TB, account *embedded.Account) content.BlobOptions {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- account.Serve(t.Context(), listener, embedded.ServeOptions{}) }() // ends before the test's clean-up
	t.Cleanup(func() { require.NoError(t, <-served) })
	o, err := content.ParseConnection(account.ConnectionString(listener.Addr().String()))
	require.NoError(t, err)
	o.Transport = newHTTPClient(t)
	return o
}

// newShared creates a container for the test.
func newShared(t testing.TB, o content.BlobOptions) repositorytest.Shared {
	t.Helper()
	o.Container, o.Create = "test-"+strings.ToLower(rand.Text()), true
	blobs, err := content.OpenBlobs(t.Context(), o)
	require.NoError(t, err)
	domain := azClient(t, o)
	return repositorytest.Shared{Exchange: blobs, Upload: func(t testing.TB, name string, data []byte) string {
		client := domain.ServiceClient().NewContainerClient(o.Container).NewBlockBlobClient(name)
		_, err := client.UploadStream(t.Context(), bytes.NewReader(data), nil)
		require.NoError(t, err)
		return client.URL()
	}}
}

// azClient returns the client of a domain.
func azClient(t testing.TB, o content.BlobOptions) *azblob.Client {
	t.Helper()
	name := o.Account
	if name == "" {
		name = embedded.WellKnownAccount
	}
	key, err := azblob.NewSharedKeyCredential(name, o.Key)
	require.NoError(t, err)
	client, err := azblob.NewClientWithSharedKeyCredential(o.Endpoint, key, &azblob.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: o.Transport, Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	require.NoError(t, err)
	return client
}
