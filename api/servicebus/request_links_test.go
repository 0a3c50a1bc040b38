package servicebus_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/domain"
)

// attaches reports whether a frame asks the bus for a link to send to a queue.
func attaches(frame, queue string) bool {
	return strings.Contains(frame, " <- ") && strings.Contains(frame, " attach ") && strings.Contains(frame, " Target="+queue+" ")
}

// refuses reports whether a frame ends a link because its queue is disabled.
func refuses(frame string) bool {
	return strings.Contains(frame, " -> ") && strings.Contains(frame, " detach ") && strings.Contains(frame, "com.microsoft:entity-disabled")
}

// turn enables or disables a queue.
func (o *operator) turn(queue string, status admin.EntityStatus) {
	got, err := o.door.GetQueue(context.Background(), queue, nil)
	if assert.NoError(o.t, err) {
		got.Status = &status
		_, err = o.door.UpdateQueue(context.Background(), queue, got.QueueProperties, nil)
		assert.NoError(o.t, err)
	}
}

// The bus refuses the first link. All who have waited for it find none, and by now
// each of them could open one.
func TestAHerdOfRequestsOpensOneLink(t *testing.T) {
	timeless(func(t *testing.T) {
		const queue, many = "timeseries", 100
		var links, refused atomic.Int64
		var o *operator
		n := openBus(t, embedded.Options{Frames: func(frame string) {
			switch {
			case attaches(frame, queue):
				links.Add(1)
			case refuses(frame) && refused.Add(1) == 1:
				o.turn(queue, admin.EntityStatusActive)
			}
		}})
		o = newOperator(t, n)
		o.turn(queue, admin.EntityStatusDisabled)
		r := newRequests(t, n)
		ctx, leave := context.WithTimeout(t.Context(), amply)
		defer leave()
		var herd []*asking
		for range many {
			herd = append(herd, begin(ctx, r, aRequest()))
		}
		synctest.Wait()
		require.EqualValues(t, 1, refused.Load())
		require.EqualValues(t, 2, links.Load(), "one that was refused, and one for all")
		require.EqualValues(t, many-1, n.Stats().Active)
		leave()
		var unlucky []error
		for _, a := range herd {
			if _, err := a.wait(); !errors.Is(err, context.Canceled) {
				unlucky = append(unlucky, err)
			}
		}
		require.Len(t, unlucky, 1)
		require.Equal(t, domain.Unavailable, domain.KindOf(unlucky[0]), "%v", unlucky)
		require.ErrorContains(t, unlucky[0], "the queue is disabled")
	})(t)
}

// The bus has ended the link, and all find out at the same time. Who finds out first
// takes neither the sender nor the connection from the others.
func TestAHerdThatLosesItsLinkOpensOne(t *testing.T) {
	timeless(func(t *testing.T) {
		const queue, many = "timeseries-dequeue", 100
		var links atomic.Int64
		n := openBus(t, embedded.Options{Frames: func(frame string) {
			if attaches(frame, queue) {
				links.Add(1)
			}
		}})
		s, o := newNotices(t, n), newOperator(t, n)
		require.NoError(t, s.Notify(t.Context(), aNotice(0)))
		o.remove(queue)
		require.Error(t, s.Notify(t.Context(), aNotice(0)), "which ends the link")
		_, err := o.door.CreateQueue(t.Context(), queue, nil)
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

// One opens the link, and does not notice that its time is over. The others do, and
// whoever comes next is not held up.
func TestWhoeverWaitsForALinkLeavesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const herd = 10
		n := openBus(t, embedded.Options{})
		release := make(chan struct{})
		var dialled atomic.Int64
		s := newNotices(t, n, func(o *servicebus.NoticeOptions) {
			o.Open = func() (*azservicebus.Client, error) {
				return clientWith(n.ConnectionString(""), func(context.Context) (net.Conn, error) {
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
