package items

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// MaxBatch is how many writes a Batch takes.
const MaxBatch = 100

// A Batch is a set of writes in one partition that is applied atomically.
type Batch struct {
	writes []write
}

type write struct {
	item any
	id   string       // of the item to be replaced; "" if it is created
	etag *azcore.ETag // that it must have
}

// Create adds an item that must not be there.
func (b *Batch) Create(item any) { b.writes = append(b.writes, write{item: item}) }

// Replace adds an item that must be there, with an etag.
func (b *Batch) Replace(id string, item any, etag azcore.ETag) {
	b.writes = append(b.writes, write{item: item, id: id, etag: &etag})
}

// An Outcome is what became of a Batch.
type Outcome struct {
	Done    bool
	Refused int         // if not done, the index of the write that cannot be
	Status  int         // and why: 409, 412
	Last    azcore.ETag // if done, the etag that the last item has now
}

// Batch carries out b in a partition.
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
