package contentrequest_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/contentrequest"
	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/internal/bustest"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// longTimeout is the time limit of a request to which the domain replies. No test waits that long.
const longTimeout = 2 * time.Minute

var (
	bundle    = bustest.Must(domain.ParseBundleID("0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"))
	recipient = bustest.Must(domain.ParseActorID("5790001330552"))
	process   = hub.ProcessID(bundle, recipient)
)

func aRequest() hub.ContentRequest {
	return hub.ContentRequest{
		Recipient: recipient, Origin: domain.TimeSeries, Bundle: bundle,
		ContentType: bustest.Must(domain.ParseContentType("RSM012")), Format: domain.XML, Version: "1.2",
		List: "ab/0001/" + process + "_1-7", By: time.Now().Add(longTimeout),
	}
}

// newRequests creates Requests on the bus n and closes them at the end of the test.
func newRequests(t testing.TB, n *embedded.Namespace, change ...func(*contentrequest.Options)) *contentrequest.Requests {
	t.Helper()
	o := contentrequest.Options{Open: bustest.Clients(n), Queues: bustest.QueuesOf(bustest.Origins...)}
	for _, c := range change {
		c(&o)
	}
	r := contentrequest.New(o)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	return r
}

// sendRequest sends a request with a time limit of longTimeout.
func sendRequest(t testing.TB, r *contentrequest.Requests, q hub.ContentRequest) (hub.Reply, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
	defer cancel()
	return r.Request(ctx, q)
}

// A simulatedDomain receives requests and replies as the test specifies.
type simulatedDomain struct {
	client  *azservicebus.Client
	queues  contract.Queues
	sending sync.Mutex
	replies *azservicebus.Sender
	seen    map[string]bool // ids of received requests
}

// A receivedRequest is a request as a domain receives it.
type receivedRequest struct {
	*contract.DataBundleRequestContract
	message *azservicebus.ReceivedMessage
}

// newDomain returns a domain that does not receive requests yet.
func newDomain(t testing.TB, n *embedded.Namespace, origin domain.Origin) *simulatedDomain {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(n.ConnectionString(""), &azservicebus.ClientOptions{
		RetryOptions:     azservicebus.RetryOptions{MaxRetries: 100, RetryDelay: time.Millisecond, MaxRetryDelay: 50 * time.Millisecond},
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return n.Dial(ctx) },
	})
	require.NoError(t, err)
	d := &simulatedDomain{client: client, queues: contract.DefaultQueues(origin.String()), seen: make(map[string]bool)}
	d.replies, err = client.NewSender(d.queues.Reply, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return d
}

// serve calls serveAs for domain.TimeSeries.
func serve(t testing.TB, n *embedded.Namespace, answer func(receivedRequest) []*azservicebus.Message) *simulatedDomain {
	t.Helper()
	return serveAs(t, n, domain.TimeSeries, answer)
}

// serveAs runs the domain origin until the test ends. For each request, the domain sends the
// messages that answer returns, in one batch. It handles requests concurrently.
func serveAs(t testing.TB, n *embedded.Namespace, origin domain.Origin, answer func(receivedRequest) []*azservicebus.Message) *simulatedDomain {
	t.Helper()
	d := newDomain(t, n, origin)
	ctx, stop := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() {
		for {
			q, ok := d.receiveRequest(ctx)
			if !ok {
				return
			}
			working.Go(func() {
				if replies := answer(q); ctx.Err() == nil {
					d.send(t, replies...)
				}
			})
		}
	})
	t.Cleanup(func() {
		stop()
		working.Wait()
	})
	return d
}

// receiveRequest receives the next request, even if connections are lost. It skips redelivered and
// repeated requests. It returns false when ctx has ended.
func (d *simulatedDomain) receiveRequest(ctx context.Context) (receivedRequest, bool) {
	for ctx.Err() == nil {
		session, err := d.client.AcceptNextSessionForQueue(ctx, d.queues.Request, nil)
		if err != nil {
			continue
		}
		messages, err := session.ReceiveMessages(ctx, 1, nil)
		var q contract.DataBundleRequestContract
		isRequest := err == nil && len(messages) == 1 && proto.Unmarshal(messages[0].Body, &q) == nil
		if isRequest {
			brief, cancel := context.WithTimeout(context.Background(), time.Second)
			_ = session.CompleteMessage(brief, messages[0], nil)
			cancel()
		}
		_ = session.Close(context.Background())
		if isRequest && !d.seen[q.RequestId] {
			d.seen[q.RequestId] = true
			return receivedRequest{&q, messages[0]}, true
		}
	}
	return receivedRequest{}, false
}

func (d *simulatedDomain) send(t testing.TB, replies ...*azservicebus.Message) {
	if len(replies) == 0 {
		return
	}
	d.sending.Lock() // Microsoft's client loses track of links that several goroutines open at the same time
	defer d.sending.Unlock()
	batch, err := d.replies.NewMessageBatch(context.Background(), nil)
	if !assert.NoError(t, err) {
		return
	}
	for _, m := range replies {
		assert.NoError(t, batch.AddMessage(m, nil))
	}
	assert.NoError(t, d.replies.SendMessageBatch(context.Background(), batch, nil))
}

// nextRequest receives the next request, for a test that sends the reply itself.
func (d *simulatedDomain) nextRequest(t testing.TB) receivedRequest {
	t.Helper()
	q, ok := d.receiveRequest(t.Context())
	require.True(t, ok)
	return q
}

// deadReply waits for a dead letter of the reply queue.
func (d *simulatedDomain) deadReply(t testing.TB) *azservicebus.ReceivedMessage {
	t.Helper()
	r, err := d.client.NewReceiverForQueue(d.queues.Reply, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	require.NoError(t, err)
	defer r.Close(context.Background())
	for {
		messages, err := r.ReceiveMessages(t.Context(), 1, nil)
		require.NoError(t, err)
		if len(messages) == 1 {
			require.NoError(t, r.CompleteMessage(t.Context(), messages[0], nil))
			return messages[0]
		}
	}
}

// reply returns a message for the session that the request names.
func (q receivedRequest) reply(r *contract.DataBundleResponseContract) *azservicebus.Message {
	return q.raw(bustest.Must(proto.Marshal(r)))
}

func (q receivedRequest) raw(body []byte) *azservicebus.Message {
	ttl := contract.ReplyWithin
	return &azservicebus.Message{Body: body, SessionID: q.message.ReplyToSessionID, TimeToLive: &ttl}
}

// content returns a reply that reports that the content is at uri.
func (q receivedRequest) content(uri string) *azservicebus.Message {
	return q.reply(&contract.DataBundleResponseContract{
		RequestId: q.RequestId, RequestIdempotencyId: q.IdempotencyId, Reply: success(uri),
	})
}

func success(uri string) *contract.DataBundleResponseContract_Success {
	return &contract.DataBundleResponseContract_Success{Success: &contract.DataBundleResponseContract_FileResource{ContentUri: uri}}
}

func failure(reason int32, text string) *contract.DataBundleResponseContract_Failure {
	return &contract.DataBundleResponseContract_Failure{Failure: &contract.DataBundleResponseContract_RequestFailure{
		Reason: contract.DataBundleResponseContract_RequestFailure_Reason(reason), FailureDescription: text,
	}}
}

// A backgroundRequest is a request that runs in another goroutine.
type backgroundRequest struct {
	reply hub.Reply
	err   error
	done  chan struct{}
}

// startRequest sends a request in the background.
func startRequest(ctx context.Context, r *contentrequest.Requests, q hub.ContentRequest) *backgroundRequest {
	a := &backgroundRequest{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.reply, a.err = r.Request(ctx, q)
	}()
	return a
}

func (a *backgroundRequest) wait() (hub.Reply, error) {
	<-a.done
	return a.reply, a.err
}

// A manualContext exceeds its deadline only when the test calls end.
type manualContext struct {
	context.Context
	mu    sync.Mutex
	over  chan struct{}
	ended bool
}

func newManualContext() *manualContext {
	return &manualContext{Context: context.Background(), over: make(chan struct{})}
}

// end makes the context exceed its deadline, once all goroutines wait. Earlier, the domain might
// already have received a request that the bus has not yet accepted.
func (p *manualContext) end() {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	close(p.over)
}

func (p *manualContext) Done() <-chan struct{} { return p.over }

func (p *manualContext) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return context.DeadlineExceeded
	}
	return nil
}
