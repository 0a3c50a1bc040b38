package busclient_test

import (
	"context"
	"errors"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

type receiverFunc func(limit int) ([]*azservicebus.ReceivedMessage, error)

func (f receiverFunc) ReceiveMessages(_ context.Context, limit int, _ *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error) {
	return f(limit)
}

func TestReceiveOne(t *testing.T) {
	errBroken := errors.New("broken")
	message := &azservicebus.ReceivedMessage{}
	for name, tc := range map[string]struct {
		from receiverFunc
		got  *azservicebus.ReceivedMessage
		err  string
	}{
		"a message": {func(limit int) ([]*azservicebus.ReceivedMessage, error) {
			require.Equal(t, 1, limit)
			return []*azservicebus.ReceivedMessage{message}, nil
		}, message, ""},
		"an error":   {func(int) ([]*azservicebus.ReceivedMessage, error) { return nil, errBroken }, nil, "broken"},
		"no message": {func(int) ([]*azservicebus.ReceivedMessage, error) { return nil, nil }, nil, busclient.ErrLinkLost.Error()},
		"a panic":    {func(int) ([]*azservicebus.ReceivedMessage, error) { panic("no string") }, nil, "the client panicked: no string"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := busclient.ReceiveOne(t.Context(), tc.from)
			require.Same(t, tc.got, got)
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tc.err)
			}
			require.Equal(t, name == "a panic", busclient.IsPanic(err))
		})
	}
}
