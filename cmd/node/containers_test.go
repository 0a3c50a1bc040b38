package node_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
)

// An account is an embedded engine that serves HTTP. A test creates and changes
// its containers, as an operator would.
type account struct {
	*testing.T
	engine *embedded.Engine
	client *azcosmos.Client
}

func newAccount(t *testing.T) *account {
	t.Helper()
	engine, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	key, err := azcosmos.NewKeyCredential(engine.Key())
	require.NoError(t, err)
	client, err := azcosmos.NewClientWithKey(engine.Endpoint(), key, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: engine.Transport()}})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return &account{t, engine, client}
}

// settings returns settings of a hub that uses the account.
func (a *account) settings() config.Config {
	cfg := settings(a.TempDir())
	cfg.Cosmos.Endpoint, cfg.Cosmos.Key = serveHTTP(a.T, a.engine.Handler()), config.Secret(a.engine.Key())
	return cfg
}

func (a *account) provision() {
	db, err := client.Connect(client.Connection{Endpoint: a.engine.Endpoint(), Key: a.engine.Key(), Transport: a.engine.Transport()})
	require.NoError(a, err)
	defer db.Close()
	require.NoError(a, db.Provision(a.Context(), cosmos.Containers()))
}

func (a *account) container(name string) *azcosmos.ContainerClient {
	c, err := a.client.NewContainer("messagehub", name)
	require.NoError(a, err)
	return c
}

// change replaces the properties of a container.
func (a *account) change(name string, change func(*azcosmos.ContainerProperties)) {
	c := a.container(name)
	resp, err := c.Read(a.Context(), nil)
	require.NoError(a, err)
	change(resp.ContainerProperties)
	_, err = c.Replace(a.Context(), *resp.ContainerProperties, nil)
	require.NoError(a, err)
}

func TestOpen_RefusesContainersThatAreWrong(t *testing.T) {
	a := newAccount(t)
	a.provision()
	a.change("cabinet", func(p *azcosmos.ContainerProperties) {
		p.IndexingPolicy = &azcosmos.IndexingPolicy{IndexingMode: azcosmos.IndexingModeNone}
	})
	a.change("bundles", func(p *azcosmos.ContainerProperties) { p.DefaultTimeToLive = nil })
	cfg := a.settings()
	_, err := node.Open(t.Context(), cfg, node.Options{})
	require.ErrorContains(t, err, "container cabinet: its indexing mode is none, want consistent with /partitionKey/?, /ordinal/?, /until/?; correct it with messagehub provision")
	require.ErrorContains(t, err, "container bundles: its default TTL is not set, so that documents never expire; want -1; correct it with messagehub provision")
	resp, readErr := a.container("bundles").Read(t.Context(), nil)
	require.NoError(t, readErr)
	require.Nil(t, resp.ContainerProperties.DefaultTimeToLive, "a start changes no container that exists")

	a.provision()
	n, err := node.Open(t.Context(), cfg, node.Options{})
	require.NoError(t, err)
	require.NoError(t, n.Close())
}

// A hub that is not allowed to create containers must start on an account that
// an earlier version created.
func TestAHubWithoutThePushContainers_ServesEverythingElse(t *testing.T) {
	a := newAccount(t)
	a.provision()
	n, stop := start(t, a.settings(), node.Options{Transport: creationRefuser{http.DefaultClient}})
	status, body := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", event)
	require.Equal(t, http.StatusAccepted, status, body)
	status, body = call(t, http.MethodGet, n.URL()+"/v1/peek", "a", "")
	require.Equal(t, http.StatusOK, status, body)
	for _, path := range []string{"/v1/subscriptions", "/v1/events"} {
		status, body = call(t, map[bool]string{true: http.MethodPost, false: http.MethodGet}[path == "/v1/events"], n.URL()+path, "a", "{}")
		require.Equal(t, http.StatusServiceUnavailable, status, body)
		require.Contains(t, body, "urn:messagehub:problem:not-provisioned")
	}
	status, body = call(t, http.MethodGet, n.URL()+"/readyz", "", "")
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, `"name":"push-containers"`)
	require.Contains(t, body, "container streams of database messagehub: it does not exist")
	require.Contains(t, body, "run messagehub provision, and restart the hub")
	require.NoError(t, stop())

	cfg := a.settings() // the operator created the containers with messagehub provision
	_, err := node.Provision(t.Context(), &cfg, node.ProvisionOptions{}, node.Options{})
	require.NoError(t, err)
	n, stop = start(t, cfg, node.Options{Transport: creationRefuser{http.DefaultClient}})
	status, body = call(t, http.MethodGet, n.URL()+"/v1/subscriptions", "a", "")
	require.Equal(t, http.StatusOK, status, body)
	require.NoError(t, stop())
}

// A creationRefuser is a transport that refuses requests to create containers.
type creationRefuser struct{ next policy.Transporter }

func (w creationRefuser) Do(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/colls") {
		return &http.Response{
			StatusCode: http.StatusForbidden, Status: "403 Forbidden", Header: make(http.Header),
			Body: io.NopCloser(strings.NewReader("{}")), Request: req,
		}, nil
	}
	return w.next.Do(req)
}

func TestReadyz_NamesTheContainerThatIsGone(t *testing.T) {
	a := newAccount(t)
	cfg := a.settings()
	cfg.Cosmos.TailEvents = 0 // the head then contains no events, so storing an event requires the container cabinet
	n, _ := start(t, cfg, node.Options{ReadinessInterval: 10 * time.Millisecond})
	status, body := call(t, http.MethodGet, n.URL()+"/readyz", "", "")
	require.Equal(t, 200, status, body)
	_, err := a.container("cabinet").Delete(t.Context(), nil)
	require.NoError(t, err)
	status, body = call(t, http.MethodPost, n.URL()+"/v1/data-available", "", event)
	require.Equal(t, 503, status, body)
	require.Eventually(t, func() bool {
		status, body = call(t, http.MethodGet, n.URL()+"/readyz", "", "")
		return status == 503
	}, 30*time.Second, time.Millisecond)
	require.Contains(t, body, `{"name":"containers","reason":"container cabinet of database messagehub: it does not exist; create it with messagehub provision"`)
}
