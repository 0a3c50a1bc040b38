package delivery_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/delivery/deliverytest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// standingReads counts the reads of standings.
type standingReads struct {
	repository.Cursors
	mu sync.Mutex
	of map[domain.CursorID]int
}

func (c *standingReads) Standing(ctx context.Context, id domain.CursorID) (domain.Standing, error) {
	c.mu.Lock()
	c.of[id]++
	c.mu.Unlock()
	return c.Cursors.Standing(ctx, id)
}

func (c *standingReads) count(id domain.CursorID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[id]
}

// A lockedLog has the lines that goroutines of an engine have logged.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestAWarning_IsLoggedOnceAnHourForEachReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := &standingReads{of: make(map[domain.CursorID]int)}
		w := deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores {
			s := openMemory(t, clock)
			reads.Cursors, s.Cursors = s.Cursors, reads
			return s
		})
		var log lockedLog
		var recovers atomic.Bool
		policy := domain.Policy{Attempts: 6, First: time.Hour, Max: time.Hour}
		failing := w.Add(&deliverytest.Receiver{Policy: policy, Answer: func(context.Context, delivery.Call) domain.Answer {
			if !recovers.Load() {
				return domain.Answer{Status: 500}
			}
			return domain.Answer{Status: 200}
		}})
		well := w.Add(&deliverytest.Receiver{Policy: policy})
		n := w.Start(delivery.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		synctest.Wait()
		w.Publish(n, 2)
		<-time.After(55 * time.Minute)
		synctest.Wait()
		require.Empty(t, log.String())
		require.Zero(t, n.Warned(domain.ReceiverFailing))
		<-time.After(20 * time.Minute)
		synctest.Wait()
		require.Equal(t, 1, n.Warned(domain.ReceiverFailing))
		require.Zero(t, n.Warned(domain.LastAttempts))
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), "cursor="+failing.ID.String())
		require.Contains(t, log.String(), "failing_since=")
		require.NotContains(t, log.String(), "on_last_attempts")
		<-time.After(3 * time.Hour)
		synctest.Wait()
		require.Equal(t, 1, n.Warned(domain.LastAttempts))
		require.Equal(t, 4, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), "on_last_attempts=2")
		require.Zero(t, reads.count(well.ID), "nothing is read of a receiver that has no trouble")
		recovers.Store(true)
		<-time.After(2 * time.Hour)
		synctest.Wait()
		require.Zero(t, n.Warned(domain.ReceiverFailing))
		require.Zero(t, n.Warned(domain.LastAttempts))
		lines := strings.Count(log.String(), "\n")
		read := reads.count(failing.ID)
		<-time.After(3 * time.Hour)
		synctest.Wait()
		require.Equal(t, lines, strings.Count(log.String(), "\n"))
		require.Equal(t, read, reads.count(failing.ID))
		n.Stop()
	})
}

func TestAWarning_IsLoggedBeforeWaitingMessagesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores { return openMemory(t, clock) })
		r := w.Add(&deliverytest.Receiver{Policy: domain.DefaultPolicy()})
		w.Change(nil, r, true)
		n := w.Start(delivery.Options{})
		synctest.Wait()
		published := w.Clock.Now()
		w.Publish(n, 3)
		<-time.After(repository.MessageRetention - domain.ExpiringWithin - time.Hour)
		synctest.Wait()
		require.Zero(t, n.Warned(domain.MessagesExpiring))
		expires, err := delivery.Expires(t.Context(), w.Stores.Streams, w.Stores.Cursors, r.ID, &domain.Standing{Stream: w.Stream})
		require.NoError(t, err)
		require.WithinDuration(t, published.Add(repository.MessageRetention), expires, 0)
		<-time.After(2 * time.Hour)
		synctest.Wait()
		require.Equal(t, 1, n.Warned(domain.MessagesExpiring))
		w.Change(n, r, false)
		<-time.After(time.Hour)
		synctest.Wait()
		require.Len(t, r.Taken(), 3)
		require.Zero(t, n.Warned(domain.MessagesExpiring))
		n.Stop()
	})
}

// If a receiver is paused, a failed delivery is removed when its message expires.
func TestExpires_IncludesTheRetriesOfAPausedReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores { return openMemory(t, clock) })
		r := w.Add(&deliverytest.Receiver{Policy: domain.DefaultPolicy(), Answer: deliverytest.Status(410)})
		n := w.Start(delivery.Options{})
		synctest.Wait()
		published := w.Clock.Now()
		w.Publish(n, 1)
		<-time.After(time.Minute)
		synctest.Wait()
		n.Stop()
		s, err := w.Stores.Cursors.Standing(t.Context(), r.ID)
		require.NoError(t, err)
		require.Equal(t, domain.Paused, s.State)
		expires, err := delivery.Expires(t.Context(), w.Stores.Streams, w.Stores.Cursors, r.ID, &s)
		require.NoError(t, err)
		require.WithinDuration(t, published.Add(repository.MessageRetention), expires, time.Second)
		s.State = domain.Active
		expires, err = delivery.Expires(t.Context(), w.Stores.Streams, w.Stores.Cursors, r.ID, &s)
		require.NoError(t, err)
		require.Zero(t, expires)
	})
}
