package servicebus_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/internal/bustest"
	"github.com/messagehub/messagehub/domain"
)

// The bus ends the link, and all callers notice the loss at the same time. Together they open one
// new link, and none closes a sender or connection that another caller uses.
func TestConcurrentNoticesOpenOneLinkAfterALoss(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		const queue, many = "timeseries-dequeue", 100
		var links atomic.Int64
		n := bustest.Open(t, embedded.Options{Frames: func(frame string) {
			if bustest.IsSendLink(frame, queue) {
				links.Add(1)
			}
		}})
		s, o := newNotices(t, n), bustest.NewOperator(t, n)
		require.NoError(t, s.Notify(t.Context(), aNotice(0)))
		o.Delete(queue)
		require.Error(t, s.Notify(t.Context(), aNotice(0)), "which ends the link")
		_, err := o.Client.CreateQueue(t.Context(), queue, nil)
		require.NoError(t, err)
		synctest.Wait()
		var herd sync.WaitGroup
		for i := range byte(many) {
			herd.Go(func() { assert.NoError(t, s.Notify(t.Context(), aNotice(i))) })
		}
		herd.Wait()
		require.EqualValues(t, 2, links.Load(), "one that was lost, and one for all")
		require.EqualValues(t, 1, n.Stats().Connections)
		noticesOf(t, n, many)
	})(t)
}

// One caller opens the link and ignores the end of its context. The remaining callers return when
// their contexts end, and the next caller does not wait.
func TestOpenLink_ReturnsWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const herd = 10
		n := bustest.Open(t, embedded.Options{})
		release := make(chan struct{})
		var dialled atomic.Int64
		s := newNotices(t, n, func(o *servicebus.NoticeOptions) {
			o.Open = func() (*azservicebus.Client, error) {
				return bustest.NewClient(n.ConnectionString(""), func(context.Context) (net.Conn, error) {
					if dialled.Add(1) == 1 {
						<-release
					}
					return n.Dial(context.Background())
				})
			}
		})
		began := time.Now()
		left := make(chan error, herd)
		for i := range byte(herd) {
			go func() { left <- s.Notify(t.Context(), aNotice(i)) }()
		}
		for range herd - 1 {
			err := <-left
			require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
			require.ErrorContains(t, err, "the bus cannot be reached")
		}
		require.Equal(t, 20*time.Second, time.Since(began))
		require.NoError(t, s.Notify(t.Context(), aNotice(herd)))
		close(release)
		require.Equal(t, domain.Unavailable, domain.KindOf(<-left))
		noticesOf(t, n, 1)
	})
}
