package items

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// MaxBatch is the maximum number of writes in a Batch.
const MaxBatch = 100

// A Batch is a set of writes in one partition that is applied atomically.
type Batch struct {
	writes []write
}

type write struct {
	item any
	id   string       // id of the replaced item; "" if the item is created
	etag *azcore.ETag // expected etag of the replaced item
}

// Create adds the creation of an item. The batch fails if the item already exists.
func (b *Batch) Create(item any) { b.writes = append(b.writes, write{item: item}) }

// Replace adds the replacement of an existing item with an etag.
func (b *Batch) Replace(id string, item any, etag azcore.ETag) {
	b.writes = append(b.writes, write{item: item, id: id, etag: &etag})
}

// An Outcome is the result of a Batch.
type Outcome struct {
	Done    bool
	Refused int         // index of the rejected write, if Done is false
	Status  int         // status of the rejected write, 409 or 412, if Done is false
	Last    azcore.ETag // new etag of the last item, if Done is true
}

// Batch executes b in a partition.
func (c Container) Batch(ctx context.Context, partition string, b Batch) (Outcome, error) {
	bodies := make([][]byte, len(b.writes))
	for i, w := range b.writes {
		var err error
		if bodies[i], err = json.Marshal(w.item); err != nil {
			return Outcome{}, fmt.Errorf("batch for %s: %w", c.name, err)
		}
	}
	var results []azcosmos.TransactionalBatchResult
	err := c.sendThrottled(ctx, "write a batch to partition", partition, func() error {
		batch := c.client.NewTransactionalBatch(azcosmos.NewPartitionKeyString(partition))
		for i, w := range b.writes {
			if w.id == "" {
				batch.CreateItem(bodies[i], nil)
			} else {
				batch.ReplaceItem(w.id, bodies[i], &azcosmos.TransactionalBatchItemOptions{IfMatchETag: w.etag})
			}
		}
		answer, err := c.client.ExecuteTransactionalBatch(ctx, batch, nil)
		results = answer.OperationResults
		return err
	})
	if err != nil {
		return Outcome{}, err
	}
	for i, r := range results {
		if r.StatusCode >= http.StatusBadRequest && r.StatusCode != http.StatusFailedDependency {
			return Outcome{Refused: i, Status: int(r.StatusCode)}, nil
		}
	}
	return Outcome{Done: true, Last: results[len(results)-1].ETag}, nil
}
