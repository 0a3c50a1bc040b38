package embedded_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

// receiveOne receives one message, and returns it.
func receiveOne(t testing.TB, r interface {
	ReceiveMessages(ctx context.Context, n int, o *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
},
) *azservicebus.ReceivedMessage {
	t.Helper()
	got, err := r.ReceiveMessages(t.Context(), 1, nil)
	require.NoError(t, err)
	require.Len(t, got, 1)
	return got[0]
}

func TestMessage_IsReceivedOnceAndGoneWhenCompleted(t *testing.T) {
	c := newClient(t, openNamespace(t, embedded.Options{CreateOnUse: true}))
	sendBodies(t, c, "q", "a", "b")
	r, err := c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	for _, want := range []string{"a", "b"} {
		m := receiveOne(t, r)
		require.Equal(t, want, string(m.Body))
		require.NoError(t, r.CompleteMessage(t.Context(), m, nil))
	}
	left, err := r.PeekMessages(t.Context(), 10, nil)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestMessage_ArrivesAsItWasSent(t *testing.T) {
	c := newClient(t, openNamespace(t, embedded.Options{CreateOnUse: true}))
	s, err := c.NewSender("q", nil)
	require.NoError(t, err)
	sent := &azservicebus.Message{
		Body: []byte{0, 1, 2}, MessageID: to.Ptr("id"), CorrelationID: to.Ptr("correlation"), ContentType: to.Ptr("type"),
		Subject: to.Ptr("subject"), To: to.Ptr("to"), ReplyTo: to.Ptr("reply"), ReplyToSessionID: to.Ptr("reply session"), PartitionKey: to.Ptr("p"),
		TimeToLive:            to.Ptr(time.Hour),
		ApplicationProperties: map[string]any{"text": "x", "number": int64(-5), "unsigned": uint32(7), "yes": true, "real": 1.5, "at": time.UnixMilli(1000), "bytes": []byte{9}},
	}
	require.NoError(t, s.SendMessage(t.Context(), sent, nil))
	r, err := c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	m := receiveOne(t, r)
	got := m.Message()
	require.Equal(t, sent, got)
	require.EqualValues(t, 1, m.DeliveryCount)
	require.EqualValues(t, 1, *m.SequenceNumber)
	require.NotZero(t, m.LockToken)
	require.NotNil(t, m.LockedUntil)
	require.NoError(t, r.AbandonMessage(t.Context(), m, &azservicebus.AbandonMessageOptions{PropertiesToModify: map[string]any{"text": "y", "new": int64(1)}}))
	again := receiveOne(t, r)
	require.EqualValues(t, 2, again.DeliveryCount)
	require.Equal(t, "y", again.ApplicationProperties["text"])
	require.Equal(t, int64(1), again.ApplicationProperties["new"])
	require.Equal(t, uint32(7), again.ApplicationProperties["unsigned"], "what is not changed keeps its type")
}

func TestDeadLetter_HasItsReason(t *testing.T) {
	c := newClient(t, openNamespace(t, embedded.Options{CreateOnUse: true}))
	sendBodies(t, c, "q", "bad")
	r, err := c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	require.NoError(t, r.DeadLetterMessage(t.Context(), receiveOne(t, r), &azservicebus.DeadLetterOptions{
		Reason: to.Ptr("unreadable"), ErrorDescription: to.Ptr("at byte 0"), PropertiesToModify: map[string]any{"tried": true},
	}))
	dead, err := c.NewReceiverForQueue("q", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	require.NoError(t, err)
	m := receiveOne(t, dead)
	require.Equal(t, "unreadable", *m.DeadLetterReason)
	require.Equal(t, "at byte 0", *m.DeadLetterErrorDescription)
	require.Equal(t, true, m.ApplicationProperties["tried"])
	require.NoError(t, dead.AbandonMessage(t.Context(), m, nil))
	require.EqualValues(t, m.DeliveryCount, receiveOne(t, dead).DeliveryCount, "a dead letter is no longer counted")
}

func TestDeferredMessages_AreReceivedByTheirNumbers(t *testing.T) {
	c := newClient(t, openNamespace(t, embedded.Options{CreateOnUse: true}))
	sendBodies(t, c, "q", "later")
	r, err := c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	m := receiveOne(t, r)
	require.NoError(t, r.DeferMessage(t.Context(), m, nil))
	seen, err := r.PeekMessages(t.Context(), 1, nil)
	require.NoError(t, err)
	require.Equal(t, azservicebus.MessageStateDeferred, seen[0].State)
	found, err := r.ReceiveDeferredMessages(t.Context(), []int64{*m.SequenceNumber}, nil)
	require.NoError(t, err)
	require.Equal(t, "later", string(found[0].Body))
	before := *found[0].LockedUntil
	require.NoError(t, r.RenewMessageLock(t.Context(), found[0], nil))
	require.False(t, found[0].LockedUntil.Before(before))
	require.NoError(t, r.CompleteMessage(t.Context(), found[0], nil))
	var gone *azservicebus.Error
	_, err = r.ReceiveDeferredMessages(t.Context(), []int64{*m.SequenceNumber}, nil)
	require.ErrorAs(t, err, &gone)
	require.Equal(t, azservicebus.CodeNotFound, gone.Code)
}

func TestSession_HasOneReceiverAndAState(t *testing.T) {
	c := newClient(t, openNamespace(t, embedded.Options{Entities: sessionQueue("q")}))
	s, err := c.NewSender("q", nil)
	require.NoError(t, err)
	require.ErrorContains(t, s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("x")}, nil), "amqp:not-allowed")
	require.NoError(t, s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("x"), SessionID: to.Ptr("a")}, nil))
	next, err := c.AcceptNextSessionForQueue(t.Context(), "q", nil)
	require.NoError(t, err)
	require.Equal(t, "a", next.SessionID())
	_, err = c.AcceptSessionForQueue(t.Context(), "q", "a", nil)
	require.ErrorContains(t, err, "session-cannot-be-locked")
	require.NoError(t, next.SetSessionState(t.Context(), []byte("state"), nil))
	state, err := next.GetSessionState(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "state", string(state))
	before := next.LockedUntil()
	require.NoError(t, next.RenewSessionLock(t.Context(), nil))
	require.False(t, next.LockedUntil().Before(before))
	require.Equal(t, "x", string(receiveOne(t, next).Body))
	require.NoError(t, next.Close(t.Context()))

	again, err := c.AcceptSessionForQueue(t.Context(), "q", "a", nil)
	require.NoError(t, err)
	m := receiveOne(t, again)
	require.EqualValues(t, 1, m.DeliveryCount, "closing a session gives its messages back uncounted")
	require.NoError(t, again.CompleteMessage(t.Context(), m, nil))

	_, err = c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	r, err := c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	_, err = r.ReceiveMessages(t.Context(), 1, nil)
	require.ErrorContains(t, err, "It is not possible for an entity that requires sessions to create a non-sessionful message receiver.")
}

func TestSubscription_ReceivesMatchingMessages(t *testing.T) {
	topic := embedded.TopicSetup{Name: "t", Subscriptions: []embedded.QueueSetup{{Name: "all"}, {Name: "red"}}}
	rule := embedded.RuleSetup{Name: "red"}
	rule.Properties.SQLFilter = &struct{ SQLExpression string }{"colour = 'red'"}
	rule.Properties.Action = &struct{ SQLExpression string }{"SET sys.Label = 'seen'; SET n = 2"}
	topic.Subscriptions[1].Rules = []embedded.RuleSetup{rule}
	c := newClient(t, openNamespace(t, embedded.Options{Entities: embedded.Entities{Topics: []embedded.TopicSetup{topic}}}))
	s, err := c.NewSender("t", nil)
	require.NoError(t, err)
	for _, colour := range []string{"green", "red"} {
		require.NoError(t, s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte(colour), ApplicationProperties: map[string]any{"colour": colour}}, nil))
	}
	all, err := c.NewReceiverForSubscription("t", "all", nil)
	require.NoError(t, err)
	require.Equal(t, "green", string(receiveOne(t, all).Body))
	require.Equal(t, "red", string(receiveOne(t, all).Body))
	red, err := c.NewReceiverForSubscription("t", "red", nil)
	require.NoError(t, err)
	m := receiveOne(t, red)
	require.Equal(t, "red", string(m.Body))
	require.Equal(t, "seen", *m.Subject)
	require.EqualValues(t, 2, m.ApplicationProperties["n"])
}

func TestScheduledMessage_CanBeCancelled(t *testing.T) {
	c := newClient(t, openNamespace(t, embedded.Options{CreateOnUse: true}))
	s, err := c.NewSender("q", nil)
	require.NoError(t, err)
	numbers, err := s.ScheduleMessages(t.Context(), []*azservicebus.Message{{Body: []byte("a")}, {Body: []byte("b")}}, time.Now().Add(time.Hour), nil)
	require.NoError(t, err)
	require.Len(t, numbers, 2)
	require.NoError(t, s.CancelScheduledMessages(t.Context(), numbers[:1], nil))
	r, err := c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	seen, err := r.PeekMessages(t.Context(), 10, nil)
	require.NoError(t, err)
	require.Len(t, seen, 1)
	require.Equal(t, azservicebus.MessageStateScheduled, seen[0].State)
	require.Equal(t, numbers[1], *seen[0].SequenceNumber)
}

func TestReceiveAndDelete_RemovesMessages(t *testing.T) {
	c := newClient(t, openNamespace(t, embedded.Options{CreateOnUse: true}))
	sendBodies(t, c, "q", "a")
	r, err := c.NewReceiverForQueue("q", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	require.NoError(t, err)
	require.Equal(t, "a", string(receiveOne(t, r).Body))
	left, err := r.PeekMessages(t.Context(), 10, nil)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAcceptSession_HoldsNoSessionAfterACancel(t *testing.T) {
	asked := make(chan struct{}, 100)
	n := openNamespace(t, embedded.Options{Entities: sessionQueue("q"), Frames: func(line string) {
		if strings.Contains(line, "<-") && strings.Contains(line, "attach") && strings.Contains(line, "session-filter") {
			asked <- struct{}{}
		}
	}})
	c := newClient(t, n)
	ctx, giveUp := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	go func() {
		_, err := c.AcceptNextSessionForQueue(ctx, "q", nil)
		gaveUp <- err
	}()
	<-asked
	giveUp()
	require.ErrorIs(t, <-gaveUp, context.Canceled)
	s, err := c.NewSender("q", nil)
	require.NoError(t, err)
	require.NoError(t, s.SendMessage(t.Context(), &azservicebus.Message{SessionID: to.Ptr("a")}, nil))
	next, err := c.AcceptNextSessionForQueue(t.Context(), "q", nil)
	require.NoError(t, err)
	require.Equal(t, "a", next.SessionID())
	_ = receiveOne(t, next)
}
