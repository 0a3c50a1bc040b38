// Command openapi uses the client that oapi-codegen generates from openapi.yaml. It
// has to compile.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
)

func main() {
	if err := exchangeEvent(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

// exchangeEvent sends an event to an actor, peeks as this actor, and dequeues.
func exchangeEvent(ctx context.Context, url, actor string) error {
	hub, err := NewClientWithResponses(url)
	if err != nil {
		return err
	}
	event := Event{
		Id: "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41", Recipient: actor, Origin: "TimeSeries", ContentType: "measured-data",
		DocumentType: "D", SupportsBundling: true, Weight: 1, Payload: map[string]any{"kwh": []float64{1.5, 1.25}},
	}
	sent, err := hub.SendDataAvailableWithResponse(ctx, nil, []Event{event})
	if err != nil {
		return err
	}
	if refused := sent.ApplicationproblemJSON409; refused != nil {
		return fmt.Errorf("%s: %s", refused.Type, refused.Detail)
	}
	peeked, err := hub.PeekWithResponse(ctx, &PeekParams{XActorId: &actor})
	if err != nil {
		return err
	}
	if peeked.StatusCode() == http.StatusNoContent {
		return nil
	}
	bundle, err := peeked.JSON200.AsManifest()
	if err != nil {
		return err
	}
	fmt.Println(len(bundle), "events, the first with", bundle[0].Payload)
	_, err = hub.DequeueWithResponse(ctx, peeked.Headers200.MessageId, &DequeueParams{XActorId: &actor})
	return err
}
