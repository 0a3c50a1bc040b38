package simulate

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/cosmos/faulty"
)

// contentLimit is the maximum content size that hubs accept.
const contentLimit = 64 << 10

// sendMalformedReply sends a malformed reply to a content request; the domain sends the correct reply later. The actor
// gets a domain failure, or the content of the first valid reply, which is final.
func (m *contentDomain) sendMalformedReply(ctx context.Context, line *busTransport, exchange *container.Client, r *domainclient.Request) {
	within := contract.ReplyWithin
	message := &azservicebus.Message{
		MessageID: &r.ID, SessionID: &r.ID, TimeToLive: &within,
		ApplicationProperties: contract.Properties(contract.DataBundleResponse, r.IdempotencyID, m.sim.Began, m.newID()),
	}
	uri := ""
	kind := m.rng.IntN(8)
	if m.laterRNG.IntN(3) == 0 {
		kind = 7
	}
	switch kind {
	case 0:
		message.Body = []byte("this is no reply")
	case 1:
		message.Body = nil
	case 2:
		message.Body = []byte("it cannot even be read")
		message.ApplicationProperties["DeadLetterReason"] = 7
	case 3:
		uri = "https://elsewhere.example/container/blob"
	case 4: // a blob that the hub itself wrote
		uri = exchange.NewBlobClient(r.List).URL()
	case 5:
		uri = exchange.NewBlobClient("nothing is there").URL()
	case 6:
		uri = m.uploadBlob(ctx, exchange, "nothing", nil)
	default: // content that is too large for every hub, or only for a hub with wrong settings
		size := 20
		switch m.laterRNG.IntN(3) {
		case 0:
			size = contentLimit
		case 1: // the blob is replaced while a hub reads it
			uri = m.uploadBlob(ctx, exchange, replacedBlob, bytes.Repeat([]byte("before "), 20))
		}
		if uri == "" {
			uri = m.uploadBlob(ctx, exchange, "much", bytes.Repeat([]byte("much "), size))
		}
	}
	if uri != "" {
		body, err := proto.Marshal(&contract.DataBundleResponseContract{
			RequestId: r.ID, RequestIdempotencyId: r.IdempotencyID,
			Reply: &contract.DataBundleResponseContract_Success{Success: &contract.DataBundleResponseContract_FileResource{ContentUri: uri}},
		})
		if err != nil {
			m.sim.Fail(err)
		}
		message.Body = body
	}
	client, err := m.sim.busConnector(line)()
	if err != nil {
		m.sim.Fail(err)
		return
	}
	defer m.sim.closeInTime(client.Close) //nolint:contextcheck // closing has a timeout of its own
	sender, err := client.NewSender(contract.DefaultQueues(m.sim.plan.requestedOrigin.String()).Reply, nil)
	if err == nil {
		err = sender.SendMessage(ctx, message, nil)
	}
	if err == nil {
		m.sim.MarkReached("a domain gave a wrong answer")
	}
}

// replacedBlob is the name of a blob that is replaced whenever half of its content was read.
const replacedBlob = "changing"

// replaceHalfRead replaces replacedBlob when half of its content was read, and truncates the response.
func (x *httpExchange) replaceHalfRead(resp *http.Response) *http.Response {
	if resp.StatusCode >= http.StatusMultipleChoices || x.req.Method != http.MethodGet || !strings.HasSuffix(x.req.URL.Path, "/"+replacedBlob) {
		return resp
	}
	sim := x.transport.sim
	access, err := newDirectAccess(sim)
	if err == nil {
		_, err = access.blobs.UploadBuffer(context.WithoutCancel(x.req.Context()), exchangeContainer, replacedBlob, bytes.Repeat([]byte("behind "), 20), nil)
	}
	half, rerr := faulty.Truncated.Do(doerFunc(func(*http.Request) (*http.Response, error) { return resp, nil }), x.req)
	if err = errors.Join(err, rerr); err != nil {
		sim.Fail(err)
		return resp
	}
	sim.MarkReached("a content was replaced while it was read")
	return half
}

// uploadBlob stores a blob in the shared container, and returns its URI.
func (m *contentDomain) uploadBlob(ctx context.Context, exchange *container.Client, name string, content []byte) string {
	blob := exchange.NewBlockBlobClient(name)
	_, _ = blob.UploadBuffer(ctx, content, &blockblob.UploadBufferOptions{}) // if the upload fails, no blob has this URI, so the reply is malformed as well
	return blob.URL()
}
