package contentrequest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/internal/bustest"
	"github.com/messagehub/messagehub/domain"
)

// isRefusal reports whether frame ends a link with the error that its queue is disabled.
func isRefusal(frame string) bool {
	return strings.Contains(frame, " -> ") && strings.Contains(frame, " detach ") && strings.Contains(frame, "com.microsoft:entity-disabled")
}

// The bus refuses the first link, for which many requests wait. Only one of these requests may open
// the next link.
func TestConcurrentRequestsOpenOneLink(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		const queue, many = "timeseries", 100
		var links, refused atomic.Int64
		var o *bustest.Operator
		n := bustest.Open(t, embedded.Options{Frames: func(frame string) {
			switch {
			case bustest.IsSendLink(frame, queue):
				links.Add(1)
			case isRefusal(frame) && refused.Add(1) == 1:
				o.SetStatus(queue, admin.EntityStatusActive)
			}
		}})
		o = bustest.NewOperator(t, n)
		o.SetStatus(queue, admin.EntityStatusDisabled)
		r := newRequests(t, n)
		ctx, leave := context.WithTimeout(t.Context(), longTimeout)
		defer leave()
		var herd []*backgroundRequest
		for range many {
			herd = append(herd, startRequest(ctx, r, aRequest()))
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
