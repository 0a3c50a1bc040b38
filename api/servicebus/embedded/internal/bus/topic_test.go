package bus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newSubscribed returns a bus with a topic and one subscription, which has only the given rules.
func newSubscribed(t *testing.T, rules ...Rule) *busFixture {
	w := newFixture(t)
	w.createEntity(Entity{Path: "t", Kind: Topic})
	w.createEntity(Entity{Path: "t/Subscriptions/s", Kind: Subscription, DeadLetterOnFilterFail: true})
	w.requireDone(func(done func(error)) { w.bus.DeleteRule("t/subscriptions/s", DefaultRule, done) })
	for _, r := range rules {
		w.requireDone(func(done func(error)) { w.bus.AddRule("t/subscriptions/s", r, done) })
	}
	return w
}

func fullMessage() Message {
	m := inSession("session", "x")
	m.PartitionKey, m.Subject, m.To, m.ReplyTo = "session", "subject", "to", "reply"
	m.ReplyToSessionID, m.CorrelationID, m.ContentType = "reply session", "correlation", "type"
	m.TTL = time.Minute
	return m
}

func TestFilter_ReadsThePropertiesOfTheMessage(t *testing.T) {
	for condition, want := range map[string]bool{
		"sys.MessageId = 'id-x' AND sys.SessionId = 'session' AND sys.PartitionKey = 'session'":                 true,
		"sys.Label = 'subject' AND sys.Subject = 'subject' AND sys.To = 'to' AND sys.ReplyTo = 'reply'":         true,
		"sys.ReplyToSessionId LIKE 'reply%' AND sys.CorrelationId = 'correlation' AND sys.ContentType = 'type'": true,
		"sys.TimeToLive = 60 AND sys.SequenceNumber = 1 AND sys.DeliveryCount = 0":                              true,
		"sys.EnqueuedTimeUtc IS NULL AND sys.ScheduledEnqueueTimeUtc IS NULL AND NOT EXISTS(sys.ExpiresAtUtc)":  true,
		"sys.To = 'from'": false,
	} {
		w := newSubscribed(t, Rule{Name: "r", Filter: Filter{SQL: condition}})
		w.sendBatch("t", fullMessage())
		require.Equal(t, want, w.countsOf("t/subscriptions/s").Active == 1, condition)
	}
}

func TestCorrelation_RequiresAllItsValues(t *testing.T) {
	all := Correlation{
		CorrelationID: "correlation", MessageID: "id-x", To: "to", ReplyTo: "reply", Subject: "subject", SessionID: "session",
		ReplyToSessionID: "reply session", ContentType: "type",
	}
	other := all
	other.SessionID = "other"
	missing := all
	missing.Properties = map[string]any{"missing": 1}
	w := newSubscribed(t, Rule{Name: "other", Filter: Filter{Correlation: &other}}, Rule{Name: "missing", Filter: Filter{Correlation: &missing}})
	w.sendBatch("t", fullMessage())
	require.Zero(t, w.countsOf("t/subscriptions/s"))
	w.requireDone(func(done func(error)) {
		w.bus.AddRule("t/subscriptions/s", Rule{Name: "all", Filter: Filter{Correlation: &all}}, done)
	})
	w.sendBatch("t", fullMessage())
	require.EqualValues(t, 1, w.countsOf("t/subscriptions/s").Active)
}

func TestAction_SetsTheAllowedProperties(t *testing.T) {
	set := []string{"ContentType", "CorrelationId", "ReplyTo", "ReplyToSessionId", "SessionId", "Subject", "To", "PartitionKey"}
	var action strings.Builder
	for _, name := range set {
		fmt.Fprintf(&action, "SET sys.%s = 'new'; ", name)
	}
	w := newSubscribed(t, Rule{Name: "r", Action: action.String() + "REMOVE a; SET a = 1; SET b = a + 1; REMOVE b"})
	w.sendBatch("t", fullMessage())
	d := w.newReceiver("t/subscriptions/s", PeekLock).takeOne()
	require.Equal(t, []string{"new", "new", "new", "new", "new", "new", "new", "new"},
		[]string{d.ContentType, d.CorrelationID, d.ReplyTo, d.ReplyToSessionID, *d.SessionID, d.Subject, d.To, d.PartitionKey})
	require.True(t, d.Rewritten)
	require.JSONEq(t, `{"a":1}`, string(d.ApplicationProperties))

	w = newSubscribed(t, Rule{Name: "r", Action: "REMOVE sys.SessionId; REMOVE sys.To"})
	w.sendBatch("t", fullMessage())
	d = w.newReceiver("t/subscriptions/s", PeekLock).takeOne()
	require.Nil(t, d.SessionID)
	require.Empty(t, d.To)

	for _, action := range []string{"SET sys.MessageId = 'x'", "SET sys.To = 5", "SET sys.TimeToLive = 5", "SET sys.SessionId = '" + strings.Repeat("x", maxID+1) + "'", "SET a = b * 'x'"} {
		w := newSubscribed(t, Rule{Name: "r", Action: action})
		w.sendBatch("t", messageWith("x", map[string]any{"b": 1}))
		require.Equal(t, ReasonFilter, w.newReceiver("t/subscriptions/s/$DeadLetterQueue", PeekLock).takeOne().propertyOf("DeadLetterReason"), action)
	}
}

func TestUndecodableProperties_FailFiltersThatReadThem(t *testing.T) {
	for _, r := range []Rule{
		{Name: "r", Filter: Filter{SQL: "a = 1"}},
		{Name: "r", Filter: Filter{Correlation: &Correlation{Properties: map[string]any{"a": 1}}}},
		{Name: "r", Action: "SET a = 1"},
	} {
		w := newSubscribed(t, r)
		m := textMessage("x")
		m.ApplicationProperties = []byte("garbage")
		w.sendBatch("t", m)
		require.Equal(t, Counts{DeadLetter: 1, Bytes: w.countsOf("t").Bytes}, w.countsOf("t/subscriptions/s"))
	}
}

func TestUndecodableProperties_DoNotAffectOtherFilters(t *testing.T) {
	w := newSubscribed(t, Rule{Name: "a", Filter: Filter{SQL: "a = 1"}}, Rule{Name: "b", Filter: Filter{SQL: "sys.To IS NULL"}})
	m := textMessage("x")
	m.ApplicationProperties = []byte("garbage")
	w.sendBatch("t", m)
	require.EqualValues(t, 1, w.countsOf("t/subscriptions/s").Active)
}

func TestAddRule_RefusesInvalidRules(t *testing.T) {
	w := newSubscribed(t)
	w.createEntity(Entity{Path: "q"})
	add := func(path string, r Rule) error {
		return awaitDone(func(done func(error)) { w.bus.AddRule(path, r, done) })
	}
	for name, r := range map[string]Rule{
		"filter":      {Name: "r", Filter: Filter{SQL: "a ="}},
		"action":      {Name: "r", Action: "DROP a"},
		"two filters": {Name: "r", Filter: Filter{SQL: "a = 1", False: true}},
		"no name":     {},
		"long name":   {Name: strings.Repeat("x", maxRuleName+1)},
		"parameter":   {Name: "r", Filter: Filter{SQL: "a = @p", Parameters: map[string]any{"@p": func() {}}}},
		"property":    {Name: "r", Filter: Filter{Correlation: &Correlation{Properties: map[string]any{"p": func() {}}}}},
	} {
		require.ErrorIs(t, add("t/subscriptions/s", r), ErrInvalid, name)
	}
	require.NoError(t, add("t/subscriptions/s", Rule{Name: "r"}))
	require.ErrorIs(t, add("t/subscriptions/s", Rule{Name: "R"}), ErrExists)
	require.ErrorIs(t, add("q", Rule{Name: "r"}), ErrNotAllowed)
	require.ErrorIs(t, add("t/subscriptions/none", Rule{Name: "r"}), ErrNotFound)
	_, err := w.bus.Rules("t")
	require.ErrorIs(t, err, ErrNotAllowed)
	require.ErrorIs(t, awaitDone(func(done func(error)) { w.bus.DeleteRule("t/subscriptions/s", "none", done) }), ErrNotFound)
	require.ErrorIs(t, awaitDone(func(done func(error)) { w.bus.DeleteRule("t", "r", done) }), ErrNotAllowed)
}

func TestDisabledSubscription_ReceivesNoMessages(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "t", Kind: Topic})
	w.createEntity(Entity{Path: "t/Subscriptions/on", Kind: Subscription})
	w.createEntity(Entity{Path: "t/Subscriptions/off", Kind: Subscription, Status: StatusDisabled})
	w.sendBatch("t", textMessage("a"))
	require.EqualValues(t, 1, w.countsOf("t/subscriptions/on").Active)
	require.Zero(t, w.countsOf("t/subscriptions/off"))
	c := w.newReceiver("t/subscriptions/on", PeekLock)
	w.requireDone(func(done func(error)) { w.bus.Update(Entity{Path: "t", Status: StatusDisabled}, done) })
	require.Equal(t, []error{ErrDisabled}, c.lost, "nothing is received below a disabled topic")
}
