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

// delaysWithHanging publishes an event every 20 ms to one receiver that answers within 20 ms and to
// others that do not answer. It returns the delays of the calls of the first receiver.
func delaysWithHanging(t *testing.T, hanging int) map[time.Duration]time.Duration {
	delays := make(map[time.Duration]time.Duration)
	synctest.Test(t, func(t *testing.T) {
		const events, every = 2000, 20 * time.Millisecond // the test takes longer than the timeout of a call
		w := deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores { return openMemory(t, clock) })
		for range hanging {
			w.Add(&deliverytest.Receiver{Policy: domain.DefaultPolicy(), Answer: func(ctx context.Context, _ delivery.Call) domain.Answer {
				<-ctx.Done()
				return domain.Answer{Error: ctx.Err().Error()}
			}})
		}
		r := w.Add(&deliverytest.Receiver{Policy: domain.DefaultPolicy(), Answer: deliverytest.After(20*time.Millisecond, 200)})
		n := w.Start(delivery.Options{})
		n.AnswerSettlementsAfter(2 * time.Millisecond)
		synctest.Wait()
		began := time.Now()
		for range events {
			w.Publish(n, 1)
			<-time.After(every)
		}
		<-time.After(time.Minute)
		n.Stop()
		calls := r.Calls()
		require.Len(t, calls, events)
		for _, c := range calls {
			published := time.Duration(c.Entry.Number) * every
			delays[published] = c.At.Sub(began.Add(published))
		}
	})
	return delays
}

// This is rule P11. All receivers are new to the hub and begin to hang at the same time, which
// is the worst case.
func TestHangingReceivers_DoNotDelayAnother(t *testing.T) {
	for _, test := range []struct {
		hanging int
		until   time.Duration // time until the hub has detected the hanging receivers, and no call waits for a worker
	}{{1, 0}, {3, 0}, {8, 3 * time.Second}, {100, 10 * time.Second}} {
		for published, delay := range delaysWithHanging(t, test.hanging) {
			require.LessOrEqual(t, delay, max(test.until-published, 0), "beside %d, published after %v", test.hanging, published)
		}
	}
}
