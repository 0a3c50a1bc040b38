package node_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/stretchr/testify/require"

	bus "github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/doctor"
	"github.com/messagehub/messagehub/cosmos/embedded"
	blobs "github.com/messagehub/messagehub/repository/content/embedded"
)

// An inspectedHub is a hub without faults: settings, a data folder, and a
// Cosmos account, a storage account and a namespace that contain everything the
// hub needs. A test introduces a fault and then runs the doctor.
type inspectedHub struct {
	*testing.T
	cfg       config.Config
	opts      node.Options
	engine    *embedded.Engine
	documents *azcosmos.Client
	queues    *admin.Client

	// Functions that a test sets to replace the responses of a service. If the
	// function or the handler that it returns is nil, the service itself
	// responds.
	refuseDocuments, refuseBlobs, refuseQueues func(*http.Request) http.HandlerFunc
}

// answerWith returns a handler that answers every request with this status and
// body.
func answerWith(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// interceptRequests returns a handler that passes each request to refuse. The
// request is served by the handler that refuse returns or, if it is nil, by
// next.
func interceptRequests(refuse *func(*http.Request) http.HandlerFunc, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if *refuse != nil {
			if answer := (*refuse)(r); answer != nil {
				answer(w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// newInspectedHub returns a hub without faults. Its Service Bus namespace
// accepts these keys.
func newInspectedHub(t *testing.T, keys ...bus.Key) *inspectedHub {
	t.Helper()
	d := &inspectedHub{T: t, cfg: settings(t.TempDir() + "/data")}
	var err error
	d.engine, err = embedded.Open(embedded.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.engine.Close()) })
	account, err := blobs.Open(blobs.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, account.Close()) })
	all := bus.Key{Name: bus.WellKnownKeyName, Secret: bus.WellKnownKey, Rights: bus.All}
	namespace, err := bus.Open(bus.Options{Keys: append([]bus.Key{all}, keys...)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, namespace.Close()) })
	at := d.serveBus(namespace)

	d.cfg.Cosmos.Endpoint, d.cfg.Cosmos.Key = serveHTTP(t, interceptRequests(&d.refuseDocuments, d.engine.Handler())), config.Secret(d.engine.Key())
	d.cfg.Blob.Endpoint, d.cfg.Blob.Key = serveHTTP(t, interceptRequests(&d.refuseBlobs, account.Handler()))+account.Name(), config.Secret(account.Key())
	d.cfg.ServiceBus.Connection = config.Secret(namespace.ConnectionString(at))
	d.cfg.Push.SecretKey = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	_, err = node.Provision(t.Context(), &d.cfg, node.ProvisionOptions{}, node.Options{})
	require.NoError(t, err)

	key, err := azcosmos.NewKeyCredential(d.engine.Key())
	require.NoError(t, err)
	d.documents, err = azcosmos.NewClientWithKey(d.engine.Endpoint(), key, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: d.engine.Transport()}})
	require.NoError(t, err)
	t.Cleanup(d.documents.Close)
	d.queues, err = admin.NewClientFromConnectionString(d.cfg.ServiceBus.Connection.Reveal(), &admin.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: plainHTTP{}}})
	require.NoError(t, err)
	return d
}

// A plainHTTP is a transport that sends the Service Bus management client's
// HTTPS requests as plain HTTP.
type plainHTTP struct{}

func (plainHTTP) Do(r *http.Request) (*http.Response, error) {
	r.URL.Scheme = "http"
	return http.DefaultTransport.RoundTrip(r)
}

// serveBus serves the namespace over AMQP and HTTP at the same address, and
// returns the address.
func (d *inspectedHub) serveBus(namespace *bus.Namespace) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(d, err)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- namespace.Serve(ctx, listener, bus.ServeOptions{HTTP: interceptRequests(&d.refuseQueues, namespace.Handler())})
	}()
	d.Cleanup(func() { stop(); require.NoError(d, <-served) })
	return listener.Addr().String()
}

// useKey makes the hub authenticate with this key of the namespace.
func (d *inspectedHub) useKey(k bus.Key) {
	connection := d.cfg.ServiceBus.Connection.Reveal()
	connection = strings.Replace(connection, bus.WellKnownKeyName, k.Name, 1)
	d.cfg.ServiceBus.Connection = config.Secret(strings.Replace(connection, bus.WellKnownKey, k.Secret, 1))
}

// diagnose runs all checks, including those that call services.
func (d *inspectedHub) diagnose() *node.Diagnosis {
	return node.Diagnose(d.Context(), &d.cfg, node.DoctorOptions{Online: true}, d.opts)
}

// changeContainer changes the properties of a container.
func (d *inspectedHub) changeContainer(name string, change func(*azcosmos.ContainerProperties)) {
	c, err := d.documents.NewContainer("messagehub", name)
	require.NoError(d, err)
	resp, err := c.Read(d.Context(), nil)
	require.NoError(d, err)
	change(resp.ContainerProperties)
	_, err = c.Replace(d.Context(), *resp.ContainerProperties, nil)
	require.NoError(d, err)
}

// recreateContainer deletes a container and, unless properties is nil, creates
// an empty one with these properties.
func (d *inspectedHub) recreateContainer(name string, properties *azcosmos.ContainerProperties) {
	database, err := d.documents.NewDatabase("messagehub")
	require.NoError(d, err)
	c, err := database.NewContainer(name)
	require.NoError(d, err)
	_, err = c.Delete(d.Context(), nil)
	require.NoError(d, err)
	if properties != nil {
		_, err = database.CreateContainer(d.Context(), *properties, nil)
		require.NoError(d, err)
	}
}

// changeQueue deletes a queue and, unless change is nil, creates one with
// changed properties.
func (d *inspectedHub) changeQueue(name string, change func(*admin.QueueProperties)) {
	found, err := d.queues.GetQueue(d.Context(), name, nil)
	require.NoError(d, err)
	_, err = d.queues.DeleteQueue(d.Context(), name, nil)
	require.NoError(d, err)
	if change != nil {
		change(&found.QueueProperties)
		_, err = d.queues.CreateQueue(d.Context(), name, &admin.CreateQueueOptions{Properties: &found.QueueProperties})
		require.NoError(d, err)
	}
}

// useProxy makes the hub send all HTTP requests through a proxy.
func (d *inspectedHub) useProxy(proxy string) {
	u, err := url.Parse(proxy)
	require.NoError(d, err)
	d.opts.Proxy = func(*http.Request) (*url.URL, error) { return u, nil }
}

// find returns the findings of the check with this name.
func find(all []doctor.Finding, check string) (found []doctor.Finding) {
	for _, f := range all {
		if f.Check == check {
			found = append(found, f)
		}
	}
	return found
}

// refuseAction returns a function that refuses Cosmos requests that require
// this data action; see dataActions.
func refuseAction(action string) func(*http.Request) http.HandlerFunc {
	return func(r *http.Request) http.HandlerFunc {
		body := peekBody(r)
		if slices.ContainsFunc(dataActions(r, body), func(a string) bool { return strings.HasSuffix(a, "/"+action) }) {
			return answerWith(http.StatusForbidden, `{"message":"Request blocked by Auth"}`)
		}
		return nil
	}
}

// peekBody returns the body of a request, and restores it for the next handler.
func peekBody(r *http.Request) []byte {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

func TestDoctor_ReportsNoFaultOfAHealthyHub(t *testing.T) {
	d := newInspectedHub(t)
	for range 2 {
		began := time.Now()
		report := d.diagnose()
		for _, f := range report.Findings {
			require.Equal(t, doctor.OK, f.State, "%+v", f)
		}
		require.Less(t, time.Since(began), 15*time.Second)
		require.Positive(t, report.Units)
		require.LessOrEqual(t, report.Units, 50.0)
		t.Logf("%.1f request units, %s", report.Units, report.Took)
	}
}
