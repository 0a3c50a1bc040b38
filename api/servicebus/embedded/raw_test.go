package embedded_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

// dialPlain connects an AMQP client that authenticates with SASL PLAIN.
func dialPlain(t *testing.T, n *embedded.Namespace, secret string) (*amqp.Conn, error) {
	t.Helper()
	nc, err := n.Dial(t.Context())
	require.NoError(t, err)
	return amqp.NewConn(t.Context(), nc, &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(embedded.WellKnownKeyName, secret), HostName: "h"})
}

func plainSession(t *testing.T, n *embedded.Namespace) *amqp.Session {
	t.Helper()
	conn, err := dialPlain(t, n, embedded.WellKnownKey)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	s, err := conn.NewSession(t.Context(), nil)
	require.NoError(t, err)
	return s
}

func TestSASLPlain_AcceptsAKeyAsPassword(t *testing.T) {
	n := openNamespace(t, embedded.Options{Entities: queues("q")})
	s := plainSession(t, n)
	sender, err := s.NewSender(t.Context(), "q", nil)
	require.NoError(t, err)
	require.NoError(t, sender.Send(t.Context(), amqp.NewMessage([]byte("x")), nil))
	careless, err := s.NewSender(t.Context(), "q", &amqp.SenderOptions{SettlementMode: amqp.SenderSettleModeSettled.Ptr()})
	require.NoError(t, err)
	require.NoError(t, careless.Send(t.Context(), amqp.NewMessage([]byte("y")), nil), "who does not want an answer gets none")
	r, err := s.NewReceiver(t.Context(), "q", nil)
	require.NoError(t, err)
	for _, want := range []string{"x", "y"} {
		m, err := r.Receive(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, want, string(m.GetData()))
		require.NoError(t, r.AcceptMessage(t.Context(), m))
	}
	_, err = s.NewSender(t.Context(), "none", nil)
	var refused *amqp.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, amqp.ErrCondNotFound, refused.Condition)
	_, err = dialPlain(t, n, "wrong")
	require.Error(t, err)
}

// When a drain ends, the client has received every message that its credit allows. It receives the remaining messages
// after it grants more credit.
func TestDrain_LosesNoMessage(t *testing.T) {
	for name, mode := range map[string]amqp.SenderSettleMode{"peek-lock": amqp.SenderSettleModeUnsettled, "receive and delete": amqp.SenderSettleModeSettled} {
		t.Run(name, func(t *testing.T) {
			s := plainSession(t, openNamespace(t, embedded.Options{Entities: queues("q")}))
			sender, err := s.NewSender(t.Context(), "q", nil)
			require.NoError(t, err)
			const there = 300 // there is more than a link requests from the bus at a time
			for i := range there {
				require.NoError(t, sender.Send(t.Context(), amqp.NewMessage([]byte(strconv.Itoa(i))), nil))
			}
			r, err := s.NewReceiver(t.Context(), "q", &amqp.ReceiverOptions{Credit: -1, RequestedSenderSettleMode: &mode})
			require.NoError(t, err)
			for got := 0; got < there; {
				require.NoError(t, r.IssueCredit(100))
				m, err := r.Receive(t.Context(), nil)
				require.NoError(t, err)
				require.NoError(t, r.DrainCredit(t.Context(), nil))
				for ; m != nil; m = r.Prefetched() {
					require.Equal(t, strconv.Itoa(got), string(m.GetData()))
					got++
				}
			}
		})
	}
}

// Clients that use Microsoft's C library, such as older Python clients, send no reply address.
func TestPutToken_WorksWithoutAReplyAddress(t *testing.T) {
	s := plainSession(t, openNamespace(t, embedded.Options{Entities: queues("q")}))
	sender, err := s.NewSender(t.Context(), "$cbs", nil)
	require.NoError(t, err)
	replies, err := s.NewReceiver(t.Context(), "$cbs", &amqp.ReceiverOptions{TargetAddress: "$cbs", SettlementMode: amqp.ReceiverSettleModeFirst.Ptr()})
	require.NoError(t, err)
	key := embedded.Key{Name: embedded.WellKnownKeyName, Secret: embedded.WellKnownKey}
	m := &amqp.Message{
		Properties:            &amqp.MessageProperties{MessageID: uint64(7)},
		ApplicationProperties: map[string]any{"operation": "put-token", "type": "servicebus.windows.net:sastoken", "name": "amqp://h/q"},
		Value:                 key.Sign("amqp://h/q", time.Now().Add(time.Hour)),
	}
	require.NoError(t, sender.Send(t.Context(), m, nil))
	reply, err := replies.Receive(t.Context(), nil)
	require.NoError(t, err)
	require.EqualValues(t, 202, reply.ApplicationProperties["status-code"], reply.ApplicationProperties)
	require.Equal(t, uint64(7), reply.Properties.CorrelationID)
}

func TestCBS_AcceptsOnePairOfLinks(t *testing.T) {
	s := plainSession(t, openNamespace(t, embedded.Options{}))
	_, err := s.NewSender(t.Context(), "$cbs", nil)
	require.NoError(t, err)
	_, err = s.NewSender(t.Context(), "$cbs", nil)
	var refused *amqp.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, amqp.ErrCondNotAllowed, refused.Condition)
}

// A rawManager sends requests to the management node of an entity.
type rawManager struct {
	t        *testing.T
	sender   *amqp.Sender
	receiver *amqp.Receiver
}

func manageRaw(t *testing.T, n *embedded.Namespace, entity string) *rawManager {
	t.Helper()
	s := plainSession(t, n)
	sender, err := s.NewSender(t.Context(), entity+"/$management", nil)
	require.NoError(t, err)
	receiver, err := s.NewReceiver(t.Context(), entity+"/$management", &amqp.ReceiverOptions{TargetAddress: "me", RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr()})
	require.NoError(t, err)
	return &rawManager{t, sender, receiver}
}

func (m *rawManager) request(operation string, value any) (int32, any) {
	m.t.Helper()
	require.NoError(m.t, m.sender.Send(m.t.Context(), &amqp.Message{
		Properties:            &amqp.MessageProperties{MessageID: "1", ReplyTo: to.Ptr("me")},
		ApplicationProperties: map[string]any{"operation": operation},
		Value:                 value,
	}, nil))
	answer, err := m.receiver.Receive(m.t.Context(), nil)
	require.NoError(m.t, err)
	require.Equal(m.t, "1", answer.Properties.CorrelationID)
	return answer.ApplicationProperties["statusCode"].(int32), answer.Value
}

func TestManagement_RefusesInvalidRequestsAndContinues(t *testing.T) {
	m := manageRaw(t, openNamespace(t, embedded.Options{Entities: queues("q")}), "q")
	type args = map[string]any
	for _, tc := range []struct {
		operation string
		value     any
		want      int32
	}{
		{"com.microsoft:make-coffee", args{}, 501},
		{"com.microsoft:peek-message", "no map", 400},
		{"com.microsoft:peek-message", args{}, 400},
		{"com.microsoft:peek-message", args{"from-sequence-number": int64(0)}, 400},
		{"com.microsoft:peek-message", args{"from-sequence-number": int64(0), "message-count": int32(-1)}, 400},
		{"com.microsoft:peek-message", args{"from-sequence-number": int64(0), "message-count": int32(1)}, 204},
		{"com.microsoft:renew-lock", args{"lock-tokens": "x"}, 400},
		{"com.microsoft:renew-lock", args{"lock-tokens": []amqp.UUID{{1}}}, 410},
		{"com.microsoft:update-disposition", args{"lock-tokens": []amqp.UUID{{1}}}, 400},
		{"com.microsoft:update-disposition", args{"disposition-status": "completed"}, 400},
		{"com.microsoft:update-disposition", args{"disposition-status": "completed", "lock-tokens": []amqp.UUID{{1}}}, 410},
		{"com.microsoft:receive-by-sequence-number", args{}, 400},
		{"com.microsoft:receive-by-sequence-number", args{"sequence-numbers": []int64{7}, "receiver-settle-mode": uint32(1)}, 404},
		{"com.microsoft:schedule-message", args{}, 400},
		{"com.microsoft:schedule-message", args{"messages": []any{args{"message-id": "x"}}}, 400},
		{"com.microsoft:schedule-message", args{"messages": []any{args{"message": []byte("garbage")}}}, 400},
		{"com.microsoft:cancel-scheduled-message", args{}, 400},
		{"com.microsoft:cancel-scheduled-message", args{"sequence-numbers": []int64{7}}, 404},
		{"com.microsoft:renew-session-lock", args{}, 400},
		{"com.microsoft:renew-session-lock", args{"session-id": "s"}, 400},
		{"com.microsoft:get-session-state", args{}, 400},
		{"com.microsoft:set-session-state", args{"session-id": "s", "session-state": "text"}, 400},
		{"com.microsoft:get-message-sessions", args{}, 400},
		{"com.microsoft:add-rule", args{}, 400},
		{"com.microsoft:add-rule", args{"rule-name": "r"}, 400},
		{"com.microsoft:add-rule", args{"rule-name": "r", "rule-description": args{}}, 400},
		{"com.microsoft:remove-rule", args{}, 400},
		{"com.microsoft:enumerate-rules", args{"top": int32(5), "skip": int32(0)}, 400},
	} {
		status, _ := m.request(tc.operation, tc.value)
		require.Equal(t, tc.want, status, "%s %v", tc.operation, tc.value)
	}
}

func TestRules_AreManagedOverAMQP(t *testing.T) {
	topics := embedded.Entities{Topics: []embedded.TopicSetup{{Name: "t", Subscriptions: []embedded.QueueSetup{{Name: "s"}}}}}
	m := manageRaw(t, openNamespace(t, embedded.Options{Entities: topics}), "t/Subscriptions/s")
	type args = map[string]any
	page := args{"top": int32(10), "skip": int32(0)}
	status, _ := m.request("com.microsoft:remove-rule", args{"rule-name": "$Default"})
	require.EqualValues(t, 200, status)
	status, _ = m.request("com.microsoft:enumerate-rules", page)
	require.EqualValues(t, 204, status)
	for name, description := range map[string]args{
		"match": {"correlation-filter": args{"correlation-id": "c", "properties": args{"n": int32(1)}}},
		"sql":   {"sql-filter": args{"expression": "n = 1"}, "sql-rule-action": args{"expression": "SET n = 2"}},
	} {
		status, _ = m.request("com.microsoft:add-rule", args{"rule-name": name, "rule-description": description})
		require.EqualValues(t, 200, status)
	}
	status, _ = m.request("com.microsoft:add-rule", args{"rule-name": "sql", "rule-description": args{"sql-filter": args{"expression": "n = 1"}}})
	require.EqualValues(t, 409, status)
	status, value := m.request("com.microsoft:enumerate-rules", page)
	require.EqualValues(t, 200, status)
	require.Len(t, value.(args)["rules"], 2)
}

func TestSessions_AreListed(t *testing.T) {
	c := newClient(t, openNamespace(t, embedded.Options{Entities: sessionQueue("q")}))
	s, err := c.NewSender("q", nil)
	require.NoError(t, err)
	for _, id := range []string{"a", "b", "b"} {
		require.NoError(t, s.SendMessage(t.Context(), &azservicebus.Message{SessionID: &id}, nil))
	}
	session, err := c.AcceptSessionForQueue(t.Context(), "q", "stateful", nil)
	require.NoError(t, err)
	require.NoError(t, session.SetSessionState(t.Context(), []byte("x"), nil))
	var all []string
	for pager := c.NewListSessionsForQueuePager("q", nil); pager.More(); {
		page, err := pager.NextPage(t.Context())
		require.NoError(t, err)
		all = append(all, page.Sessions...)
	}
	require.ElementsMatch(t, []string{"a", "b", "stateful"}, all)
	require.NoError(t, session.Close(context.Background()))
}
