package delivery_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/delivery/deliverytest"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestACallThatPanics_IsAFailedAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores { return openMemory(t, clock) })
		r := w.Add(&deliverytest.Receiver{Policy: domain.DefaultPolicy(), Answer: func(_ context.Context, c delivery.Call) domain.Answer {
			if c.Attempt == 0 && c.Entry.Position.Number == 0 {
				panic("a mistake of the caller")
			}
			return domain.Answer{Status: 200}
		}})
		n := w.Start(delivery.Options{})
		w.Publish(n, 2)
		<-time.After(time.Hour)
		n.Stop()
		attempts := make(map[int64]int)
		for _, c := range r.Calls() {
			attempts[c.Entry.Number]++
		}
		require.Equal(t, map[int64]int{0: 2, 1: 1}, attempts)
	})
}
