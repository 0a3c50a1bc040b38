package node_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	bus "github.com/messagehub/messagehub/api/servicebus/embedded"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	cosmos "github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	blobs "github.com/messagehub/messagehub/repository/content/embedded"
)

// A secrets contains values that a hub must never print: its keys, and
// signatures in URIs that domains send.
type secrets struct{ cosmos, bus, blob, admin, signature string }

func newCanaries() secrets {
	key := func(of string) string {
		return base64.StdEncoding.EncodeToString([]byte("canary of " + of + " canary"))
	}
	return secrets{cosmos: key("cosmos"), bus: key("bus"), blob: key("blob"), admin: "canary-of-admin-0123456789", signature: "canary%2Bof%2Bsignature"}
}

func (s secrets) notIn(t *testing.T, what, text string) {
	t.Helper()
	for _, secret := range []string{s.cosmos, s.bus, s.blob, s.admin, s.signature, "canary"} {
		require.NotContains(t, text, secret, what)
	}
}

// A safeBuffer is a buffer for a log; it is safe for concurrent use.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// onLoopback calls serve with a loopback listener until the test ends, and
// returns the listener's address.
func onLoopback(t *testing.T, serve func(context.Context, net.Listener) error) (address string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = serve(ctx, l) })
	t.Cleanup(func() {
		cancel()
		serving.Wait()
	})
	return l.Addr().String()
}

// accounts starts a namespace, a storage account and a Cosmos account, each
// with its own key. It returns settings for a hub that uses them, and a
// function that connects to the namespace.
func (s secrets) accounts(t *testing.T) (cfg config.Config, open func() *azservicebus.Client) {
	t.Helper()
	var entities bus.Entities
	q := contract.DefaultQueues("Charges")
	for name, sessions := range map[string]bool{
		contract.DataAvailableFIFO: true, contract.DataAvailableQueue: false, q.Request: true, q.Reply: true, q.Dequeue: false,
	} {
		setup := bus.QueueSetup{Name: name}
		setup.Properties.RequiresSession = sessions
		entities.Queues = append(entities.Queues, setup)
	}
	namespace, err := bus.Open(bus.Options{Entities: entities, Keys: []bus.Key{{Name: "hub", Secret: s.bus, Rights: bus.All}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, namespace.Close()) })
	account, err := blobs.Open(blobs.Options{Key: s.blob})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, account.Close()) })
	engine, err := cosmos.Open(cosmos.Options{Key: s.cosmos})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })

	cfg = settings("")
	cfg.Data, cfg.InMemory = t.TempDir(), false
	connection := namespace.ConnectionString(onLoopback(t, func(ctx context.Context, l net.Listener) error {
		return namespace.Serve(ctx, l, bus.ServeOptions{})
	}))
	cfg.ServiceBus.Connection = config.Secret(connection)
	cfg.Blob.Endpoint = "http://" + onLoopback(t, func(ctx context.Context, l net.Listener) error {
		return account.Serve(ctx, l, blobs.ServeOptions{})
	}) + "/" + account.Name()
	cfg.Blob.Key = config.Secret(s.blob)
	cfg.Cosmos.Endpoint = "http://" + onLoopback(t, func(ctx context.Context, l net.Listener) error {
		server := &http.Server{Handler: engine.Handler(), ReadHeaderTimeout: time.Minute}
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		return server.Serve(l)
	}) + "/"
	cfg.Cosmos.Key = config.Secret(s.cosmos)
	cfg.Admin.Token = config.Secret(s.admin)
	cfg.Domains = config.Domains{{Name: domain.Charges, Content: domain.Request}}
	return cfg, func() *azservicebus.Client {
		c, err := azservicebus.NewClientFromConnectionString(connection, nil)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
		return c
	}
}

// answer receives one content request, and replies with a URI.
func answer(t *testing.T, client *azservicebus.Client, uri string) {
	t.Helper()
	q := contract.DefaultQueues("Charges")
	session, err := client.AcceptNextSessionForQueue(t.Context(), q.Request, nil)
	require.NoError(t, err)
	messages, err := session.ReceiveMessages(t.Context(), 1, nil)
	require.NoError(t, err)
	require.Len(t, messages, 1)
	require.NoError(t, session.CompleteMessage(t.Context(), messages[0], nil))
	require.NoError(t, session.Close(t.Context()))
	var asked contract.DataBundleRequestContract
	require.NoError(t, proto.Unmarshal(messages[0].Body, &asked))
	body, err := proto.Marshal(&contract.DataBundleResponseContract{
		RequestId: asked.GetRequestId(), RequestIdempotencyId: asked.GetIdempotencyId(),
		Reply: &contract.DataBundleResponseContract_Success{Success: &contract.DataBundleResponseContract_FileResource{ContentUri: uri}},
	})
	require.NoError(t, err)
	out, err := client.NewSender(q.Reply, nil)
	require.NoError(t, err)
	require.NoError(t, out.SendMessage(t.Context(), &azservicebus.Message{
		Body: body, SessionID: &asked.RequestId, ApplicationProperties: contract.Properties(contract.DataBundleResponse, asked.GetIdempotencyId(), time.Now(), uuid.New()),
	}, nil))
	require.NoError(t, out.Close(t.Context()))
}

func TestNoSecretIsPrintedOrLogged(t *testing.T) {
	s := newCanaries()
	cfg, open := s.accounts(t)
	s.notIn(t, "the settings", cfg.String())
	var log safeBuffer
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	logger.Info("settings", "config", cfg)
	n, stop := start(t, cfg, node.Options{Logger: logger})

	status, body := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", strings.Replace(event, `,"payload":{"n":1}`, "", 1))
	require.Equal(t, http.StatusAccepted, status, body)
	client := open()
	for reason, uri := range map[string]string{
		"foreign-content": "https://elsewhere.example/canary?sig=" + s.signature,
		"missing-content": cfg.Blob.Endpoint + "/messagehub-exchange/nothing?sig=" + s.signature,
	} {
		var answering sync.WaitGroup
		answering.Go(func() { answer(t, client, uri) })
		status, body = call(t, http.MethodGet, n.URL()+"/v1/peek", "a", "")
		answering.Wait()
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, body, reason)
		s.notIn(t, "an actor", body)
	}
	for _, path := range []string{"/metrics", "/readyz", "/healthz"} {
		_, body = call(t, http.MethodGet, n.URL()+path, "", "")
		s.notIn(t, path, body)
	}
	require.NoError(t, stop())
	s.notIn(t, "the log", log.String())
}

func TestNoSecretIsPrintedWhenItIsWrong(t *testing.T) {
	s := newCanaries()
	good, _ := s.accounts(t)
	for what, spoil := range map[string]func(*config.Config){
		"another key of blobs": func(c *config.Config) {
			c.Blob.Key = config.Secret(base64.StdEncoding.EncodeToString([]byte("canary")))
		},
		"no key of blobs": func(c *config.Config) { c.Blob.Key = "canary?" },
		"another key of Cosmos": func(c *config.Config) {
			c.Cosmos.Key = config.Secret(base64.StdEncoding.EncodeToString([]byte("canary")))
		},
		"no key of Cosmos":     func(c *config.Config) { c.Cosmos.Key = "canary?" },
		"no connection string": func(c *config.Config) { c.ServiceBus.Connection = "canary" },
		"half of one":          func(c *config.Config) { c.ServiceBus.Connection = "Endpoint=sb://x;SharedAccessKey=canary" },
		"no token":             func(c *config.Config) { c.Admin.Token = "canary" },
	} {
		cfg := good
		spoil(&cfg)
		var log safeBuffer
		_, err := node.Open(t.Context(), cfg, node.Options{Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		require.Error(t, err, what)
		require.NotContains(t, err.Error(), "\n", what)
		s.notIn(t, what, err.Error()+log.String())
	}
}

// The bus accepts the key until the hub has started, and then rejects it. The
// hub must not print the key.
func TestNoSecretIsPrintedWhenTheBusRefusesIt(t *testing.T) {
	s := newCanaries()
	cfg, _ := s.accounts(t)
	cfg.ServiceBus.Connection = config.Secret(strings.Replace(cfg.ServiceBus.Connection.Reveal(), s.bus, "canary-that-is-wrong", 1))
	log := &waitingLog{awaited: "give the hub credentials", seen: make(chan struct{})}
	n, stop := start(t, cfg, node.Options{Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	<-log.seen
	status, body := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", strings.Replace(event, `,"payload":{"n":1}`, "", 1))
	require.Equal(t, http.StatusAccepted, status, body)
	status, body = call(t, http.MethodGet, n.URL()+"/v1/peek", "a", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	s.notIn(t, "an actor", body)
	require.NoError(t, stop())
	s.notIn(t, "the log", log.String())
}

// A waitingLog is a log that closes a channel when it contains a text.
type waitingLog struct {
	safeBuffer
	awaited string
	once    sync.Once
	seen    chan struct{}
}

func (w *waitingLog) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.awaited)) {
		w.once.Do(func() { close(w.seen) })
	}
	return w.safeBuffer.Write(p)
}
