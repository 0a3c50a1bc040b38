package domainclient

import (
	"errors"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"
)

// A client that has lost its connection may open a link before it has shown its token.
func TestAccessIsRefusedOnlyIfItIsAgainAndAgain(t *testing.T) {
	lost := errors.New("the connection is lost")
	for _, refused := range []error{
		&azservicebus.Error{Code: azservicebus.CodeUnauthorizedAccess},
		&amqp.Error{Condition: amqp.ErrCondUnauthorizedAccess},
	} {
		var p patience
		for _, step := range []struct {
			err  error
			ends bool
		}{{refused, false}, {refused, false}, {lost, false}, {refused, false}, {refused, false}, {refused, true}} {
			require.Equal(t, step.ends, p.endsWith(step.err))
		}
	}
	var p patience
	require.True(t, p.endsWith(&azservicebus.Error{Code: azservicebus.CodeNotFound}), "what is not there is not there")
}
