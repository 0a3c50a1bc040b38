// Package baseline contains the layouts that the hub replaces, so that the bench can compare them
// with it: package single, one partition for each recipient, and package original, drawers with a
// document for each event.
package baseline

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/baseline/original"
	"github.com/messagehub/messagehub/bench/baseline/single"
	"github.com/messagehub/messagehub/bench/layout"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// Layouts returns the layouts that the hub replaces, the most recent one first.
func Layouts() []layout.Layout { return []layout.Layout{originalLayout, singleLayout} }

// ports are the ports that the old layouts implement.
type ports interface {
	repository.DataAvailable
	repository.Bundles
}

// singleLayout keeps all data of a recipient in one partition.
var singleLayout = oldLayout("single", single.Provision, func(client *azcosmos.Client, database string) (ports, error) {
	return single.New(client, database, single.Options{Content: memory.NewContent()})
}, "single", "recipient")

// originalLayout has drawers with a document for each event.
var originalLayout = oldLayout("original", original.Provision, func(client *azcosmos.Client, database string) (ports, error) {
	return original.New(client, database, original.Options{Content: memory.NewContent()})
}, "cabinet", "partitionKey")

// oldLayout returns a layout without background work. Its CleanUp deletes the documents of the
// container of events one by one, because the old layouts have no operation that deletes events.
func oldLayout(
	name string,
	provision func(ctx context.Context, client *azcosmos.Client, database string, throughput int32) error,
	open func(client *azcosmos.Client, database string) (ports, error),
	container, key string,
) layout.Layout {
	return layout.Layout{
		Name: name,
		Provision: func(ctx context.Context, a *account.Account, throughput int32) error {
			client, err := a.Client(a.Unmetered())
			if err != nil {
				return err
			}
			defer client.Close()
			return provision(ctx, client, name, throughput)
		},
		Open: func(_ context.Context, a *account.Account, l *account.Line) (*layout.Store, error) {
			client, err := a.Client(l)
			if err != nil {
				return nil, err
			}
			s, err := open(client, name)
			if err != nil {
				return nil, err
			}
			opened := &layout.Store{DataAvailable: s, Bundles: s, Settle: func(context.Context, domain.ActorID) {}, Close: client.Close}
			if o, ok := s.(*original.Repository); ok {
				opened.Ingest = func(ctx context.Context, events []domain.Event) error {
					_, err := o.Ingest(ctx, events)
					return err
				}
			}
			return opened, nil
		},
		CleanUp: func(ctx context.Context, a *account.Account, l *account.Line, _ domain.ActorID) error {
			client, err := a.Client(l)
			if err != nil {
				return err
			}
			defer client.Close()
			c, err := client.NewContainer(name, container)
			if err != nil {
				return err
			}
			return deleteAll(ctx, c, key)
		},
	}
}

// deleteAll deletes every document of a container whose partition key is the member
// key.
func deleteAll(ctx context.Context, c *azcosmos.ContainerClient, key string) error {
	var found []map[string]string
	pager := c.NewQueryItemsPager("SELECT c.id, c."+key+" FROM c", azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			var d map[string]string
			if err := json.Unmarshal(item, &d); err != nil {
				return err
			}
			found = append(found, d)
		}
	}
	if len(found) == 0 {
		return errors.New("there is nothing to clean up")
	}
	for _, d := range found {
		if _, err := c.DeleteItem(ctx, azcosmos.NewPartitionKeyString(d[key]), d["id"], nil); err != nil {
			return err
		}
	}
	return nil
}
