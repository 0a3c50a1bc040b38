package ingest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/internal/eventjson"
)

// BenchmarkDecode decodes one message repeatedly. For comparison, it also decodes the same text
// with the HTTP API's decoder.
func BenchmarkDecode(b *testing.B) {
	var hundred []any
	for n := range 100 {
		fields := validFields()
		fields["id"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", n+1)
		hundred = append(hundred, fields)
	}
	text := inJSON(b, "application/json", hundred)
	for _, bm := range []struct {
		name    string
		message *azservicebus.ReceivedMessage
		events  int
	}{
		{"contract, 1 event", inContract(b, validNotification()), 1},
		{"JSON, 1 event", inJSON(b, "application/json", validFields()), 1},
		{"JSON, 100 events", text, 100},
		{"CloudEvent, 100 events", inJSON(b, "application/cloudevents+json", cloudEventOf(hundred)), 100},
	} {
		b.Run(bm.name, func(b *testing.B) {
			d := testDecoder(MessageLimits{})
			b.ReportAllocs()
			for b.Loop() {
				events, _, rejected := d.decode(bm.message)
				if rejected != nil || len(events) != bm.events {
					b.Fatal(len(events), rejected)
				}
			}
			b.ReportMetric(float64(b.N*bm.events)/b.Elapsed().Seconds(), "events/s")
		})
	}
	b.Run("HTTP, 100 events", func(b *testing.B) {
		d := testDecoder(MessageLimits{})
		b.ReportAllocs()
		for b.Loop() {
			sent, err := eventjson.Read(bytes.NewReader(text.Body), eventjson.Limits{Events: 10_000, Payload: 1 << 20})
			if err != nil || d.check(sent.Events) != nil || len(sent.Events) != 100 {
				b.Fatal(sent, err)
			}
		}
		b.ReportMetric(float64(b.N*100)/b.Elapsed().Seconds(), "events/s")
	})
}
