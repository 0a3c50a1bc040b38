package servicebus

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// ClientRetries returns the retry options for the clients of this package and
// of packages ingest and contentrequest. They are few, because these packages
// retry themselves and replace a client that fails, but never zero.
func ClientRetries() azservicebus.RetryOptions { return busclient.Retries() }
