package ingest

import (
	"encoding/json"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/memory"
)

const (
	someID    = "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"
	someActor = "6f1c2d3e-4b5a-4678-8a9b-0c1d2e3f4a5b"
)

// testDecoder returns the decoder of a hub with the default origins. Events of the origin Charges
// may contain payloads.
func testDecoder(limits MessageLimits) *decoder {
	store := memory.New(memory.Options{})
	options := hub.Options{Content: map[domain.Origin]domain.ContentMode{domain.Charges: domain.Inline}}
	return newDecoder(limits, hub.New(store, store, store, options).Check)
}

// validNotification returns a valid announcement in protobuf.
func validNotification(change ...func(*contract.DataAvailableNotificationContract)) *contract.DataAvailableNotificationContract {
	sent := &contract.DataAvailableNotificationContract{
		UUID: someID, Recipient: someActor, MessageType: "timeseries", Origin: "TimeSeries",
		SupportsBundling: true, RelativeWeight: 3, DocumentType: "RSM012",
	}
	for _, c := range change {
		c(sent)
	}
	return sent
}

// validFields returns the fields of an announcement in JSON.
func validFields() map[string]any {
	return map[string]any{
		"id": someID, "recipient": someActor, "origin": "TimeSeries", "contentType": "timeseries",
		"documentType": "RSM012", "supportsBundling": true, "weight": 3,
	}
}

// validEvent returns the event that validNotification and validFields announce.
func validEvent(t testing.TB) domain.Event {
	id, err := domain.ParseEventID(someID)
	require.NoError(t, err)
	recipient, err := domain.ParseActorID(someActor)
	require.NoError(t, err)
	contentType, err := domain.ParseContentType("timeseries")
	require.NoError(t, err)
	documentType, err := domain.ParseDocumentType("RSM012")
	require.NoError(t, err)
	return domain.Event{
		ID: id, Recipient: recipient, Origin: domain.TimeSeries, ContentType: contentType,
		DocumentType: documentType, SupportsBundling: true, Weight: 3,
	}
}

func inContract(t testing.TB, sent *contract.DataAvailableNotificationContract) *azservicebus.ReceivedMessage {
	body, err := proto.Marshal(sent)
	require.NoError(t, err)
	return &azservicebus.ReceivedMessage{Body: append([]byte{}, body...)}
}

func inJSON(t testing.TB, contentType string, body any) *azservicebus.ReceivedMessage {
	text, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		require.NoError(t, err)
		text = string(b)
	}
	return &azservicebus.ReceivedMessage{Body: []byte(text), ContentType: &contentType}
}

// cloudEventOf returns the fields of a CloudEvent with the given data.
func cloudEventOf(data any) map[string]any {
	return map[string]any{"specversion": "1.0", "id": "ce-1", "source": "/timeseries", "type": "DataAvailable", "data": data}
}
