package probe

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// A Link is a link to a queue, for receiving or sending.
type Link struct {
	Queue    string
	Sends    bool // true for a link that sends; false for one that receives
	Sessions bool // true if the queue has sessions
}

// An Outcome is the result of opening a link.
type Outcome int

// The outcomes.
const (
	Granted       Outcome = iota
	Denied                // the credential does not have the right
	Missing               // the queue does not exist
	OtherSessions         // Link.Sessions is wrong about whether the queue has sessions
	Disabled              // the queue is disabled
	Unreachable           // the bus did not reply, or replied with an unknown error
)

// A Result is the outcome of opening a link.
type Result struct {
	Link
	Outcome Outcome
	Err     error // nil if the right is granted
}

// atOnce is the maximum number of links that are open at the same time.
const atOnce = 8

// Run opens and closes each link. session is the id of a session that no other client uses. The
// caller must close the client.
func Run(ctx context.Context, client *azservicebus.Client, session string, links []Link) []Result {
	results := make([]Result, len(links))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, link := range links {
		group.Go(func() error {
			err := openLink(ctx, client, session, link)
			results[i] = Result{link, outcomeOf(err), nil}
			if err != nil {
				results[i].Err = busclient.Classify(err)
			}
			return nil
		})
	}
	_ = group.Wait() // each Result contains its error, so Wait returns none
	return results
}

// openLink opens a link and closes it. It ignores an error from closing, which is unrelated to the
// right.
func openLink(ctx context.Context, client *azservicebus.Client, session string, link Link) error {
	var opened interface{ Close(context.Context) error }
	var err error
	switch {
	case link.Sends:
		var sender *azservicebus.Sender
		if sender, err = client.NewSender(link.Queue, nil); err == nil {
			opened = sender
			_, err = sender.NewMessageBatch(ctx, nil) // opens the link to read the maximum message size from the bus
		}
	case link.Sessions:
		var receiver *azservicebus.SessionReceiver
		if receiver, err = client.AcceptSessionForQueue(ctx, link.Queue, session, nil); err == nil {
			opened = receiver
		}
	default:
		var receiver *azservicebus.Receiver
		if receiver, err = client.NewReceiverForQueue(link.Queue, nil); err == nil {
			opened = receiver
			_, err = receiver.PeekMessages(ctx, 1, nil) // peeking opens the link, but neither locks nor removes a message
		}
	}
	if opened != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), busclient.CloseTimeout)
		defer cancel()
		_ = opened.Close(closing)
	}
	return err
}

func outcomeOf(err error) Outcome {
	switch busclient.ReasonOf(err) {
	case busclient.None:
		return Granted
	case busclient.Unauthorized:
		return Denied
	case busclient.NotFound:
		return Missing
	case busclient.NotAllowed:
		return OtherSessions
	case busclient.Disabled:
		return Disabled
	default:
		return Unreachable
	}
}
