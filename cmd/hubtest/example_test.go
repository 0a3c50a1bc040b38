package hubtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/messagehub/messagehub/api/hubclient"
	"github.com/messagehub/messagehub/cmd/hubtest"
)

// A test of an actor announces events to it, and lets it consume them.
func ExampleStart() {
	_ = func(t *testing.T) { // in a test file this is func TestActor(t *testing.T)
		hub := hubtest.Start(t)
		hub.Announce("5790001330552", map[string]any{"kwh": 1.5})
		ctx, stop := context.WithCancel(t.Context())
		err := hub.Client().Consume(ctx, "5790001330552", func(_ context.Context, b *hubclient.Bundle) error {
			stop() // after this bundle
			_, err := fmt.Println(b.Type)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
