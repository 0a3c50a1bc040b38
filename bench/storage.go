package bench

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/bench/account"
)

// A storageUse counts the documents of some containers, and their bytes.
type storageUse struct {
	documents, bytes int
	largest          int // bytes of the largest document
}

// readStorage reads every document of containers, without the modelled latency and charges.
func readStorage(ctx context.Context, a *account.Account, database string, containers ...string) (found storageUse, err error) {
	client, err := a.Client(a.Unmetered())
	if err != nil {
		return storageUse{}, err
	}
	defer client.Close()
	for _, name := range containers {
		c, err := client.NewContainer(database, name)
		if err != nil {
			return storageUse{}, err
		}
		pager := c.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), nil)
		for pager.More() {
			page, err := pager.NextPage(ctx)
			if err != nil {
				return storageUse{}, err
			}
			for _, item := range page.Items {
				found.documents++
				found.bytes += len(item)
				found.largest = max(found.largest, len(item))
			}
		}
	}
	return found, nil
}
