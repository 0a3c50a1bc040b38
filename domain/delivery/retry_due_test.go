package delivery_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/delivery/deliverytest"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// On a busy machine, time passes between two lines of code. However long that is, a retry is
// called soon after it is due.
func TestARetry_IsCalledIfItBecomesDueWhileTheTimerIsSet(t *testing.T) {
	const pause = 20 * time.Millisecond
	for step := time.Millisecond; step <= 2*pause; step += time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			w := deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores { return openMemory(t, clock) })
			r := w.Add(&deliverytest.Receiver{Policy: domain.QueuePolicy([]time.Duration{0, pause}, 2), Answer: deliverytest.Status(500)})
			var passed atomic.Int64 // time that passed while the engine read its clock
			n := w.Start(delivery.Options{Clock: func() time.Time {
				return w.Clock.Now().Add(time.Duration(passed.Add(int64(step))))
			}})
			synctest.Wait()
			w.Publish(n, 1)
			<-time.After(time.Second)
			n.Stop()
			require.Len(t, r.Calls(), 2, "each reading of the clock takes %v", step)
		})
	}
}

// A call that hangs does not delay the retries of its receiver.
func TestARetry_IsCalledWhileAnotherCallHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores { return openMemory(t, clock) })
		r := w.Add(&deliverytest.Receiver{Policy: domain.QueuePolicy([]time.Duration{0, time.Second}, 2), Answer: func(ctx context.Context, c delivery.Call) domain.Answer {
			if c.Entry.Position.Number == 0 {
				<-ctx.Done()
				return domain.Answer{Error: ctx.Err().Error()}
			}
			return domain.Answer{Status: 500}
		}})
		n := w.Start(delivery.Options{})
		synctest.Wait()
		w.Publish(n, 2)
		<-time.After(2 * time.Second)
		n.Stop()
		var calls []deliverytest.RecordedCall
		for _, c := range r.Calls() {
			if c.Entry.Number == 1 {
				calls = append(calls, c)
			}
		}
		require.Len(t, calls, 2)
		require.InDelta(t, 1, calls[1].At.Sub(calls[0].At).Seconds(), 0.1)
	})
}
