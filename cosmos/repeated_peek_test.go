package cosmos

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// repeatingClients is the number of clients that repeatedly peek for an actor while the actor dequeues.
const repeatingClients = 32

// While many clients peek through two nodes, a Dequeue must not be delayed. Each request to the store
// takes 5 to 7 ms of simulated time.
func TestDequeue_IsNotDelayedByRepeatedPeeks(t *testing.T) {
	for _, consistency := range []string{"Strong", "Session"} {
		t.Run(consistency, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { dequeueDuringPeeks(t, consistency) })
		})
	}
}

func dequeueDuringPeeks(t *testing.T, consistency string) {
	s := newTrust(t)
	s.rig = newRig(t, embedded.Options{Consistency: consistency})
	random := seeded(1)
	delay := func(*http.Request) time.Duration {
		return 5*time.Millisecond + time.Duration(random()%uint64(2*time.Millisecond))
	}
	nodes := []*Repository{s.slowNode(Options{}, delay), s.slowNode(Options{}, delay)}
	ctx, stop := context.WithCancel(t.Context())
	var repeating sync.WaitGroup
	peeks := make([][]time.Duration, repeatingClients)
	for i := range peeks {
		repeating.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				if _, err := nodes[i%2].NextUnacknowledged(context.Background(), s.actor, allGroups); err != nil {
					assert.ErrorIs(t, err, domain.ErrNoData)
				}
				peeks[i] = append(peeks[i], time.Since(began))
			}
		})
	}
	var dequeues []time.Duration
	rounds := 25
	if raced {
		rounds = 8
	}
	for range rounds {
		s.save(nodes[0], 0, repositorytest.Events(1, s.actor))
		b, err := repositorytest.Peek(t.Context(), s.stores(nodes[0]), s.actor, allGroups, domain.BundleID{})
		require.NoError(t, err)
		client.Sleep(t.Context(), 10*time.Millisecond) // in the meantime, the repeating clients peek
		began := time.Now()
		_, err = nodes[1].Acknowledge(t.Context(), s.actor, b.ID)
		require.NoError(t, err)
		dequeues = append(dequeues, time.Since(began))
	}
	stop()
	repeating.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(peeks...)))
	t.Logf("Dequeue: worst %v; %d Peeks: p99 %v", slices.Max(dequeues), len(all), all[len(all)*99/100])
	assert.LessOrEqual(t, slices.Max(dequeues), 100*time.Millisecond, "a Dequeue")
	assert.LessOrEqual(t, all[len(all)*99/100], 100*time.Millisecond, "the p99 of a Peek")
}
