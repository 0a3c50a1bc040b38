package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Notify publishes a notice to the stream from which subscribers learn of the recipient's dequeues.
// The call may be repeated: within [repository.IDRetention], a notice is published once. The event
// belongs to the trace of the Peek that opened the bundle.
func (s *Service) Notify(ctx context.Context, n domain.Notice) error {
	stream, messages := domain.DequeuedStream(n.Recipient), []domain.Message{dequeuedMessage(&n)}
	appended, err := s.streams.Append(domain.WithTraceContext(ctx, n.Peeked), stream, messages)
	if err != nil {
		return err
	}
	if appended[0].Outcome == repository.AppendConflict {
		return domain.Errorf(domain.Damaged, "notice %d of bundle %s was published with other content; it is published again once that is forgotten", n.Number, n.Bundle)
	}
	s.appended(stream, messages, appended)
	return nil
}

// dequeuedMessage returns the event that reports a notice. The event depends only on the notice, so
// a repeated Append finds a duplicate. If a bundle is replayed and dequeued again, the new notice
// has a different number, so its event is not a duplicate.
func dequeuedMessage(n *domain.Notice) domain.Message {
	at := n.Since.UTC().Format(time.RFC3339Nano)
	payload, err := json.Marshal(struct {
		Actor    string `json:"actor"`
		Bundle   string `json:"bundleId"`
		Group    string `json:"group"`
		Origin   string `json:"origin"`
		Events   int    `json:"events"`
		Dequeued string `json:"dequeued"`
	}{n.Recipient.String(), n.Bundle.String(), n.Group.String(), n.Origin.String(), n.Events, at})
	if err != nil {
		panic(err) // cannot happen: strings and numbers can be encoded
	}
	id := n.Bundle.String() + "/" + strconv.FormatInt(n.Number, 10)
	return domain.Message{
		ID: id,
		Attributes: map[string]string{
			"specversion": "1.0", "id": fmt.Sprintf("%s/%s", n.Recipient, id), "time": at,
			"source": "/v1/bundles", "type": "messagehub.bundle-dequeued", "subject": n.Recipient.String(),
		},
		ContentType: "application/json", Payload: payload,
	}
}
