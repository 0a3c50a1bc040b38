package deadletterqueue_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/internal/bustest"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/deadletters"
)

func TestPeek_ListsDeadLettersAndLocksNothing(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		s := newSite(t)
		b := s.newBus(false)
		s.deadLetter(sessions, "5790001330552", "damaged", &azservicebus.Message{
			Body: []byte("four"), MessageID: to.Ptr("m1"), SessionID: to.Ptr("5790001330552"), ContentType: to.Ptr("text/plain"), Subject: to.Ptr("subject"),
		})
		for range 2 {
			found, err := b.Peek(t.Context(), sessions, 0, 10)
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.WithinDuration(t, time.Now(), found[0].EnqueuedAt, time.Minute)
			found[0].EnqueuedAt = time.Time{}
			require.Equal(t, deadletters.DeadLetter{
				Number: 1, MessageID: "m1", Session: to.Ptr("5790001330552"), Reason: "damaged", Description: "about damaged",
				DeliveryCount: 1, Size: 4, ContentType: "text/plain", Subject: "subject",
			}, found[0])
		}
		require.Empty(t, s.numbers(b, plain))
	})(t)
}

func TestPeek_ReturnsPages(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		s := newSite(t)
		b := s.newBus(true)
		s.addExpired(plain, 7)
		first, err := b.Peek(t.Context(), plain, 0, 3)
		require.NoError(t, err)
		require.Len(t, first, 3)
		rest, err := b.Peek(t.Context(), plain, first[2].Number, 10)
		require.NoError(t, err)
		require.Len(t, rest, 4)
		require.Equal(t, "TTLExpiredException", rest[0].Reason)
		none, err := b.Peek(t.Context(), plain, rest[3].Number, 10)
		require.NoError(t, err)
		require.Empty(t, none)
	})(t)
}

func TestPeek_ClassifiesErrors(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		s := newSite(t)
		b := s.newBus(true)
		_, err := b.Peek(t.Context(), "nowhere", 0, 10)
		require.Equal(t, domain.NotFound, domain.KindOf(err), "%v", err)
		require.NoError(t, b.Close(t.Context()))
		_, err = b.Peek(t.Context(), plain, 0, 10)
		require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
	})(t)
}

func TestRead_ReturnsBodyAndProperties(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		s := newSite(t)
		b := s.newBus(true)
		m := &azservicebus.Message{Body: []byte{0, 1, 2}, ApplicationProperties: map[string]any{"MessageType": "x", "n": int32(7)}}
		s.deadLetter(plain, "", "damaged", m)
		got, err := b.Read(t.Context(), plain, 1)
		require.NoError(t, err)
		require.Equal(t, []byte{0, 1, 2}, got.Body)
		require.False(t, got.IsCut)
		require.Equal(t, map[string]string{"MessageType": "x", "n": "7", "DeadLetterReason": "damaged", "DeadLetterErrorDescription": "about damaged"}, got.Properties)
		require.Equal(t, []int64{1}, s.numbers(b, plain))
		for _, number := range []int64{0, 2} {
			_, err = b.Read(t.Context(), plain, number)
			require.Equal(t, domain.NotFound, domain.KindOf(err), "%v", err)
		}
	})(t)
}

// Read returns the whole body of a large message. The bus limits a reply to Peek by bytes, and Peek
// also reads the bodies.
func TestRead_CutsNothingThatFits(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		s := newSite(t)
		b := s.newBus(true)
		body := bytes.Repeat([]byte("x"), 200<<10)
		for range 3 {
			s.deadLetter(plain, "", "damaged", &azservicebus.Message{Body: body})
		}
		got, err := b.Read(t.Context(), plain, 3)
		require.NoError(t, err)
		require.Equal(t, body, got.Body)
		require.Len(t, s.numbers(b, plain), 3)
	})(t)
}
