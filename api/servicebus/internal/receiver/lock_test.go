package receiver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"
)

func TestTheLockThatEndsFirstIsRenewedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := newMessageLocks[string](nil)
		add := func(lasts time.Duration) *Message[string] {
			until := time.Now().Add(lasts)
			m := &Message[string]{ReceivedMessage: &azservicebus.ReceivedMessage{LockedUntil: &until}}
			locks.addMessage(m, time.Now())
			return m
		}
		first, _, wait := locks.nextDue()
		require.Nil(t, first)
		require.Equal(t, time.Second, wait)

		var want []*Message[string]
		for range 20 {
			want = append(want, add(30*time.Second)) // if several locks expire at the same time, the lock of the first received message is due first
		}
		want = append([]*Message[string]{add(20 * time.Second)}, want...)
		first, _, wait = locks.nextDue()
		require.Nil(t, first)
		require.Equal(t, time.Second, wait)

		<-time.After(15 * time.Second)
		for i, m := range want {
			got, keptFor, _ := locks.nextDue()
			require.Same(t, m, got, "message %d", i)
			locks.extendLock(got, time.Now().Add(keptFor), keptFor)
		}
		first, _, _ = locks.nextDue()
		require.Nil(t, first, "all of them are renewed")
	})
}

func TestLock_OfUnknownDurationIsRenewedSoon(t *testing.T) {
	require.Equal(t, time.Minute, lockDuration(time.Minute))
	require.Equal(t, time.Second, lockDuration(-time.Hour), "the bus's clock is behind")
	require.Equal(t, 5*time.Minute, lockDuration(time.Hour), "it is ahead")
}
