package domainclient_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
	account "github.com/messagehub/messagehub/repository/content/embedded"
)

// openExchange opens a container that the hub and the domain share.
func openExchange(t testing.TB) *container.Client {
	t.Helper()
	a, err := account.Open(account.Options{Containers: []string{contract.ExchangeContainer}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	key, err := azblob.NewSharedKeyCredential(a.Name(), a.Key())
	require.NoError(t, err)
	client, err := azblob.NewClientWithSharedKeyCredential(a.Endpoint(), key, &azblob.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: a.Transport()}})
	require.NoError(t, err)
	return client.ServiceClient().NewContainerClient(contract.ExchangeContainer)
}

// A market consists of a bus, an exchange, a hub and the options of a domain.
type market struct {
	*busHub
	bus      *embedded.Namespace
	exchange *container.Client
}

func newMarket(t testing.TB) *market {
	bus := openBus(t)
	return &market{newHub(t, bus), bus, openExchange(t)}
}

func (m *market) options() domainclient.Options {
	return domainclient.Options{Origin: "Charges", Connect: connectTo(m.bus), Exchange: m.exchange}
}

// run runs a task of a domain until stop is called or the test ends. stop returns the error of the
// task.
func run(t testing.TB, part func(context.Context) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	var err error
	go func() {
		defer close(ended)
		err = part(ctx)
	}()
	stop = func() error {
		cancel()
		<-ended
		return err
	}
	t.Cleanup(func() { require.NoError(t, stop()) })
	return stop
}

// serve replies to requests until stop is called or the test ends.
func serve(t testing.TB, o domainclient.Options, h domainclient.Handler) (stop func() error) {
	t.Helper()
	domain := newClient(t, o)
	return run(t, func(ctx context.Context) error { return domain.Serve(ctx, h) })
}

// A testBundle is a bundle whose content the test requests.
type testBundle struct {
	process string
	events  []uuid.UUID
	format  string
	wait    time.Duration // time that the hub waits for the content; 0 means 30 s
}

// requestContent requests the content of a bundle, and returns the id of the request.
func (m *market) requestContent(b testBundle) (request string) {
	m.t.Helper()
	request, list := uuid.NewString(), b.process+"_ids"
	_, err := m.exchange.NewBlockBlobClient(list).UploadBuffer(m.t.Context(), contract.EncodeIDs(b.events), nil)
	require.NoError(m.t, err)
	if b.format == "" {
		b.format = contract.FormatJSON
	}
	if b.wait == 0 {
		b.wait = contract.ReplyWithin
	}
	body, err := proto.Marshal(&contract.DataBundleRequestContract{
		RequestId: request, IdempotencyId: b.process, DataAvailableNotificationReferenceId: list,
		MessageType: "PriceList", ResponseFormatRequested: b.format, ResponseFromatVersion: 1,
	})
	require.NoError(m.t, err)
	reply := "charges-reply"
	m.send("charges", &azservicebus.Message{
		SessionID: &request, ReplyToSessionID: &request, ReplyTo: &reply, TimeToLive: &b.wait, Body: body,
		ApplicationProperties: contract.Properties(contract.RequestDataBundle, b.process, time.Now(), uuid.New()),
	})
	return request
}

// receiveReply waits for the reply to a request.
func (m *market) receiveReply(request string) *contract.DataBundleResponseContract {
	m.t.Helper()
	reply := m.takeSession("charges-reply", request, 1)[0]
	require.Equal(m.t, 30*time.Second, *reply.TimeToLive)
	require.Equal(m.t, contract.DataBundleResponse, reply.ApplicationProperties[contract.PropertyMessageType])
	var got contract.DataBundleResponseContract
	require.NoError(m.t, proto.Unmarshal(reply.Body, &got))
	require.Equal(m.t, request, got.GetRequestId())
	require.Equal(m.t, reply.ApplicationProperties[contract.PropertyCorrelation], got.GetRequestIdempotencyId())
	return &got
}

// receiveFailure waits for the reply to a request, and requires that the reply is a failure.
func (m *market) receiveFailure(request string) (reason, description string) {
	m.t.Helper()
	got := m.receiveReply(request)
	require.NotNil(m.t, got.GetFailure(), "%v", got)
	return got.GetFailure().GetReason().String(), got.GetFailure().GetFailureDescription()
}

// receiveContent waits for the reply to a request, and returns the content at the URI in the reply.
func (m *market) receiveContent(request, process string) []byte {
	m.t.Helper()
	got := m.receiveReply(request)
	blob := m.exchange.NewBlobClient(process + "_data")
	require.Equal(m.t, blob.URL(), got.GetSuccess().GetContentUri(), "%v", got)
	resp, err := blob.DownloadStream(m.t.Context(), nil)
	require.NoError(m.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(m.t, err)
	return text
}

// notify sends a notice.
func (m *market) notify(process, recipient string) {
	m.t.Helper()
	body, err := proto.Marshal(&contract.DequeueContract{DataAvailableNotificationReferenceId: process + "_ids", MarketOperator: recipient})
	require.NoError(m.t, err)
	m.send("charges-dequeue", &azservicebus.Message{MessageID: &process, Body: body})
}

// await receives a value from a channel. It fails the test after a time limit.
func await[T any](t testing.TB, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
	return got
}

// text returns a reader of the text s.
func text(s string) io.Reader { return bytes.NewReader([]byte(s)) }
