package objectevents_test

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/contract"
)

// An event without a sequencer is identified by the id of its message. A resent message has a new
// id, and is recognized by its former one.
func TestAMessageThatIsSentAgain_IsKnownByItsFormerID(t *testing.T) {
	inBubble(t, func(s *objectSite) {
		const body = `{"eventTime":"2026-03-01T12:00:00Z","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"readings"},"object":{"key":"a"}}}`
		s.sendMessages(body) // this message has the id 0
		s.startReceiver()
		waitInBubble(time.Second)
		require.Equal(s, map[string]int64{"a": 0}, s.keys())

		out, err := s.client.NewSender(queue, nil)
		require.NoError(s, err)
		resent := map[string]any{contract.PropertyResentBy: "an operator", contract.PropertyFormerMessageID: "0"}
		require.NoError(s, out.SendMessage(s.Context(), &azservicebus.Message{Body: []byte(body), MessageID: to.Ptr("resent-1"), ApplicationProperties: resent}, nil))
		require.NoError(s, out.Close(s.Context()))
		waitInBubble(time.Second)
		require.EqualValues(s, 1, s.metric("object_events_total", "stored"))
		require.EqualValues(s, 1, s.metric("object_events_total", "duplicate"))
		require.Empty(s, s.deadLetters())
	})
}
