package domainclient

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/contract"
)

// contentName returns the name of the blob to which the content of the bundle is written.
func (r *Request) contentName() string { return contract.ContentName(r.IdempotencyID) }

// sendReply sends the hub the reply to its request.
func (s *serveLoop) sendReply(ctx context.Context, a *Answer) error {
	m, err := s.c.replyMessage(a)
	if err != nil {
		return err
	}
	return s.c.retryUntilDone(ctx, "reply", func() error {
		return s.replies.withSender(ctx, func(sender *azservicebus.Sender) error { return sender.SendMessage(ctx, m, nil) })
	})
}

func (c *Client) replyMessage(a *Answer) (*azservicebus.Message, error) {
	response := &contract.DataBundleResponseContract{RequestId: a.Request.ID, RequestIdempotencyId: a.Request.IdempotencyID}
	if a.Failure == nil {
		response.Reply = &contract.DataBundleResponseContract_Success{
			Success: &contract.DataBundleResponseContract_FileResource{ContentUri: a.URI},
		}
	} else {
		response.Reply = &contract.DataBundleResponseContract_Failure{Failure: &contract.DataBundleResponseContract_RequestFailure{
			Reason:             contract.DataBundleResponseContract_RequestFailure_Reason(a.Failure.Reason),
			FailureDescription: clipText(a.Failure.Description),
		}}
	}
	body, err := proto.Marshal(response)
	if err != nil {
		return nil, err
	}
	random, err := c.newID()
	if err != nil {
		return nil, err
	}
	within := contract.ReplyWithin
	return &azservicebus.Message{
		MessageID: &a.Request.ID, SessionID: &a.Request.ID, TimeToLive: &within, Body: body,
		ApplicationProperties: contract.Properties(contract.DataBundleResponse, a.Request.IdempotencyID, c.o.Now(), random),
	}, nil
}
