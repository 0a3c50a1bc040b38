package ingest

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"
)

// FuzzDecode decodes arbitrary messages. decode does not panic. It returns either events for the
// session's recipient that the hub accepts, or a rejection that the bus accepts.
func FuzzDecode(f *testing.F) {
	const object, cloud, batch = "application/json", "application/cloudevents+json", "application/cloudevents-batch+json"
	for _, m := range []*azservicebus.ReceivedMessage{
		inContract(f, validNotification()),
		{Body: []byte("\x30\x81\x80\x80\x80\x10")},
		inJSON(f, object, validFields()),
		inJSON(f, object, []any{validFields(), map[string]any{"weight": 0}}),
		inJSON(f, cloud, cloudEventOf(validFields())),
		inJSON(f, cloud, `{"specversion":"1.0","id":"`+someID+`","subject":"`+someActor+`","source":"s","type":"t","data":{"weight":1},"x":null,"time":"2026-03-01T12:00:00Z"}`),
		inJSON(f, batch, []any{cloudEventOf([]any{validFields()}), 7}),
		inJSON(f, "application/json; charset=\xff", "{"),
	} {
		contentType := ""
		if m.ContentType != nil {
			contentType = *m.ContentType
		}
		f.Add(m.Body, contentType, someActor, "DataAvailable", byte(7))
	}
	d := testDecoder(MessageLimits{})
	f.Fuzz(func(t *testing.T, body []byte, contentType, session, messageType string, has byte) {
		m := &azservicebus.ReceivedMessage{Body: body}
		if has&1 != 0 {
			m.ContentType = &contentType
		}
		if has&2 != 0 {
			m.SessionID = &session
		}
		if has&4 != 0 {
			m.ApplicationProperties = map[string]any{"MessageType": messageType}
		}
		events, _, rejected := d.decode(m)
		if rejected != nil {
			require.Empty(t, events)
			requireFits(t, rejected)
			return
		}
		require.NoError(t, d.check(events))
		for i := range events {
			require.NoError(t, events[i].Check())
			if m.SessionID != nil {
				require.Equal(t, plainRecipient(session), plainRecipient(events[i].Recipient.String()))
			}
		}
	})
}
