package items

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/embedded/clock"
	"github.com/messagehub/messagehub/domain"
)

// A Container holds items of several partitions.
type Container struct {
	client *azcosmos.ContainerClient
	name   string
}

// Open returns a container of a database, without a request.
func Open(client *azcosmos.Client, database, name string) (Container, error) {
	c, err := client.NewContainer(database, name)
	if err != nil {
		return Container{}, domain.Errorf(domain.Invalid, "open container %s/%s: %w", database, name, err)
	}
	return Container{c, name}, nil
}

// Read reads an item and decodes it into the value into. If the item does not exist, the value does
// not change.
func (c Container) Read(ctx context.Context, partition, id string, into any) (found bool, err error) {
	err = c.sendThrottled(ctx, "read", id, func() error {
		answer, err := c.client.ReadItem(ctx, azcosmos.NewPartitionKeyString(partition), id, nil)
		if err == nil {
			err = decodeItem(answer.Value, into)
		}
		return err
	})
	if Status(err) == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// Create creates an item. If it exists already, the Status of the error is 409.
func (c Container) Create(ctx context.Context, partition string, item any) error {
	return c.writeItem(ctx, "create", partition, item, func(key azcosmos.PartitionKey, body []byte) error {
		_, err := c.client.CreateItem(ctx, key, body, nil)
		return err
	})
}

// Upsert creates an item, or replaces the item with the same id.
func (c Container) Upsert(ctx context.Context, partition string, item any) error {
	return c.writeItem(ctx, "upsert", partition, item, func(key azcosmos.PartitionKey, body []byte) error {
		_, err := c.client.UpsertItem(ctx, key, body, nil)
		return err
	})
}

// Replace replaces an item if it has this etag; "" means any etag. If the item has a different
// etag, the Status of the error is 412.
func (c Container) Replace(ctx context.Context, partition, id string, item any, etag azcore.ETag) error {
	options := &azcosmos.ItemOptions{}
	if etag != "" {
		options.IfMatchEtag = &etag
	}
	return c.writeItem(ctx, "replace "+id, partition, item, func(key azcosmos.PartitionKey, body []byte) error {
		_, err := c.client.ReplaceItem(ctx, key, id, body, options)
		return err
	})
}

// Delete removes an item. A missing item is not an error.
func (c Container) Delete(ctx context.Context, partition, id string) error {
	err := c.sendThrottled(ctx, "delete", id, func() error {
		_, err := c.client.DeleteItem(ctx, azcosmos.NewPartitionKeyString(partition), id, nil)
		return err
	})
	if Status(err) == http.StatusNotFound {
		return nil
	}
	return err
}

func (c Container) writeItem(ctx context.Context, verb, partition string, item any, send func(azcosmos.PartitionKey, []byte) error) error {
	body, err := json.Marshal(item)
	if err != nil {
		return fmt.Errorf("%s in %s: %w", verb, c.name, err)
	}
	return c.sendThrottled(ctx, verb+" an item in partition", partition, func() error {
		return send(azcosmos.NewPartitionKeyString(partition), body)
	})
}

// sendThrottled sends a request, and resends it while it is throttled.
func (c Container) sendThrottled(ctx context.Context, verb, what string, send func() error) error {
	for {
		err := send()
		refused, ok := errors.AsType[*azcore.ResponseError](err)
		switch {
		case err == nil:
			return nil
		case !ok:
			return domain.Errorf(domain.Uncertain, "%s %s of %s: %w", verb, what, c.name, err)
		case refused.StatusCode != http.StatusTooManyRequests:
			return domain.Errorf(kindOf(refused.StatusCode), "%s %s of %s: %w", verb, what, c.name, err)
		}
		if err := waitForRetry(ctx, refused.RawResponse); err != nil {
			return domain.Errorf(domain.Busy, "%s %s of %s: throttled: %w", verb, what, c.name, err)
		}
	}
}

// waitForRetry waits for the time that a throttled response requests.
func waitForRetry(ctx context.Context, answer *http.Response) error {
	ms, err := strconv.Atoi(answer.Header.Get("x-ms-retry-after-ms"))
	if err != nil {
		ms = 1000
	}
	return clock.Sleep(ctx, time.Duration(ms)*time.Millisecond)
}

func kindOf(status int) domain.Kind {
	if status >= http.StatusInternalServerError || status == http.StatusRequestTimeout {
		return domain.Uncertain
	}
	return domain.Unknown
}

// Status returns the status with which a request was rejected. It returns 0 if err has a different
// cause.
func Status(err error) int {
	if refused, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return refused.StatusCode
	}
	return 0
}

func decodeItem(item []byte, into any) error {
	if err := json.Unmarshal(item, into); err != nil {
		return domain.Errorf(domain.Damaged, "an item is not of the layout: %w", err)
	}
	return nil
}
