package servicebus

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// ClientRetries returns the retry options for the Service Bus clients of this package, ingest and
// contentrequest. These packages retry calls and replace failed clients themselves, so a client
// retries only a few times. A client that never retries spins while it cannot renew its tokens.
func ClientRetries() azservicebus.RetryOptions { return busclient.Retries() }
