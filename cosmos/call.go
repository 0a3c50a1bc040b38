package cosmos

import (
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
)

// A call is a [client.Call] of the repository.
type call struct {
	*client.Call
	r *Repository

	uncached     atomic.Bool // drawers are read even if this node has them in memory; see whyUnreadable
	withoutHints bool        // it writes no filters: a Save soon would not use them
}

// beginCall returns a call with a full budget. Metrics have it under name.
func (r *Repository) beginCall(name string) *call {
	return &call{Call: r.client.Begin(name), r: r}
}

// renewCall returns a call like c, with a full budget.
func (c *call) renewCall() *call { return &call{Call: c.Renew(), r: c.r, withoutHints: c.withoutHints} }

// A database has the containers of the repository.
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
