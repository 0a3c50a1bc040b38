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

// A deadLetterOrderDoc is the record of an order about dead letters of a queue. It is in the same
// container as the records of orders about actors, in a partition of its queue.
type deadLetterOrderDoc struct {
	ID        string    `json:"id"`
	Recipient string    `json:"recipient"` // the partition key; see deadLetterOrderKey
	Kind      string    `json:"kind"`      // always "record"
	What      string    `json:"what"`
	Who       string    `json:"who"`
	Why       string    `json:"why"`
	When      time.Time `json:"when"`
	Queue     string    `json:"queue"`
	Number    int64     `json:"number,omitempty,string"` // more than a float64 holds exactly
	MessageID string    `json:"messageId,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Outcome   string    `json:"outcome,omitempty"`
	Letters   int       `json:"letters,omitempty"`
	TTL       int       `json:"ttl,omitempty"` // seconds after the last write
	client.FormatNumber
}

// deadLetterOrderKey returns the partition key of the records of a queue. No recipient has this id.
func deadLetterOrderKey(queue string) string { return "|dead letters|" + queue }

var _ repository.DeadLetterOrders = (*Repository)(nil)

// BeginDeadLetterOrder implements repository.DeadLetterOrders.
func (r *Repository) BeginDeadLetterOrder(ctx context.Context, order repository.DeadLetterOrder) (repository.DeadLetterOrder, error) {
	if err := order.Check(); err != nil {
		return repository.DeadLetterOrder{}, err
	}
	c := r.beginCall("begin dead letter order")
	order.ID, order.When = recordKind+"."+r.client.NewID(), r.opts.Clock().UTC()
	key := deadLetterOrderKey(order.Queue)
	doc := &deadLetterOrderDoc{
		ID: order.ID, Recipient: key, Kind: recordKind, What: order.What, Who: order.Who, Why: order.Why, When: order.When,
		Queue: order.Queue, Number: order.Number, MessageID: order.MessageID, Reason: order.Reason, Outcome: order.Outcome, Letters: order.Letters,
		TTL: int(recordsKept / time.Second),
	}
	err := c.Retry(ctx, func() error {
		// A crash after this write leaves a record without an outcome, of an order that has not begun.
		_, err := c.Put(ctx, r.db.bundles, key, order.ID, "", doc)
		if client.IsRefused(err) { // an earlier attempt may have written it
			return c.mustExist(ctx, r.db.bundles, key, order.ID)
		}
		return err
	})
	return order, c.Outcome("record an order about dead letters", err)
}

// EndDeadLetterOrder implements repository.DeadLetterOrders.
func (r *Repository) EndDeadLetterOrder(ctx context.Context, order repository.DeadLetterOrder) error {
	c := r.beginCall("end dead letter order")
	var changes azcosmos.PatchOperations
	changes.AppendSet("/outcome", order.Outcome)
	changes.AppendSet("/letters", order.Letters)
	err := c.Retry(ctx, func() error {
		// A crash before this write leaves a record without an outcome.
		err := c.Patch(ctx, r.db.bundles, deadLetterOrderKey(order.Queue), order.ID, changes, &deadLetterOrderDoc{})
		if client.IsNotFound(err) {
			return domain.Errorf(domain.NotFound, "no order about dead letters has the id %q", order.ID)
		}
		return err
	})
	return c.Outcome("record the outcome of an order about dead letters", err)
}

// DeadLetterOrders implements repository.DeadLetterOrders.
func (r *Repository) DeadLetterOrders(ctx context.Context, queue string, limit int) ([]repository.DeadLetterOrder, error) {
	docs, err := client.All[deadLetterOrderDoc](ctx, r.beginCall("dead letter orders").Query(r.db.bundles, deadLetterOrderKey(queue), "SELECT * FROM c WHERE c.kind = @kind",
		azcosmos.QueryParameter{Name: "@kind", Value: recordKind}))
	if err != nil {
		return nil, client.Classify("records of dead letters", err)
	}
	slices.SortStableFunc(docs, func(a, b *deadLetterOrderDoc) int { return b.When.Compare(a.When) })
	var orders []repository.DeadLetterOrder
	for _, d := range docs[:min(len(docs), limit)] {
		orders = append(orders, repository.DeadLetterOrder{
			Order: repository.Order{Who: d.Who, Why: d.Why}, ID: d.ID, What: d.What, When: d.When, Queue: d.Queue,
			Number: d.Number, MessageID: d.MessageID, Reason: d.Reason, Outcome: d.Outcome, Letters: d.Letters,
		})
	}
	return orders, nil
}
