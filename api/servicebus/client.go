package servicebus

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// ClientRetries returns the retry options for the clients of this package and of packages ingest
// and contentrequest. These packages retry calls and replace a failed client themselves, so the
// client retries only a few times. It retries at least once, because a client that never retries
// spins while it cannot renew its tokens.
func ClientRetries() azservicebus.RetryOptions { return busclient.Retries() }
