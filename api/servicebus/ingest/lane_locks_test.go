package ingest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"
)

func TestTheLockThatEndsFirstIsRenewedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := newOwnMessages(nil)
		add := func(lasts time.Duration) *message {
			until := time.Now().Add(lasts)
			m := &message{ReceivedMessage: &azservicebus.ReceivedMessage{LockedUntil: &until}}
			locks.add(m, time.Now())
			return m
		}
		first, _, wait := locks.due()
		require.Nil(t, first)
		require.Equal(t, time.Second, wait)

		var want []*message
		for range 20 {
			want = append(want, add(30*time.Second)) // of those that end at one moment, the first that came
		}
		want = append([]*message{add(20 * time.Second)}, want...)
		first, _, wait = locks.due()
		require.Nil(t, first)
		require.Equal(t, time.Second, wait)

		<-time.After(15 * time.Second)
		for i, m := range want {
			got, keptFor, _ := locks.due()
			require.Same(t, m, got, "message %d", i)
			locks.extend(got, time.Now().Add(keptFor), keptFor)
		}
		first, _, _ = locks.due()
		require.Nil(t, first, "all of them are renewed")
	})
}
