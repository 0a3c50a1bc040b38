package limit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// Objects sends the requests by which the hub stores events of objects in one shard: a read and a
// write for each call, for any number of events. Its copies are in a separate partition.
type Objects struct {
	container *azcosmos.ContainerClient
	etags     map[string]azcore.ETag // etags of the copies, by id
}

// objectCopies is the partition of the copies.
const objectCopies = "limit"

// NewObjects returns Objects over c to a database with the hub's objects.
func NewObjects(c *azcosmos.Client, database string) (*Objects, error) {
	container, err := c.NewContainer(database, "objects")
	if err != nil {
		return nil, err
	}
	return &Objects{container, make(map[string]azcore.ETag)}, nil
}

// ReadHub returns the hub's documents of a kind.
func (o *Objects) ReadHub(ctx context.Context, kind string) (found []json.RawMessage, err error) {
	query := fmt.Sprintf("SELECT * FROM c WHERE c.kind = '%s' AND c.partitionKey != '%s'", kind, objectCopies)
	pager := o.container.NewQueryItemsPager(query, azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			found = append(found, item)
		}
	}
	return found, nil
}

// Store reads the copies of documents and replaces the copies: one copy with a read and a write,
// several copies with a query and a batch.
func (o *Objects) Store(ctx context.Context, documents []json.RawMessage) error {
	copies := make([]rawDocument, len(documents))
	for i, text := range documents {
		if err := json.Unmarshal(text, &copies[i]); err != nil {
			return err
		}
		copies[i] = copies[i].withMember("partitionKey", objectCopies)
		for _, member := range []string{"_rid", "_self", "_etag", "_attachments", "_ts"} {
			delete(copies[i], member)
		}
	}
	if len(copies) == 1 {
		return o.storeOne(ctx, copies[0])
	}
	return o.storeBatch(ctx, copies)
}

// Create stores new documents in one or more batches. Like the hub, it reads nothing before it
// creates a document.
func (o *Objects) Create(ctx context.Context, documents []json.RawMessage) error {
	const limit = 100 // documents per batch
	for len(documents) > 0 {
		n := min(len(documents), limit)
		b := o.container.NewTransactionalBatch(azcosmos.NewPartitionKeyString(objectCopies))
		for _, text := range documents[:n] {
			var d rawDocument
			if err := json.Unmarshal(text, &d); err != nil {
				return err
			}
			b.CreateItem(encodeDocument(d.withMember("partitionKey", objectCopies)), nil)
		}
		if err := o.executeBatch(ctx, b, nil); err != nil {
			return err
		}
		documents = documents[n:]
	}
	return nil
}

func (o *Objects) storeOne(ctx context.Context, d rawDocument) error {
	key := azcosmos.NewPartitionKeyString(objectCopies)
	_, err := o.container.ReadItem(ctx, key, d.id(), nil)
	if missing, ok := errors.AsType[*azcore.ResponseError](err); err != nil && (!ok || missing.StatusCode != http.StatusNotFound) {
		return err
	}
	var stored azcosmos.ItemResponse
	if etag, has := o.etags[d.id()]; has {
		stored, err = o.container.ReplaceItem(ctx, key, d.id(), encodeDocument(d), &azcosmos.ItemOptions{IfMatchEtag: &etag})
	} else {
		stored, err = o.container.CreateItem(ctx, key, encodeDocument(d), nil)
	}
	o.etags[d.id()] = stored.ETag
	return err
}

func (o *Objects) storeBatch(ctx context.Context, documents []rawDocument) error {
	key := azcosmos.NewPartitionKeyString(objectCopies)
	b := o.container.NewTransactionalBatch(key)
	var names []string
	var in []azcosmos.QueryParameter
	for i, d := range documents {
		names = append(names, fmt.Sprint("@p", i))
		in = append(in, azcosmos.QueryParameter{Name: names[i], Value: d.id()})
		if etag, has := o.etags[d.id()]; has {
			b.ReplaceItem(d.id(), encodeDocument(d), &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &etag})
		} else {
			b.CreateItem(encodeDocument(d), nil)
		}
	}
	pager := o.container.NewQueryItemsPager("SELECT * FROM c WHERE c.id IN ("+strings.Join(names, ", ")+")", key, &azcosmos.QueryOptions{QueryParameters: in})
	for pager.More() {
		if _, err := pager.NextPage(ctx); err != nil {
			return err
		}
	}
	return o.executeBatch(ctx, b, documents)
}

// executeBatch executes a batch, and stores the etags of the documents that it wrote.
func (o *Objects) executeBatch(ctx context.Context, b azcosmos.TransactionalBatch, documents []rawDocument) error {
	stored, err := o.container.ExecuteTransactionalBatch(ctx, b, nil)
	switch {
	case err != nil:
		return err
	case !stored.Success:
		return fmt.Errorf("a batch of %d operations was refused", len(stored.OperationResults))
	}
	for i, d := range documents {
		o.etags[d.id()] = stored.OperationResults[i].ETag
	}
	return nil
}
