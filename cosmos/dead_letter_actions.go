package cosmos

import (
	"context"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A deadLetterOrderDoc is the record of an operator's action on dead letters of a queue. It is in the
// same container as the records of orders about actors, in a partition for the queue.
type deadLetterOrderDoc struct {
	ID        string    `json:"id"`
	Recipient string    `json:"recipient"` // the partition key; see deadLetterOrderKey
	Kind      string    `json:"kind"`      // always "record"
	What      string    `json:"what"`
	Who       string    `json:"who"`
	Why       string    `json:"why"`
	When      time.Time `json:"when"`
	Queue     string    `json:"queue"`
	Number    int64     `json:"number,omitempty,string"` // a string, because a float64 does not hold every number exactly
	MessageID string    `json:"messageId,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Outcome   string    `json:"outcome,omitempty"`
	Letters   int       `json:"letters,omitempty"`
	TTL       int       `json:"ttl,omitempty"` // seconds from the last write to the removal by Cosmos
	client.FormatNumber
}

// deadLetterOrderKey returns the partition key of the records of a queue. No recipient has this id.
func deadLetterOrderKey(queue string) string { return "|dead letters|" + queue }

var _ repository.DeadLetterActions = (*Repository)(nil)

// BeginDeadLetterAction implements repository.DeadLetterActions.
func (r *Repository) BeginDeadLetterAction(ctx context.Context, action repository.DeadLetterAction) (repository.DeadLetterAction, error) {
	if err := action.Check(); err != nil {
		return repository.DeadLetterAction{}, err
	}
	c := r.beginCall("begin dead letter action")
	action.ID, action.When = recordKind+"."+r.client.NewID(), r.opts.Clock().UTC()
	key := deadLetterOrderKey(action.Queue)
	doc := &deadLetterOrderDoc{
		ID: action.ID, Recipient: key, Kind: recordKind, What: action.What, Who: action.Who, Why: action.Why, When: action.When,
		Queue: action.Queue, Number: action.Number, MessageID: action.MessageID, Reason: action.Reason, Outcome: action.Outcome, Letters: action.Letters,
		TTL: int(recordsKept / time.Second),
	}
	err := c.Retry(ctx, func() error {
		// A crash after this write leaves a record without an outcome; the action has not begun.
		_, err := c.Put(ctx, r.db.bundles, key, action.ID, "", doc)
		if client.IsRefused(err) { // an earlier attempt may have created the record
			return c.mustExist(ctx, r.db.bundles, key, action.ID)
		}
		return err
	})
	return action, c.Outcome("record an action about dead letters", err)
}

// EndDeadLetterAction implements repository.DeadLetterActions.
func (r *Repository) EndDeadLetterAction(ctx context.Context, action repository.DeadLetterAction) error {
	c := r.beginCall("end dead letter action")
	var changes azcosmos.PatchOperations
	changes.AppendSet("/outcome", action.Outcome)
	changes.AppendSet("/letters", action.Letters)
	err := c.Retry(ctx, func() error {
		// A crash before this write leaves a record without an outcome.
		err := c.Patch(ctx, r.db.bundles, deadLetterOrderKey(action.Queue), action.ID, changes, &deadLetterOrderDoc{})
		if client.IsNotFound(err) {
			return domain.Errorf(domain.NotFound, "no action about dead letters has the id %q", action.ID)
		}
		return err
	})
	return c.Outcome("record the outcome of an action about dead letters", err)
}

// DeadLetterActions implements repository.DeadLetterActions.
func (r *Repository) DeadLetterActions(ctx context.Context, queue string, limit int) ([]repository.DeadLetterAction, error) {
	docs, err := client.All[deadLetterOrderDoc](ctx, r.beginCall("dead letter orders").Query(r.db.bundles, deadLetterOrderKey(queue), "SELECT * FROM c WHERE c.kind = @kind",
		azcosmos.QueryParameter{Name: "@kind", Value: recordKind}))
	if err != nil {
		return nil, client.Classify("records of dead letters", err)
	}
	slices.SortStableFunc(docs, func(a, b *deadLetterOrderDoc) int { return b.When.Compare(a.When) })
	var orders []repository.DeadLetterAction
	for _, d := range docs[:min(len(docs), limit)] {
		orders = append(orders, repository.DeadLetterAction{
			AdminAction: repository.AdminAction{Who: d.Who, Why: d.Why}, ID: d.ID, What: d.What, When: d.When, Queue: d.Queue,
			Number: d.Number, MessageID: d.MessageID, Reason: d.Reason, Outcome: d.Outcome, Letters: d.Letters,
		})
	}
	return orders, nil
}
