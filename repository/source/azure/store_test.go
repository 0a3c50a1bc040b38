package azure_test

import (
	"crypto/rand"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/content"
	"github.com/messagehub/messagehub/repository/content/embedded"
	"github.com/messagehub/messagehub/repository/repositorytest"
	"github.com/messagehub/messagehub/repository/source"
	"github.com/messagehub/messagehub/repository/source/azure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connectionVariable is the environment variable with the connection string of another account to test,
// for example one of Azurite.
const connectionVariable = "MESSAGEHUB_BLOB_TEST_CONNECTION"

// TestSource tests the embedded account or, if the environment variable is set, the account in the
// variable.
func TestSource(t *testing.T) {
	repositorytest.RunSource(t, func(t *testing.T) repositorytest.SourceStore {
		if connection := os.Getenv(connectionVariable); connection != "" {
			o, err := content.ParseConnection(connection)
			require.NoError(t, err)
			return openStore(t, azure.Options{Endpoint: o.Endpoint, Account: o.Account, Key: o.Key})
		}
		return openStore(t, startServer(t))
	})
}

// startServer serves an embedded account.
func startServer(t *testing.T) azure.Options {
	t.Helper()
	account, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, account.Close()) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- account.Serve(t.Context(), listener, embedded.ServeOptions{}) }() // ends before the clean-up of the test
	t.Cleanup(func() { require.NoError(t, <-served) })
	return azure.Options{Endpoint: "http://" + listener.Addr().String() + "/" + account.Name(), Key: account.Key()}
}

// openStore opens an account with a container for the test.
func openStore(t *testing.T, o azure.Options) repositorytest.SourceStore {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	web := &http.Client{Transport: transport}
	faults := &repositorytest.SourceFaults{Next: web}
	o.Transport, o.Retries = faults, 1
	store, err := azure.New(o)
	require.NoError(t, err)
	account, name := embedded.WellKnownAccount, "test-"+strings.ToLower(rand.Text())
	key, err := service.NewSharedKeyCredential(account, o.Key)
	require.NoError(t, err)
	client, err := service.NewClientWithSharedKeyCredential(o.Endpoint, key, &service.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: web}})
	require.NoError(t, err)
	container := client.NewContainerClient(name)
	_, err = container.Create(t.Context(), nil)
	require.NoError(t, err)
	return repositorytest.SourceStore{
		Source: source.Stores{{Buckets: account + "/*", Source: store}},
		Bucket: account + "/" + name, Absent: account + "/absent",
		Put: func(t testing.TB, key, content string) domain.VersionID {
			_, err := container.NewBlockBlobClient(key).Upload(t.Context(), streaming.NopCloser(strings.NewReader(content)), nil)
			require.NoError(t, err)
			return domain.VersionID{}
		},
		Delete: func(t testing.TB, key string, _ *domain.VersionID) {
			_, err := container.NewBlobClient(key).Delete(t.Context(), nil)
			require.NoError(t, err)
		},
		HasETags: true, HasAnyKey: true, HasLinks: true, HTTP: web, Faults: faults,
	}
}

// A Store of Blob Storage knows only the current blob of a key, as the null version. Any other version
// is not found.
func TestOnlyTheCurrentBlobExists(t *testing.T) {
	s := openStore(t, startServer(t))
	s.Put(t, "a", "x")
	name, err := domain.ParseObjectName(s.Bucket, "a")
	require.NoError(t, err)
	version, err := domain.ParseVersionID("2020-01-01T00:00:00.0000000Z")
	require.NoError(t, err)
	_, err = s.Stat(t.Context(), name, &version)
	require.Equal(t, domain.NotFound, domain.KindOf(err))
}

func TestNew_RefusesInvalidOptions(t *testing.T) {
	for _, o := range []azure.Options{
		{Key: "a2V5"},
		{Endpoint: "account.blob.core.windows.net", Key: "a2V5"},
		{Endpoint: "https://account.blob.core.windows.net?sig=x", Key: "a2V5"},
		{Endpoint: "https://account.blob.core.windows.net"},
		{Endpoint: "https://account.blob.core.windows.net", Key: "%"},
	} {
		_, err := azure.New(o)
		require.Equal(t, domain.Invalid, domain.KindOf(err), "%+v", o)
	}
}
