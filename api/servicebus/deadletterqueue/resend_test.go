package deadletterqueue_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/deadletterqueue"
	"github.com/messagehub/messagehub/api/servicebus/internal/bustest"
	"github.com/messagehub/messagehub/domain"
)

func TestResend_SendsTheMessageUnchanged(t *testing.T) {
	inBothWays(t, func(s *busSite, fetchesAny bool) {
		b := s.newBus(fetchesAny)
		const session = "5790001330552"
		sent := &azservicebus.Message{
			Body: []byte{0, 1, 2}, MessageID: to.Ptr("id"), SessionID: to.Ptr(session), PartitionKey: to.Ptr(session), CorrelationID: to.Ptr("correlation"),
			ContentType: to.Ptr("type"), Subject: to.Ptr("subject"), To: to.Ptr("to"), ReplyTo: to.Ptr("reply"), ReplyToSessionID: to.Ptr("reply session"),
			TimeToLive:            to.Ptr(time.Hour),
			ApplicationProperties: map[string]any{"text": "x", "number": int64(-5), "unsigned": uint32(7), "yes": true, "real": 1.5, "at": time.UnixMilli(1000), "bytes": []byte{9}},
		}
		s.deadLetter(sessions, session, "damaged", sent)
		n, err := b.Resend(s.Context(), sessions, []int64{1}, who)
		require.NoError(s, err)
		require.Equal(s, 1, n)
		require.Empty(s, s.numbers(b, sessions))

		got := s.receive(sessions, session, 1)[0].Message()
		require.Equal(s, "resent-1-a56145270ce6b3be", *got.MessageID)
		require.Zero(s, *got.TimeToLive)
		got.MessageID, got.TimeToLive, sent.TimeToLive = sent.MessageID, nil, nil
		for name, value := range map[string]any{"ResentBy": who, "ResentAt": "2026-03-01T12:00:00Z", "FormerMessageId": "id"} {
			sent.ApplicationProperties[name] = value
		}
		require.Equal(s, sent, got)
	})
}

// A queue with duplicate detection would drop a copy with the former message id. The copy has a new
// id, so no message is lost.
func TestResend_LosesNothingToDuplicateDetection(t *testing.T) {
	inBothWays(t, func(s *busSite, fetchesAny bool) {
		b := s.newBus(fetchesAny)
		s.deadLetter(dedup, "", "damaged", newMessages("a")...)
		for round := range 3 {
			found, err := b.Peek(s.Context(), dedup, 0, 10)
			require.NoError(s, err)
			require.Len(s, found, 1)
			require.Equal(s, "id-a", found[0].MessageID)
			if round > 0 {
				require.Equal(s, who, found[0].ResentBy)
			}
			_, err = b.Resend(s.Context(), dedup, []int64{found[0].Number}, who)
			require.NoError(s, err)
			s.deadLetter(dedup, "", "damaged again", &azservicebus.Message{Body: []byte("b"), MessageID: to.Ptr("id-a")}) // with the same message id as the first message, so the bus would drop an unchanged copy
		}
	})
}

func TestOrder_SettlesOnlyTheNamedDeadLetters(t *testing.T) {
	inBothWays(t, func(s *busSite, fetchesAny bool) {
		b := s.newBus(fetchesAny)
		s.deadLetter(plain, "", "damaged", newMessages("a", "b", "c", "d", "e", "f")...)
		n, err := b.Resend(s.Context(), plain, []int64{5, 2}, who)
		require.NoError(s, err)
		require.Equal(s, 2, n)
		require.Equal(s, []string{"b", "e"}, bodiesOf(s.receive(plain, "", 2)), "in the order of their numbers")
		n, err = b.Delete(s.Context(), plain, []int64{1, 2, 4, 99})
		require.NoError(s, err)
		require.Equal(s, 2, n, "what is gone is passed over")
		require.Equal(s, []int64{3, 6}, s.numbers(b, plain))
		require.Zero(s, s.bus.Stats().Active)

		// The test can delete the dead letters that were passed over, so their locks were released.
		n, err = b.Delete(s.Context(), plain, []int64{3, 6})
		require.NoError(s, err)
		require.Equal(s, 2, n)
		require.Zero(s, s.bus.Stats().DeadLetters)
	})
}

func TestOrder_ReachesDeferredDeadLetters(t *testing.T) {
	inBothWays(t, func(s *busSite, fetchesAny bool) {
		b := s.newBus(fetchesAny)
		s.deadLetter(plain, "", "damaged", newMessages("a", "b")...)
		r, err := s.client.NewReceiverForQueue(plain, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
		require.NoError(s, err)
		got, err := r.ReceiveMessages(s.Context(), 1, nil)
		require.NoError(s, err)
		require.NoError(s, r.DeferMessage(s.Context(), got[0], nil))
		n, err := b.Resend(s.Context(), plain, []int64{1}, who)
		require.NoError(s, err)
		require.Equal(s, 1, n)
		require.Equal(s, []string{"a"}, bodiesOf(s.receive(plain, "", 1)))
	})
}

func TestOrder_FailsWithBusyForALockedDeadLetter(t *testing.T) {
	inBothWays(t, func(s *busSite, fetchesAny bool) {
		b := s.newBus(fetchesAny)
		s.deadLetter(plain, "", "damaged", newMessages("a", "b")...)
		r, err := s.client.NewReceiverForQueue(plain, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
		require.NoError(s, err)
		got, err := r.ReceiveMessages(s.Context(), 1, nil)
		require.NoError(s, err)
		require.EqualValues(s, 1, *got[0].SequenceNumber)
		_, err = b.Delete(s.Context(), plain, []int64{1})
		require.Equal(s, domain.Busy, domain.KindOf(err), "%v", err)
		n, err := b.Delete(s.Context(), plain, []int64{2})
		require.NoError(s, err)
		require.Equal(s, 1, n)
		<-time.After(2 * time.Minute) // the fake clock advances until the lock expires
		n, err = b.Delete(s.Context(), plain, []int64{1})
		require.NoError(s, err)
		require.Equal(s, 1, n)
	})
}

func TestOrder_ReportsHowManyItPassesOver(t *testing.T) {
	t.Run("receive", bustest.InBubble(func(t *testing.T) {
		s := newSite(t)
		b := s.newBus(false)
		s.addExpired(plain, 1002)
		_, err := b.Delete(t.Context(), plain, []int64{1002})
		require.Equal(t, domain.Conflict, domain.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "more than 1000 dead letters in front of number 1002")
		n, err := b.Delete(t.Context(), plain, []int64{1000, 1})
		require.NoError(t, err)
		require.Equal(t, 2, n, "those that were passed over are free")
	}))
	t.Run("fetch", bustest.InBubble(func(t *testing.T) {
		s := newSite(t)
		b := s.newBus(true)
		s.addExpired(plain, 1002)
		n, err := b.Delete(t.Context(), plain, []int64{1002})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}))
}

// The node dies, or loses the bus, after it has sent the copy. The copy and the dead letter exist.
func TestResend_LeavesCopyAndDeadLetterIfRemovalFails(t *testing.T) {
	inBothWays(t, func(s *busSite, fetchesAny bool) {
		b := s.newBus(fetchesAny, func(o *deadletterqueue.Options) {
			o.Open = s.open(func(conn net.Conn) net.Conn { return &cutConn{Conn: conn} })
		})
		s.deadLetter(plain, "", "damaged", newMessages("a")...)
		n, err := b.Resend(s.Context(), plain, []int64{1}, who)
		require.Equal(s, domain.Uncertain, domain.KindOf(err), "%v", err)
		require.Zero(s, n)
		require.Equal(s, []int64{1}, s.numbers(b, plain))

		<-time.After(2 * time.Minute) // the fake clock advances until the lock expires
		n, err = s.newBus(fetchesAny).Resend(s.Context(), plain, []int64{1}, who)
		require.NoError(s, err)
		require.Equal(s, 1, n)
		got := s.receive(plain, "", 2)
		require.Equal(s, []string{"a", "a"}, bodiesOf(got), "its receiver knows the second one by the ids in it")
		require.Equal(s, got[0].MessageID, got[1].MessageID)
		require.Zero(s, s.bus.Stats().DeadLetters)
	})
}

// The dead letter is resent twice. The second copy has the same message id as the first copy, so
// the queue drops it.
func TestResend_SendsOnceToAQueueThatDetectsDuplicates(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		s := newSite(t)
		b := s.newBus(true, func(o *deadletterqueue.Options) {
			o.Open = s.open(func(conn net.Conn) net.Conn { return &cutConn{Conn: conn} })
		})
		s.deadLetter(dedup, "", "damaged", newMessages("a")...)
		_, err := b.Resend(t.Context(), dedup, []int64{1}, who)
		require.Equal(t, domain.Uncertain, domain.KindOf(err), "%v", err)
		<-time.After(2 * time.Minute) // the fake clock advances until the lock expires
		_, err = s.newBus(true).Resend(t.Context(), dedup, []int64{1}, who)
		require.NoError(t, err)
		require.EqualValues(t, 1, s.bus.Stats().Active)
		require.Zero(t, s.bus.Stats().DeadLetters)
	})(t)
}

func TestOrder_IsExecutedOnceIfTheReplyIsLost(t *testing.T) {
	inBothWays(t, func(s *busSite, fetchesAny bool) {
		var cut atomic.Bool // true once a connection was cut
		b := s.newBus(fetchesAny, func(o *deadletterqueue.Options) {
			o.Open = s.open(func(conn net.Conn) net.Conn {
				if cut.Swap(true) {
					return conn
				}
				return &cutConn{Conn: conn, isLate: true}
			})
		})
		s.deadLetter(plain, "", "damaged", newMessages("a", "b")...)
		n, err := b.Resend(s.Context(), plain, []int64{1}, who)
		require.NoError(s, err)
		require.Equal(s, 1, n)
		require.Equal(s, []string{"a"}, bodiesOf(s.receive(plain, "", 1)))
		require.Equal(s, []int64{2}, s.numbers(b, plain))
	})
}

// The reply of the bus to the copy is lost, and Microsoft's client sends the copy again with the
// same message id. No message is lost.
func TestResend_LosesNothingIfTheBusDoesNotReply(t *testing.T) {
	for _, always := range []bool{false, true} {
		inBothWays(t, func(s *busSite, fetchesAny bool) {
			var cut atomic.Bool
			b := s.newBus(fetchesAny, func(o *deadletterqueue.Options) {
				o.Open = s.open(func(conn net.Conn) net.Conn {
					if cut.Swap(true) && !always {
						return conn
					}
					return &cutConn{Conn: conn, isOfCopy: true, isLate: true}
				})
			})
			s.deadLetter(plain, "", "damaged", newMessages("a")...)
			n, err := b.Resend(s.Context(), plain, []int64{1}, who)
			left := s.numbers(b, plain)
			if always || err != nil { // some messages cannot be settled over another connection
				require.Equal(s, domain.Uncertain, domain.KindOf(err), "%v", err)
				require.Zero(s, n)
				require.Equal(s, []int64{1}, left)
			} else {
				require.Equal(s, 1, n)
				require.Empty(s, left)
			}
			copies := s.receive(plain, "", int(s.bus.Stats().Active))
			require.NotEmpty(s, copies)
			for _, c := range copies {
				require.Equal(s, copies[0].MessageID, c.MessageID)
			}
		})
	}
}

func TestResend_KeepsTheDeadLetterWhenTheCopyIsNotAccepted(t *testing.T) {
	inBothWays(t, func(s *busSite, fetchesAny bool) {
		b := s.newBus(fetchesAny)
		s.deadLetter(plain, "", "damaged", newMessages("a")...)
		operator := bustest.NewOperator(s.T, s.bus)
		operator.SetStatus(plain, "SendDisabled")
		_, err := b.Resend(s.Context(), plain, []int64{1}, who)
		require.Equal(s, domain.Conflict, domain.KindOf(err), "%v", err)
		operator.SetStatus(plain, "Active")
		n, err := b.Resend(s.Context(), plain, []int64{1}, who)
		require.NoError(s, err, "it was not left locked")
		require.Equal(s, 1, n)
	})
}

func TestOrders_OfTwoOperatorsSendOnce(t *testing.T) {
	inBothWays(t, func(s *busSite, fetchesAny bool) {
		nodes := []*deadletterqueue.Bus{s.newBus(fetchesAny), s.newBus(fetchesAny)}
		s.deadLetter(plain, "", "damaged", newMessages("a", "b", "c", "d")...)
		resent := make(chan int, 2*len(nodes))
		for _, b := range nodes {
			for range 2 {
				go func() {
					n, err := b.Resend(context.Background(), plain, []int64{1, 2, 3, 4}, who)
					if err != nil {
						assert.Equal(s, domain.Busy, domain.KindOf(err), "%v", err)
					}
					resent <- n
				}()
			}
		}
		sum := 0
		for range cap(resent) {
			sum += <-resent
		}
		left := s.numbers(nodes[0], plain)
		require.Equal(s, 4, sum+len(left))
		require.EqualValues(s, sum, s.bus.Stats().Active)
	})
}
