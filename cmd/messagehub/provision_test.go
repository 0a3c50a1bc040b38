package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/stretchr/testify/require"

	bus "github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/cosmos/embedded"
	blobs "github.com/messagehub/messagehub/repository/content/embedded"
)

// An azureAccounts consists of a Cosmos account, a storage account and a
// Service Bus namespace, which are initially empty.
type azureAccounts struct {
	*testing.T
	cosmos    *azcosmos.Client
	bus       *admin.Client
	environ   []string
	secrets   []string
	namespace *bus.Namespace
	requested func()                  // called for each request to an account, unless nil
	refused   func(*http.Request) int // returns the status with which a request is refused, or 0 to accept it; may be nil
}

func newAccounts(t *testing.T) *azureAccounts {
	t.Helper()
	engine, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	d := &azureAccounts{T: t}
	account, err := blobs.Open(blobs.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, account.Close()) })
	namespace, err := bus.Open(bus.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, namespace.Close()) })
	at := [3]string{}
	for i, handler := range []http.Handler{engine.Handler(), account.Handler(), namespace.Handler()} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if d.requested != nil {
				d.requested()
			}
			if d.refused != nil {
				if status := d.refused(r); status != 0 {
					w.WriteHeader(status)
					return
				}
			}
			handler.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		at[i] = server.URL
	}
	key, err := azcosmos.NewKeyCredential(engine.Key())
	require.NoError(t, err)
	client, err := azcosmos.NewClientWithKey(engine.Endpoint(), key, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: engine.Transport()}})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	connection := namespace.ConnectionString(strings.TrimPrefix(at[2], "http://"))
	d.bus, err = admin.NewClientFromConnectionString(connection, &admin.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: overHTTP{}}})
	require.NoError(t, err)
	d.cosmos, d.namespace, d.secrets = client, namespace, []string{engine.Key(), account.Key()}
	d.environ = []string{
		"MESSAGEHUB_COSMOS_ENDPOINT=" + at[0] + "/", "MESSAGEHUB_COSMOS_KEY=" + engine.Key(),
		"MESSAGEHUB_BLOB_ENDPOINT=" + at[1] + "/" + account.Name(), "MESSAGEHUB_BLOB_KEY=" + account.Key(),
		"MESSAGEHUB_SERVICEBUS_CONNECTION=" + connection,
	}
	return d
}

// An overHTTP sends the management client's HTTPS requests over HTTP.
type overHTTP struct{}

func (overHTTP) Do(r *http.Request) (*http.Response, error) {
	r.URL.Scheme = "http"
	return http.DefaultTransport.RoundTrip(r)
}

// setEnviron replaces environment variables.
func (d *azureAccounts) setEnviron(variables ...string) {
	for _, v := range variables {
		name, _, _ := strings.Cut(v, "=")
		d.environ = append(slices.DeleteFunc(d.environ, func(x string) bool { return strings.HasPrefix(x, name+"=") }), v)
	}
}

// provision runs messagehub provision with the settings of these accounts.
func (d *azureAccounts) provision(status int, args ...string) string {
	d.Helper()
	got, out, errs := d.run(d.Context(), args...)
	require.Equal(d, status, got, "%s%s", out, errs)
	for _, secret := range d.secrets {
		require.NotContains(d, out+errs, secret)
	}
	return out
}

func (d *azureAccounts) run(ctx context.Context, args ...string) (status int, out, errs string) {
	var written, failed bytes.Buffer
	status = run(ctx, &process{
		args: append([]string{"messagehub", "provision"}, args...), environ: d.environ,
		in: strings.NewReader(""), out: &written, err: &failed,
	})
	return status, written.String(), failed.String()
}

// change changes the properties of a container.
func (d *azureAccounts) change(name string, change func(*azcosmos.ContainerProperties)) {
	c, err := d.cosmos.NewContainer("messagehub", name)
	require.NoError(d, err)
	resp, err := c.Read(d.Context(), nil)
	require.NoError(d, err)
	change(resp.ContainerProperties)
	_, err = c.Replace(d.Context(), *resp.ContainerProperties, nil)
	require.NoError(d, err)
}

func TestProvision_CreatesAllThatAHubNeedsAndThenChangesNothing(t *testing.T) {
	d := newAccounts(t)
	missing := d.provision(1, "--check")
	require.Regexp(t, `(?m)^cosmos +container +catalog +missing$`, missing)
	require.Contains(t, missing, "  az cosmosdb sql container create --account-name ACCOUNT --resource-group RESOURCE_GROUP --database-name messagehub --name bundles"+
		" --partition-key-path /recipient --partition-key-version 2 --ttl -1 --max-throughput 4000 --idx '{")
	require.Contains(t, missing, "az storage container create --account-name ACCOUNT --name messagehub-exchange")
	require.Contains(t, missing, "az servicebus queue create --namespace-name ACCOUNT --resource-group RESOURCE_GROUP --name dataavailable-fifo --enable-session true")
	require.Equal(t, missing, d.provision(1, "--check"), "a check changes nothing")

	created := d.provision(0)
	require.Equal(t, strings.Count(missing, " missing\n"), strings.Count(created, " created\n"))
	for range 2 {
		all := d.provision(0)
		require.Equal(t, strings.Count(created, "\n"), strings.Count(all, " ok\n"))
	}
	d.provision(0, "--check")

	c, err := d.cosmos.NewContainer("messagehub", "cabinet")
	require.NoError(t, err)
	throughput, err := c.ReadThroughput(t.Context(), nil)
	require.NoError(t, err)
	highest, isAutoscale := throughput.ThroughputProperties.AutoscaleMaxThroughput()
	require.True(t, isAutoscale)
	require.EqualValues(t, 4000, highest)
}

func TestProvision_CorrectsContainersAndReportsOtherFaults(t *testing.T) {
	d := newAccounts(t)
	d.provision(0, "--throughput", "none")
	d.change("bundles", func(p *azcosmos.ContainerProperties) { p.DefaultTimeToLive = nil })
	d.change("cabinet", func(p *azcosmos.ContainerProperties) {
		p.IndexingPolicy = &azcosmos.IndexingPolicy{IndexingMode: azcosmos.IndexingModeNone}
	})
	found := d.provision(1, "--check")
	require.Regexp(t, `(?m)^cosmos +container +cabinet +wrong\n    left: container cabinet: its indexing mode is none`, found)
	require.Contains(t, found, "az cosmosdb sql container update --account-name ACCOUNT --resource-group RESOURCE_GROUP --database-name messagehub --name bundles --ttl -1 --idx '")
	corrected := d.provision(0)
	require.Contains(t, corrected, "    changed: default TTL -1, was none\n")
	require.Contains(t, corrected, "    changed: index on /until/?\n")
	d.provision(0, "--check")

	database, err := d.cosmos.NewDatabase("messagehub")
	require.NoError(t, err)
	c, err := database.NewContainer("catalog")
	require.NoError(t, err)
	_, err = c.Delete(t.Context(), nil)
	require.NoError(t, err)
	_, err = database.CreateContainer(t.Context(), azcosmos.ContainerProperties{
		ID: "catalog", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/id"}, Version: 2},
	}, nil)
	require.NoError(t, err)
	unfit := d.provision(1)
	require.Regexp(t, `(?m)^cosmos +container +catalog +unfit$`, unfit)
	require.Contains(t, unfit, "its partition key is /id, want /partitionKey; this cannot be changed in place: set cosmos.database to a new name, or delete all three containers")
	require.Contains(t, unfit, "az cosmosdb sql container delete --account-name ACCOUNT --resource-group RESOURCE_GROUP --database-name messagehub --name catalog   # deletes what it holds\n")
}

func TestProvision_PrintsWhatTheCredentialMayNotDo(t *testing.T) {
	d := newAccounts(t)
	for i, variable := range d.environ {
		name, value, _ := strings.Cut(variable, "=")
		switch name {
		case "MESSAGEHUB_COSMOS_KEY", "MESSAGEHUB_BLOB_KEY":
			d.environ[i] = name + "=b3RoZXI="
		case "MESSAGEHUB_SERVICEBUS_CONNECTION":
			d.environ[i] = name + "=" + strings.Replace(value, "SAS_KEY_VALUE", "b3RoZXI=", 1)
		}
	}
	d.secrets = append(d.secrets, "b3RoZXI")
	got := d.provision(1)
	for _, want := range []string{
		"the account refuses the credential; check cosmos.key",
		"read container messagehub-content of http://127.0.0.1:",
		"read queue dataavailable-fifo: the namespace answered 401; use a connection string with the Manage right, or an identity with the role Azure Service Bus Data Owner",
		"\n  az cosmosdb sql database create ", "\n  az cosmosdb sql container create ", "\n  az storage container create ", "\n  az servicebus queue create ",
	} {
		require.Contains(t, got, want)
	}
}

func TestProvision_SkipsEmbeddedServices(t *testing.T) {
	got := messagehub(t, "", "provision")
	require.Equal(t, 0, got.status, got.err)
	require.Contains(t, got.out, "Nothing to provision")
}

func TestProvision_RefusesAWrongCommandLine(t *testing.T) {
	for _, args := range [][]string{
		{"now"},
		{"--all"},
		{"--throughput", "much"},
		{"--format", "yaml"},
		{"--format="},
		{"--format", "json", "--apply"},
		{"--check", "--apply"},
		{"--check", "--diff"},
		{"--diff", "--narrow-index"},
		{"--format", "json", "--throughput", "none"},
	} {
		got := messagehub(t, "", append([]string{"provision"}, args...)...)
		require.Equal(t, 2, got.status, args)
		require.Contains(t, got.err, "messagehub: see messagehub provision --help")
	}
}

// TestHandbook_ListsTheContainers compares the handbook's table with the
// containers that the hub creates and checks.
func TestHandbook_ListsTheContainers(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "handbook", "azure.md"))
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(text), "| container | partition key | index paths | default TTL | throughput | holds |\n| --- | --- | --- | --- | --- | --- |\n")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\n")
	var want []string
	for _, c := range deployment.Containers() {
		want = append(want, fmt.Sprintf("| `%s` | `%s` | `%s` | %s | autoscale to %d RU/s | %s |",
			c.Name, c.PartitionKey, strings.Join(c.IndexPaths(), "`, `"), c.DefaultTTL(), c.Throughput, c.Holds))
	}
	require.Equal(t, strings.Join(want, "\n"), table)
	require.Contains(t, messagehub(t, "", "provision", "--help").out, containersTable())
}
