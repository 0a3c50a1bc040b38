package hubtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/messagehub/messagehub/api/hubclient"
	"github.com/messagehub/messagehub/cmd/hubtest"
)

// A test announces events to an actor, and consumes them as the actor.
func ExampleStart() {
	_ = func(t *testing.T) { // in a test file, this is func TestActor(t *testing.T)
		hub := hubtest.Start(t)
		hub.Announce("5790001330552", map[string]any{"kwh": 1.5})
		ctx, stop := context.WithCancel(t.Context())
		err := hub.Client().Consume(ctx, "5790001330552", func(_ context.Context, b *hubclient.Bundle) error {
			stop() // ends Consume after this bundle
			_, err := fmt.Println(b.Type)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
