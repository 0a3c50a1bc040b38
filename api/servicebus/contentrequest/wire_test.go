package contentrequest_test

import (
	"context"
	"encoding/hex"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/contentrequest"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/internal/bustest"
	"github.com/messagehub/messagehub/domain"
)

// A request is encoded byte for byte as the existing domains expect.
func TestRequest_HasTheBytesOfTheContract(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		now := time.Now().Truncate(time.Second)
		n := bustest.Open(t, embedded.Options{})
		r := newRequests(t, n, func(o *contentrequest.Options) { o.Clock, o.NewID = bustest.ClockAt(now), bustest.NewIDs() })
		ctx, leave := context.WithTimeout(t.Context(), longTimeout)
		q := aRequest()
		q.By = now.Add(longTimeout)
		a := startRequest(ctx, r, q)
		m := newDomain(t, n, domain.TimeSeries).nextRequest(t).message
		leave()
		_, err := a.wait()
		require.ErrorIs(t, err, context.Canceled)

		const id, process = "ab000000-0000-4000-8000-000000000001", "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41_5790001330552"
		field := func(number byte, text string) string { return string([]byte{number<<3 | 2, byte(len(text))}) + text }
		require.Equal(t, hex.Dump([]byte(
			field(1, id)+
				field(2, "ab/0001/"+process+"_1-7")+
				field(3, process)+
				field(4, "RSM012")+
				field(5, "Xml")+
				"\x31\x33\x33\x33\x33\x33\x33\xf3\x3f", // field 6, the double 1.2
		)), hex.Dump(m.Body))
		require.Equal(t, id, m.MessageID)
		require.Equal(t, id, *m.SessionID)
		require.Equal(t, "timeseries-reply", *m.ReplyTo)
		require.Equal(t, id, *m.ReplyToSessionID)
		require.Equal(t, process, *m.CorrelationID)
		require.Equal(t, longTimeout, *m.TimeToLive)
		require.Equal(t, map[string]any{
			"OperationTimestamp":     now.UTC().Format("2006-01-02T15:04:05Z"),
			"OperationCorrelationId": process,
			"MessageVersion":         int32(1),
			"MessageType":            "RequestDataBundle",
			"EventIdentification":    "ab000000-0000-4000-8000-000000000002",
		}, m.ApplicationProperties)
		require.Nil(t, m.ContentType)
		require.Nil(t, m.Subject)
		require.Nil(t, m.To)
		require.Nil(t, m.PartitionKey)
	})(t)
}

func TestRequest_UsesTheQueueOfItsOrigin(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		q := aRequest()
		q.Origin, q.Format, q.Version = domain.Aggregations, domain.JSON, "the newest"
		ctx, leave := context.WithTimeout(t.Context(), longTimeout)
		a := startRequest(ctx, newRequests(t, n), q)
		got := newDomain(t, n, domain.Aggregations).nextRequest(t)
		leave()
		_, err := a.wait()
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, "wholesale-reply", *got.message.ReplyTo)
		require.Equal(t, "Json", got.ResponseFormatRequested)
		require.InDelta(t, 1.0, got.ResponseFromatVersion, 0)
	})(t)
}

func TestARequestExpiresAtTheDeadlineOfItsPeek(t *testing.T) {
	for _, tc := range []struct {
		name       string
		left, want time.Duration
	}{
		{"in whole milliseconds", 29*time.Second + 250*time.Millisecond + 999*time.Microsecond, 29*time.Second + 250*time.Millisecond},
		{"no longer than the wire can say", 100 * 24 * time.Hour, math.MaxUint32 * time.Millisecond},
	} {
		t.Run(tc.name, bustest.InBubble(func(t *testing.T) {
			ctx, leave := context.WithTimeout(t.Context(), longTimeout)
			n := bustest.Open(t, embedded.Options{})
			q := aRequest()
			q.By = time.Now().Add(tc.left)
			a := startRequest(ctx, newRequests(t, n), q)
			require.Equal(t, tc.want, *newDomain(t, n, domain.TimeSeries).nextRequest(t).message.TimeToLive)
			leave()
			_, err := a.wait()
			require.ErrorIs(t, err, context.Canceled)
		}))
	}
}

func TestAClockJumpDoesNotShortenTheTimeOfADomain(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		ctx, leave := context.WithTimeout(t.Context(), longTimeout)
		n := bustest.Open(t, embedded.Options{})
		q := aRequest()
		ahead := func() time.Time { return time.Now().Add(time.Hour) }
		a := startRequest(ctx, newRequests(t, n, func(o *contentrequest.Options) { o.Clock = ahead }), q)
		require.Equal(t, time.Until(q.By), *newDomain(t, n, domain.TimeSeries).nextRequest(t).message.TimeToLive)
		leave()
		_, err := a.wait()
		require.ErrorIs(t, err, context.Canceled)
	})(t)
}

func TestRequest_IsNotSentIfItWouldExpireImmediately(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		q := aRequest()
		q.By = time.Now().Add(999 * time.Microsecond)
		_, err := newRequests(t, n).Request(t.Context(), q)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, n.Stats().Connections)
	})(t)
}
