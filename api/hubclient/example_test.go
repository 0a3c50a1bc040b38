package hubclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/messagehub/messagehub/api/hubclient"
)

// A domain announces data. It may announce an event again: the hub counts the event as a duplicate.
func ExampleClient_Announce() {
	client, err := hubclient.New(hubclient.Options{URL: "https://hub.example.org", Token: tokenFromFile})
	if err != nil {
		panic(err)
	}
	announced, err := client.Announce(context.Background(), []hubclient.Event{{
		ID: "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41", Recipient: "5790001330552", Origin: "TimeSeries",
		ContentType: "measured-data", DocumentType: "NotifyValidatedMeasureData", SupportsBundling: true, Weight: 1,
		Payload: json.RawMessage(`{"kwh": [1.5, 1.25]}`),
	}})
	if refused, ok := errors.AsType[*hubclient.Problem](err); ok {
		for _, fault := range refused.Errors {
			fmt.Printf("event %d: %s\n", fault.Index(), fault.Detail)
		}
	}
	if announced != nil {
		fmt.Printf("%d are stored, %d were before\n", announced.Accepted, announced.Duplicates)
	}
}

// An actor fetches its bundles until the process is interrupted.
func ExampleClient_Consume() {
	client, err := hubclient.New(hubclient.Options{URL: "https://hub.example.org", Token: tokenFromFile})
	if err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err = client.Consume(ctx, "5790001330552", func(_ context.Context, b *hubclient.Bundle) error {
		var events []struct {
			ID      string          `json:"id"`
			Payload json.RawMessage `json:"payload"`
		}
		if err := json.NewDecoder(b).Decode(&events); err != nil {
			return err
		}
		return store(b.ID, len(events)) // store skips events with known ids, because a bundle may be delivered twice
	})
	if err != nil {
		panic(err)
	}
}

// A Consumer fetches the bundles of one group of domains. It logs failures, and gives up when all
// attempts have failed for an hour.
func ExampleConsumer() {
	client, err := hubclient.New(hubclient.Options{URL: "https://hub.example.org", Token: tokenFromFile})
	if err != nil {
		panic(err)
	}
	consumer := &hubclient.Consumer{
		Client: client, Actor: "5790001330552", Group: "timeseries", Patience: time.Hour, Logger: slog.Default(),
	}
	err = consumer.Run(context.Background(), func(_ context.Context, b *hubclient.Bundle) error { return store(b.ID, 0) })
	if refused, ok := errors.AsType[*hubclient.Problem](err); ok {
		fmt.Println(refused.Title, refused.Instance)
	}
}

// tokenFromFile reads the token from a file that another process updates.
func tokenFromFile(context.Context) (string, error) {
	token, err := os.ReadFile("/run/secrets/messagehub-token")
	return strings.TrimSpace(string(token)), err
}

func store(bundle string, events int) error {
	_, err := fmt.Println(bundle, events)
	return err
}
