package simulate

import (
	"bytes"
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/domainclient"
)

// lies answers a request with what no domain should, before the right answer comes.
// Whatever it is, the actor is told that the domain has failed, or gets what the first
// answer was, for good.
func (m *maker) lies(ctx context.Context, line *busLine, exchange *container.Client, r *domainclient.Request) {
	within := contract.ReplyWithin
	message := &azservicebus.Message{
		MessageID: &r.ID, SessionID: &r.ID, TimeToLive: &within,
		ApplicationProperties: contract.Properties(contract.DataBundleResponse, r.IdempotencyID, m.w.began, m.newID()),
	}
	uri := ""
	switch m.d.n(8) {
	case 0:
		message.Body = []byte("this is no reply")
	case 1:
		message.Body = nil
	case 2:
		message.Body = []byte("it cannot even be read")
		message.ApplicationProperties["DeadLetterReason"] = 7
	case 3:
		uri = "https://elsewhere.example/container/blob"
	case 4: // the hub's own
		uri = exchange.NewBlobClient(r.List).URL()
	case 5:
		uri = exchange.NewBlobClient("nothing is there").URL()
	case 6:
		uri = m.leaves(ctx, exchange, "nothing", nil)
	default: // more than a hub with wrong settings takes
		uri = m.leaves(ctx, exchange, "much", bytes.Repeat([]byte("much "), 20))
	}
	if uri != "" {
		body, err := proto.Marshal(&contract.DataBundleResponseContract{
			RequestId: r.ID, RequestIdempotencyId: r.IdempotencyID,
			Reply: &contract.DataBundleResponseContract_Success{Success: &contract.DataBundleResponseContract_FileResource{ContentUri: uri}},
		})
		if err != nil {
			m.w.fail(err)
		}
		message.Body = body
	}
	client, err := m.w.connecting(line)()
	if err != nil {
		m.w.fail(err)
		return
	}
	defer m.w.closing(client.Close) //nolint:contextcheck // it has a time of its own
	sender, err := client.NewSender(contract.DefaultQueues(m.w.plan.requested.String()).Reply, nil)
	if err == nil {
		err = sender.SendMessage(ctx, message, nil)
	}
	if err == nil {
		m.w.reached("a domain gave a wrong answer")
	}
}

// leaves leaves a blob in the exchange, and returns its URI.
func (m *maker) leaves(ctx context.Context, exchange *container.Client, name string, content []byte) string {
	blob := exchange.NewBlockBlobClient(name)
	_, _ = blob.UploadBuffer(ctx, content, &blockblob.UploadBufferOptions{}) // if it is not there, that is a lie as well
	return blob.URL()
}
