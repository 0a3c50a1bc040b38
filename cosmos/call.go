package cosmos

import (
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
)

// A call is a [client.Call] with access to the repository.
type call struct {
	*client.Call
	r *Repository

	uncached     atomic.Bool // drawers are read from the store even if this node has them in memory; see whyUnreadable
	withoutHints bool        // the call writes no filters, because no Save will soon use them
}

// beginCall returns a call with a full budget. name identifies the call in metrics.
func (r *Repository) beginCall(name string) *call {
	return &call{Call: r.client.Begin(name), r: r}
}

// renewCall returns a call like c, with a full budget.
func (c *call) renewCall() *call { return &call{Call: c.Renew(), r: c.r, withoutHints: c.withoutHints} }

// A database contains the containers of the repository.
type database struct {
	*client.Database
	catalog, cabinets, bundles *azcosmos.ContainerClient
}

func openContainers(db *client.Database) database {
	open := func(name string) *azcosmos.ContainerClient {
		container, err := db.Container(name)
		if err != nil {
			panic(err) // only an empty name causes an error
		}
		return container
	}
	return database{Database: db, catalog: open(catalogContainer), cabinets: open(cabinetContainer), bundles: open(bundlesContainer)}
}
