package deployment

import (
	"fmt"
	"strings"

	"github.com/messagehub/messagehub/cosmos/client"
)

// ContainerArguments returns the arguments of `az cosmosdb sql container
// create` for the properties of a container. The caller adds the arguments for
// the account and the database.
func ContainerArguments(c *client.ContainerSpec) string {
	ttl := ""
	if c.Expires {
		ttl = " --ttl -1"
	}
	return fmt.Sprintf("--name %s --partition-key-path %s --partition-key-version 2%s --max-throughput %d --idx '%s'",
		c.Name, c.PartitionKey, ttl, c.Throughput, c.IndexingPolicy())
}

// Arguments returns the arguments of `az servicebus queue create` for the
// properties of a queue.
func (q *Queue) Arguments() string {
	return fmt.Sprintf("--name %s --enable-session %t %s", q.ResourceName(), q.Sessions, q.Changeable())
}

// ResourceName returns the queue's name in Azure Resource Manager, which does
// not allow slashes.
func (q *Queue) ResourceName() string { return strings.ReplaceAll(q.Name, "/", "~") }

// Changeable returns the arguments of `az servicebus queue update` for the
// properties that can be changed.
func (q *Queue) Changeable() string {
	life := q.TimeToLive
	if life == "" {
		life = Forever
	}
	return fmt.Sprintf("--lock-duration %s --max-delivery-count %d --enable-dead-lettering-on-message-expiration %t --default-message-time-to-live %s --max-size %d",
		q.Lock, q.MaxDeliveries, q.DeadLettersExpired, life, q.MaxMegabytes)
}

// Forever is the text with which Service Bus represents an unlimited time to
// live.
const Forever = "P10675199DT2H48M5.4775807S"
