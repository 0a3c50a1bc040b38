package api_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/hub"
)

// peekAs returns the text of a Peek request of an actor.
func peekAs(actor string) string {
	return "GET /v1/peek HTTP/1.1\r\nHost: hub\r\nX-Actor-Id: " + actor + "\r\n\r\n"
}

// bigEvent returns an event of actor with a payload of 1 MB.
func bigEvent(n int, actor string) testEvent {
	return newEvent(n, "recipient", actor, "weight", 1024, "payload", strings.Repeat("x", 1<<20-2))
}

func TestPeek_ReleasesItsSlotBeforeTheBodyIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := serveBubble(t, newFixture(t, func(o *api.Options, _ *hub.Options) { o.Limits.Peeks = 2 }))
		for i, actor := range []string{"first", "second", "third"} {
			require.Equal(t, 202, b.exchange(b.dial(), post(array(bigEvent(i+1, actor)))).StatusCode)
		}
		start := time.Now()
		for _, actor := range []string{"first", "second", "first", "second"} { // these clients do not read their bodies
			require.Equal(t, 200, b.exchange(b.dial(), peekAs(actor)).StatusCode)
		}
		synctest.Wait()
		resp := b.exchange(b.dial(), peekAs("third"))
		require.Equal(t, 200, resp.StatusCode)
		n, err := io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.Greater(t, n, int64(1<<20))
		require.Zero(t, time.Since(start))
	})
}
