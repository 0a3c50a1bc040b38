package cosmos

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A slowContent is a content store in which opening an object takes some time.
type slowContent struct {
	repository.Content
	opening time.Duration
}

func (c slowContent) Open(ctx context.Context, at repository.Section) (io.ReadCloser, error) {
	client.Sleep(ctx, c.opening)
	return c.Content.Open(ctx, at)
}

// The body of the largest bundle, with 51,200 events, may take 5 s. This test uses a twentieth of these
// events.
func TestBody_OfSingleSavesTakesAFractionOfASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const events, limit = 51_200 / 20, 5 * time.Second / 20
		var physics atomic.Bool
		rig := newRig(t, embedded.Options{Latency: &embedded.Latency{
			Base: 5 * time.Millisecond, Jitter: 2 * time.Millisecond,
			Sleep: func(ctx context.Context, d time.Duration) {
				if physics.Load() {
					client.Sleep(ctx, d)
				}
			},
		}})
		repo := rig.node(Options{Exclusive: true, SweepEvery: -1}, true)
		node := hub.New(repo, repo, slowContent{rig.content, 6 * time.Millisecond}, hub.Options{
			Content: map[domain.Origin]domain.ContentMode{domain.TimeSeries: domain.Inline},
		})
		defer node.Close()
		actor := repositorytest.NewActor()
		for i := range events {
			_, err := repo.Save(t.Context(), actor, repositorytest.Events(1, actor, repositorytest.WithPayload(fmt.Sprint(i))))
			require.NoError(t, err)
		}
		physics.Store(true)
		for range 2 { // the first Peek opens the bundle, the second returns it
			began := time.Now()
			peeked, err := node.Peek(t.Context(), hub.PeekRequest{Actor: actor})
			require.NoError(t, err)
			require.Equal(t, events, peeked.Count)
			body, err := peeked.Open(t.Context())
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, body)
			require.NoError(t, err)
			require.NoError(t, body.Close())
			require.Less(t, time.Since(began), limit)
		}
	})
}
