package node_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

// withListeners returns settings with listeners for domains on free ports. The
// domain Charges creates the content of its bundles.
func withListeners(dir string) config.Config {
	cfg := settings(dir)
	cfg.BusListen, cfg.BlobListen = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Domains = config.Domains{{Name: domain.Charges, Content: domain.Request}}
	return cfg
}

// newCharges returns a client of the domain Charges, which is connected to the
// listeners of n.
func newCharges(t testing.TB, n *node.Node) *domainclient.Client {
	t.Helper()
	key, err := container.NewSharedKeyCredential(embedded.WellKnownAccount, embedded.WellKnownKey)
	require.NoError(t, err)
	url := fmt.Sprintf("http://%s/%s/messagehub-exchange", n.BlobAddr(), embedded.WellKnownAccount)
	exchange, err := container.NewClientWithSharedKeyCredential(url, key, nil)
	require.NoError(t, err)
	c, err := domainclient.New(domainclient.Options{
		Origin:   "Charges",
		Connect:  domainclient.ConnectionString("Endpoint=sb://" + n.BusAddr().String() + ";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"),
		Exchange: exchange,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.WithoutCancel(t.Context()))) })
	return c
}

// chargesFor returns n events of the domain Charges for an actor.
func chargesFor(actor string, n int) []domainclient.Event {
	events := make([]domainclient.Event, n)
	for i := range events {
		events[i] = domainclient.Event{ID: uuid.New(), Recipient: actor, ContentType: "ChargePriceList", DocumentType: "D18", SupportsBundling: true, Weight: 1}
	}
	return events
}

// answerWithEventIDs creates the content of a bundle: the ids of the bundle's
// events, one per line.
func answerWithEventIDs(ctx context.Context, r *domainclient.Request) (io.Reader, error) {
	ids, err := r.EventIDs(ctx)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintln(&b, id)
	}
	return strings.NewReader(b.String()), nil
}

func idsIn(events []domainclient.Event) string {
	var b strings.Builder
	for i := range events {
		fmt.Fprintln(&b, events[i].ID)
	}
	return b.String()
}

func TestADomainAnnouncesProducesContentAndIsNotified(t *testing.T) {
	for name, dir := range map[string]string{"in a folder": t.TempDir(), "in memory": ""} {
		t.Run(name, func(t *testing.T) {
			n, stop := start(t, withListeners(dir), node.Options{})
			charges := newCharges(t, n)
			ctx, end := context.WithCancel(t.Context())
			told := make(chan *domainclient.Notice, 1)
			var domains sync.WaitGroup
			domains.Go(func() { _ = charges.Serve(ctx, answerWithEventIDs) })
			domains.Go(func() {
				_ = charges.Notices(ctx, func(_ context.Context, n *domainclient.Notice) error { told <- n; return nil })
			})

			const actor = "5790001330552"
			events := chargesFor(actor, 5)
			taken, err := charges.Send(t.Context(), events)
			require.NoError(t, err)
			require.Equal(t, 5, taken)
			resp, body := get(t, n.URL()+"/v1/peek?wait=60s&format=xml", "X-Actor-Id", actor)
			require.Equal(t, http.StatusOK, resp.StatusCode, body)
			require.Equal(t, "application/xml", resp.Header.Get("Content-Type"))
			require.NotEmpty(t, body)
			require.True(t, strings.HasPrefix(idsIn(events), body), "the first events, in their order")
			status, _ := call(t, http.MethodDelete, n.URL()+"/v1/dequeue/"+resp.Header.Get("MessageId"), actor, "")
			require.Equal(t, http.StatusOK, status)
			notice := <-told
			require.Equal(t, actor, notice.Recipient)
			require.Equal(t, resp.Header.Get("MessageId")+"_"+actor, notice.ID)
			ids, err := notice.EventIDs(t.Context())
			require.NoError(t, err)
			require.Equal(t, strings.Count(body, "\n"), len(ids))
			end()
			domains.Wait()
			require.NoError(t, stop())
		})
	}
}

func TestMessagesOnTheBusSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	idle := withListeners(dir) // the FIFO queue is configured as a domain's request queue, so that this node does not receive from it
	idle.Domains[0].Queues = contract.Queues{Request: idle.ServiceBus.FIFO}
	idle.ServiceBus.FIFO = ""
	n, stop := start(t, idle, node.Options{})
	const actor = "5790001330552"
	events := chargesFor(actor, 3)
	_, err := newCharges(t, n).Send(t.Context(), events)
	require.NoError(t, err)
	require.NoError(t, stop())

	n, stop = start(t, withListeners(dir), node.Options{})
	charges := newCharges(t, n)
	ctx, end := context.WithCancel(t.Context())
	var domains sync.WaitGroup
	domains.Go(func() { _ = charges.Serve(ctx, answerWithEventIDs) })
	var got strings.Builder
	for got.Len() < len(idsIn(events)) {
		resp, body := get(t, n.URL()+"/v1/peek?wait=60s", "X-Actor-Id", actor)
		require.Equal(t, http.StatusOK, resp.StatusCode, body)
		got.WriteString(body)
		status, _ := call(t, http.MethodDelete, n.URL()+"/v1/dequeue/"+resp.Header.Get("MessageId"), actor, "")
		require.Equal(t, http.StatusOK, status)
	}
	require.Equal(t, idsIn(events), got.String())
	end()
	domains.Wait()
	require.NoError(t, stop())
}

func TestContentOf50MBIsStreamedByRequest(t *testing.T) {
	n, stop := start(t, withListeners(t.TempDir()), node.Options{})
	charges := newCharges(t, n)
	content := make([]byte, 50<<20)
	_, _ = rand.Read(content) // rand.Read never fails
	ctx, end := context.WithCancel(t.Context())
	var domains sync.WaitGroup
	domains.Go(func() {
		_ = charges.Serve(ctx, func(context.Context, *domainclient.Request) (io.Reader, error) { return bytes.NewReader(content), nil })
	})
	const actor = "5790001330552"
	_, err := charges.Send(t.Context(), chargesFor(actor, 1))
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.URL()+"/v1/peek?wait=60s", http.NoBody)
	require.NoError(t, err)
	req.Header.Set("X-Actor-Id", actor)
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	sum := sha256.New()
	_, err = io.Copy(sum, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	want := sha256.Sum256(content)
	require.Equal(t, want[:], sum.Sum(nil))
	end()
	domains.Wait()
	require.NoError(t, stop())
}

func TestANodeStartsWithoutAListenerWhoseDefaultAddressIsTaken(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	cfg := settings("")
	cfg.BusListen, cfg.BlobListen = taken.Addr().String(), taken.Addr().String()
	var log bytes.Buffer
	n, err := node.Open(t.Context(), cfg, node.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err, "nobody has asked for these addresses: they count as the default ones")
	require.Nil(t, n.BusAddr())
	require.Nil(t, n.BlobAddr())
	require.NoError(t, n.Close())
	require.Contains(t, log.String(), "domains cannot reach this hub at the usual address")

	cfg, err = config.Load(config.Inputs{Environ: []string{
		"MESSAGEHUB_LISTEN=127.0.0.1:0", "MESSAGEHUB_IN_MEMORY=1", "MESSAGEHUB_BLOB_LISTEN=", "MESSAGEHUB_BUS_LISTEN=" + taken.Addr().String(),
	}})
	require.NoError(t, err)
	_, err = node.Open(t.Context(), cfg, node.Options{})
	require.ErrorContains(t, err, "choose another port with --bus-listen")
}

func TestListenersForDomainsAcceptOnlyNamesOfThisMachine(t *testing.T) {
	n, stop := start(t, withListeners(""), node.Options{})
	for service, addr := range map[string]net.Addr{"bus": n.BusAddr(), "exchange": n.BlobAddr()} {
		for host, allowed := range map[string]bool{"127.0.0.1": true, "localhost:1": true, "page.example": false} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr.String()+"/", http.NoBody)
			require.NoError(t, err)
			req.Host = host
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, allowed, resp.StatusCode != http.StatusMisdirectedRequest, "%s by the name %s: its key is known to every web page", service, host)
		}
	}
	require.NoError(t, stop())
}
