package items

import (
	"context"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// Provision creates the database, if it is missing, and the containers. It takes the path of the
// partition key for each container name. Each container has its own throughput, and the default
// index of Cosmos DB: every path of every item.
func Provision(ctx context.Context, client *azcosmos.Client, database string, throughput int32, containers map[string]string) error {
	_, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: database}, nil)
	if err != nil && Status(err) != http.StatusConflict {
		return fmt.Errorf("create database %s: %w", database, err)
	}
	db, err := client.NewDatabase(database)
	if err != nil {
		return fmt.Errorf("open database %s: %w", database, err)
	}
	units := azcosmos.NewManualThroughputProperties(throughput)
	for name, key := range containers {
		_, err := db.CreateContainer(ctx, azcosmos.ContainerProperties{
			ID: name,
			PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{
				Kind: azcosmos.PartitionKeyKindHash, Paths: []string{key}, Version: 2,
			},
		}, &azcosmos.CreateContainerOptions{ThroughputProperties: &units})
		if err != nil {
			return fmt.Errorf("create container %s/%s: %w", database, name, err)
		}
	}
	return nil
}
