package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/domain"
)

// Read reads a document into item and returns its etag.
func (c *Call) Read(ctx context.Context, container *azcosmos.ContainerClient, key, id string, item any) (azcore.ETag, error) {
	var resp azcosmos.ItemResponse
	err := c.sendRequest(ctx, container, false, func(ctx context.Context) (charge float32, err error) {
		resp, err = container.ReadItem(ctx, azcosmos.NewPartitionKeyString(key), id, nil)
		return resp.RequestCharge, err
	})
	if err == nil {
		err = c.Decode(resp.Value, key, item)
	}
	return resp.ETag, err
}

// Put creates a document if etag is empty, and otherwise replaces the document on condition of etag. It
// returns the new etag. If [IsRefused] is true for the error, the caller reads the document back.
func (c *Call) Put(ctx context.Context, container *azcosmos.ContainerClient, key, id string, etag azcore.ETag, item any) (azcore.ETag, error) {
	doc, pk := Encode(item), azcosmos.NewPartitionKeyString(key)
	var written azcore.ETag
	err := c.sendRequest(ctx, container, true, func(ctx context.Context) (float32, error) {
		var resp azcosmos.ItemResponse
		var err error
		if etag == "" {
			resp, err = container.CreateItem(ctx, pk, doc, nil)
		} else {
			resp, err = container.ReplaceItem(ctx, pk, id, doc, &azcosmos.ItemOptions{IfMatchEtag: &etag})
		}
		written = resp.ETag
		return resp.RequestCharge, err
	})
	return written, err
}

// Delete deletes a document on condition of etag.
func (c *Call) Delete(ctx context.Context, container *azcosmos.ContainerClient, key, id string, etag azcore.ETag) error {
	return c.sendRequest(ctx, container, true, func(ctx context.Context) (float32, error) {
		resp, err := container.DeleteItem(ctx, azcosmos.NewPartitionKeyString(key), id, &azcosmos.ItemOptions{IfMatchEtag: &etag})
		return resp.RequestCharge, err
	})
}

// Patch changes members of a document and decodes the result into item. It fails with Damaged if an
// operation does not fit the type of its member.
func (c *Call) Patch(ctx context.Context, container *azcosmos.ContainerClient, key, id string, ops azcosmos.PatchOperations, item any) error {
	var resp azcosmos.ItemResponse
	err := c.sendRequest(ctx, container, true, func(ctx context.Context) (charge float32, err error) {
		resp, err = container.PatchItem(ctx, azcosmos.NewPartitionKeyString(key), id, ops, &azcosmos.ItemOptions{EnableContentResponseOnWrite: true})
		return resp.RequestCharge, err
	})
	if StatusOf(err) == http.StatusBadRequest { // the operation does not fit the type of its member
		return domain.Errorf(domain.Damaged, "patch document %s of partition %s: %w", id, key, err)
	}
	if err != nil {
		return err
	}
	return c.Decode(resp.Value, key, item)
}

// Batch applies the operations that fill adds to the batch, atomically. If an operation is refused,
// [Failure.Operation] of the error is its index. If bodies is true, the results contain the documents
// after the operations.
func (c *Call) Batch(ctx context.Context, container *azcosmos.ContainerClient, key string, bodies bool, fill func(*azcosmos.TransactionalBatch)) ([]azcosmos.TransactionalBatchResult, error) {
	b := container.NewTransactionalBatch(azcosmos.NewPartitionKeyString(key))
	fill(&b)
	var results []azcosmos.TransactionalBatchResult
	err := c.sendRequest(ctx, container, true, func(ctx context.Context) (float32, error) {
		resp, err := container.ExecuteTransactionalBatch(ctx, b, &azcosmos.TransactionalBatchOptions{EnableContentResponseOnWrite: bodies})
		results = resp.OperationResults
		if err == nil && !resp.Success {
			err = batchFailure(results)
		}
		return resp.RequestCharge, err
	})
	return results, err
}

// batchFailure returns the failure of the operation that made a batch fail. The other operations have
// the status 424.
func batchFailure(results []azcosmos.TransactionalBatchResult) error {
	for i, result := range results {
		if status := int(result.StatusCode); status >= 400 && status != http.StatusFailedDependency {
			err := fmt.Errorf("operation %d of a batch of %d: %d %s", i, len(results), status, http.StatusText(status))
			if status == http.StatusForbidden { // see ErrPartitionFull
				err = fmt.Errorf("%w: %w", ErrPartitionFull, err)
			}
			return &Failure{status: status, operation: i, err: err}
		}
	}
	return &Failure{status: http.StatusInternalServerError, err: errors.New("a batch was rolled back without a reason")}
}

// DeleteIfExists deletes a document with any etag. It succeeds if the document does not exist.
func (c *Call) DeleteIfExists(ctx context.Context, container *azcosmos.ContainerClient, key, id string) error {
	err := c.sendRequest(ctx, container, true, func(ctx context.Context) (float32, error) {
		resp, err := container.DeleteItem(ctx, azcosmos.NewPartitionKeyString(key), id, nil)
		return resp.RequestCharge, err
	})
	if StatusOf(err) == http.StatusNotFound {
		return nil
	}
	return err
}
