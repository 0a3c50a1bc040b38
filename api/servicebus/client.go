package servicebus

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// ClientRetries are the retries that the clients of this package and of packages ingest
// and contentrequest need: few, because these retry by themselves and replace a client
// that fails, and never none.
func ClientRetries() azservicebus.RetryOptions { return busclient.Retries() }
