package ingest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/domain"
)

func TestDecode_ReturnsTheSameEventForEachFormat(t *testing.T) {
	fields := validFields()
	lean := validFields()
	delete(lean, "id")
	delete(lean, "recipient")
	leanly := cloudEventOf(lean)
	leanly["id"], leanly["subject"] = someID, someActor
	for name, m := range map[string]*azservicebus.ReceivedMessage{
		"the contract":                                   inContract(t, validNotification()),
		"one event in JSON":                              inJSON(t, "application/json", fields),
		"an array of one event in JSON":                  inJSON(t, "application/json; charset=utf-8", []any{fields}),
		"a CloudEvent":                                   inJSON(t, "application/cloudevents+json", cloudEventOf(fields)),
		"a CloudEvent with an array":                     inJSON(t, "application/cloudevents+json; charset=UTF-8", cloudEventOf([]any{fields})),
		"a CloudEvent that has the id and the recipient": inJSON(t, "application/cloudevents+json", leanly),
		"a batch of CloudEvents":                         inJSON(t, "application/cloudevents-batch+json", []any{cloudEventOf(fields)}),
	} {
		t.Run(name, func(t *testing.T) {
			session := someActor
			m.SessionID = &session
			events, _, rejected := testDecoder(MessageLimits{}).decode(m)
			require.Nil(t, rejected)
			require.Equal(t, []domain.Event{validEvent(t)}, events)
		})
	}
}

func TestDecode_SelectsTheFormatByContentType(t *testing.T) {
	for _, stated := range []string{"", " ", "application/x-protobuf", "Application/X-Protobuf; proto=DataAvailable", "application/protobuf", "application/octet-stream"} {
		m := inContract(t, validNotification())
		m.ContentType = &stated
		events, _, rejected := testDecoder(MessageLimits{}).decode(m)
		require.Nil(t, rejected, "%q", stated)
		require.Len(t, events, 1)
	}
	for _, stated := range []string{"application/json", "APPLICATION/JSON", "application/json; charset=utf-8", `application/json;charset="UTF-8"; v=1`, "application/json; charset=us-ascii", "application/json; ="} {
		events, _, rejected := testDecoder(MessageLimits{}).decode(inJSON(t, stated, validFields()))
		require.Nil(t, rejected, "%q", stated)
		require.Len(t, events, 1)
	}
}

func TestDecode_KeepsTheOrderOfEvents(t *testing.T) {
	var all []any
	for n := range 100 {
		fields := validFields()
		fields["id"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", 100-n)
		all = append(all, fields)
	}
	for contentType, body := range map[string]any{
		"application/json":             all,
		"application/cloudevents+json": cloudEventOf(all),
		"application/cloudevents-batch+json": []any{
			cloudEventOf(all[:40]), cloudEventOf(all[40]), cloudEventOf(all[41:]),
		},
	} {
		events, _, rejected := testDecoder(MessageLimits{}).decode(inJSON(t, contentType, body))
		require.Nil(t, rejected)
		require.Len(t, events, 100)
		for n := range events {
			require.Equal(t, all[n].(map[string]any)["id"], events[n].ID.String())
		}
	}
}

func TestAMessageMayHaveNoEvents(t *testing.T) {
	for contentType, body := range map[string]string{"application/json": "[]", "application/cloudevents-batch+json": " [ ] "} {
		events, _, rejected := testDecoder(MessageLimits{}).decode(inJSON(t, contentType, body))
		require.Nil(t, rejected)
		require.Empty(t, events)
	}
}

func TestAnEventOverTheBusMayHaveAPayload(t *testing.T) {
	fields := validFields()
	fields["payload"] = map[string]any{"kWh": []int{1, 2}}
	for contentType, body := range map[string]any{"application/json": fields, "application/cloudevents+json": cloudEventOf(fields)} {
		events, _, rejected := testDecoder(MessageLimits{}).decode(inJSON(t, contentType, body))
		require.Nil(t, rejected)
		require.JSONEq(t, `{"kWh":[1,2]}`, string(events[0].Payload))
	}
}

func TestDecode_SharesNoMemoryWithTheMessage(t *testing.T) {
	fields := validFields()
	fields["payload"] = "a payload"
	for _, m := range []*azservicebus.ReceivedMessage{
		inContract(t, validNotification()),
		inJSON(t, "application/json", []any{fields}),
		inJSON(t, "application/cloudevents+json", cloudEventOf(fields)),
	} {
		events, _, rejected := testDecoder(MessageLimits{}).decode(m)
		require.Nil(t, rejected)
		before := fmt.Sprintf("%+v", events)
		for i := range m.Body {
			m.Body[i] = '!'
		}
		require.Equal(t, before, fmt.Sprintf("%+v", events))
	}
}

// A wrongMessage is a message that decode rejects, with the expected text of its dead letter.
type wrongMessage struct {
	name    string
	message *azservicebus.ReceivedMessage
	reason  string
	says    []string // expected substrings of the description
}

func TestDecode_RejectsInvalidMessagesWithAReason(t *testing.T) {
	typed := func(contentType string) *azservicebus.ReceivedMessage {
		return inJSON(t, contentType, validFields())
	}
	property := func(value any) *azservicebus.ReceivedMessage {
		m := inContract(t, validNotification())
		m.ApplicationProperties = map[string]any{"MessageType": value}
		return m
	}
	session := func(id string, m *azservicebus.ReceivedMessage) *azservicebus.ReceivedMessage {
		m.SessionID = &id
		return m
	}
	event := func(field string, value any) map[string]any {
		fields := validFields()
		fields[field] = value
		return fields
	}
	inline, heavy := event("origin", "Charges"), event("weight", 2000)
	heavy["payload"] = strings.Repeat("x", 1<<20)
	for _, tc := range []wrongMessage{
		{"another message type", property("Dequeue"), "wrong-message-type", []string{`MessageType is "Dequeue"`, "DataAvailable only"}},
		{"a message type in another case", property("dataavailable"), "wrong-message-type", []string{`"dataavailable"`}},
		{"a message type that is a number", property(int32(7)), "wrong-message-type", []string{"has the type int32", "the string DataAvailable"}},
		{"a message type that is a list", property([]any{"DataAvailable"}), "wrong-message-type", []string{"has the type []interface {}"}},

		{"an unknown content type", typed("text/csv"), "unsupported-media-type", []string{`"text/csv"`, "application/x-protobuf (or none), application/json"}},
		{"a malformed content type", typed("json/"), "unsupported-media-type", []string{`"json/"`, "accepted are"}},
		{"a content type that is no text", typed("\xff\x00/\xff"), "unsupported-media-type", nil},
		{"another charset", typed("application/json; charset=iso-8859-1"), "unsupported-media-type", []string{`"iso-8859-1"`, "UTF-8"}},
		{"another JSON", typed("application/vnd.api+json"), "unsupported-media-type", nil},

		{"no body", &azservicebus.ReceivedMessage{}, "no-body", []string{"one AMQP data section"}},
		{"a body that is a value", &azservicebus.ReceivedMessage{RawAMQPMessage: &azservicebus.AMQPAnnotatedMessage{Body: azservicebus.AMQPAnnotatedMessageBody{Value: "text"}}}, "no-body", nil},
		{"a body that is a sequence", &azservicebus.ReceivedMessage{RawAMQPMessage: &azservicebus.AMQPAnnotatedMessage{Body: azservicebus.AMQPAnnotatedMessageBody{Sequence: [][]any{{1}}}}}, "no-body", nil},
		{"a body in two sections", &azservicebus.ReceivedMessage{RawAMQPMessage: &azservicebus.AMQPAnnotatedMessage{Body: azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{{1}, {2}}}}}, "no-body", nil},
		{"a body over the limit", &azservicebus.ReceivedMessage{Body: make([]byte, 32<<20+1)}, "body-too-large", []string{"33554433 bytes", "at most 33554432"}},
		{"too many events", inJSON(t, "application/json", "["+strings.Repeat("{},", 10_000)+"{}]"), "too-many-events", []string{"more than 10000 events", "several messages"}},
		{"too many events in a CloudEvent", inJSON(t, "application/cloudevents+json", `{"data":[`+strings.Repeat("{},", 10_000)+"{}]}"), "too-many-events", nil},
		{"too many CloudEvents", inJSON(t, "application/cloudevents-batch+json", "["+strings.Repeat(`{"data":[]},`, 10_000)+"{}]"), "too-many-events", nil},

		{"JSON that says it is nothing", &azservicebus.ReceivedMessage{Body: []byte(`{"id":"x"}`)}, "not-protobuf", []string{"needs its content type, such as application/json"}},
		{"protobuf that was cut", &azservicebus.ReceivedMessage{Body: inContract(t, validNotification()).Body[:50]}, "not-protobuf", nil},
		{"protobuf with text that is no text", &azservicebus.ReceivedMessage{Body: []byte("\x0a\x02\xff\xfe")}, "not-protobuf", nil},
		{"an empty body that is protobuf", &azservicebus.ReceivedMessage{Body: []byte{}}, "invalid", []string{"5 faults", "UUID: ", "recipient: ", "messageType: ", "origin: ", "relativeWeight: "}},

		{"an empty body that is JSON", inJSON(t, "application/json", ""), "not-json", []string{"the body is empty"}},
		{"JSON that was cut", inJSON(t, "application/json", `[{"id":"x"`), "not-json", []string{"ends inside an event"}},
		{"one event that was cut", inJSON(t, "application/json", `{"id":"x"`), "not-json", []string{"at byte 9"}},
		{"two events without an array", inJSON(t, "application/json", `{} {}`), "not-json", []string{"want nothing after the event, at byte 2"}},
		{"JSON that is no event", inJSON(t, "application/json", `7`), "not-json", []string{"want an event or an array of events"}},
		{"broken JSON further in", inJSON(t, "application/json", `[{},{"id":}]`), "not-json", []string{"/1: want a value"}},
		{"a batch that is none", inJSON(t, "application/cloudevents-batch+json", cloudEventOf(validFields())), "not-json", []string{"want an array of CloudEvents"}},
		{"a CloudEvent that is a batch", inJSON(t, "application/cloudevents+json", []any{cloudEventOf(validFields())}), "invalid", []string{"the body: want a CloudEvent, an object, got an array"}},

		{"a fault of one event", inJSON(t, "application/json", event("weight", 0)), "invalid", []string{"because of a fault.", "\n/weight: weight: want at least 1 (KB), got 0"}},
		{"a fault in an array", inJSON(t, "application/json", []any{validFields(), event("weight", 0)}), "invalid", []string{"\n/1/weight: "}},
		{"a fault in a CloudEvent", inJSON(t, "application/cloudevents+json", cloudEventOf(event("weight", 0))), "invalid", []string{"\n/data/weight: "}},
		{"a fault in a batch", inJSON(t, "application/cloudevents-batch+json", []any{cloudEventOf(validFields()), cloudEventOf([]any{validFields(), event("weight", 0)})}), "invalid", []string{"\n/1/data/1/weight: "}},
		{"bytes instead of data", inJSON(t, "application/cloudevents+json", map[string]any{"specversion": "1.0", "id": "1", "source": "s", "type": "t", "data_base64": "AAAA"}), "invalid", []string{"\n/data_base64: data_base64: want the event as JSON in data instead"}},
		{"a payload heavier than its event", inJSON(t, "application/json", event("payload", strings.Repeat("x", 3<<10))), "invalid", []string{"/payload: payload: has 3074 bytes, more than the weight"}},
		{"a payload over the limit", inJSON(t, "application/json", heavy), "invalid", []string{"/payload: payload: want at most 1048576 bytes, got 1048578"}},
		{"a payload nested too deep", inJSON(t, "application/json", withPayload(strings.Repeat("[", 65)+strings.Repeat("]", 65))), "invalid", []string{"\n/payload: payload: want at most 64 levels of nesting"}},
		{"a payload with a long number", inJSON(t, "application/cloudevents+json", `{"specversion":"1.0","id":"1","source":"s","type":"t","data":`+withPayload(strings.Repeat("9", 401))+`}`), "invalid", []string{"\n/data/payload: payload: want numbers of at most 400 characters, got 401"}},
		{"a payload with a name twice", inJSON(t, "application/cloudevents-batch+json", `[{"specversion":"1.0","id":"1","source":"s","type":"t","data":`+withPayload(`{"a":1,"a":1}`)+`}]`), "invalid", []string{"\n/0/data/payload: payload: want each name once in an object"}},
		{"a payload with half of a surrogate pair", inJSON(t, "application/json", "["+withPayload(`"\ud800"`)+"]"), "invalid", []string{"\n/0/payload: payload: want both halves of a surrogate pair"}},
		{"a payload that is not UTF-8", inJSON(t, "application/json", "["+withPayload("\"\xff\"")+"]"), "not-json", []string{"/0: want UTF-8"}},
		{"an origin that the hub does not know", inJSON(t, "application/json", event("origin", "Gas")), "invalid", []string{`/origin: origin: "Gas" is unknown here; known are Aggregations`}},
		{"the original's name of an origin in JSON", inJSON(t, "application/json", event("origin", "Wholesale")), "invalid", []string{`"Wholesale" is unknown here; known are Aggregations`}},
		{"content that is sent along, and is not there", inJSON(t, "application/json", inline), "invalid", []string{"/payload: payload: missing"}},
		{"content that the contract cannot send along", inContract(t, validNotification(func(c *contract.DataAvailableNotificationContract) { c.Origin = "Charges" })), "invalid", []string{"\npayload: payload: missing"}},
		{"faults of all kinds, in the order of the events", inJSON(t, "application/json", []any{event("origin", "Gas"), event("weight", 0)}), "invalid", []string{"2 faults", "\n/0/origin: ", "\n/1/weight: "}},
		{"one id for two contents", inJSON(t, "application/json", []any{validFields(), event("weight", 4)}), "id-conflict", []string{"\n/0/id: id: " + someID + " stands for different contents", "\n/1/id: "}},

		{"an event for another recipient", session("5790001330552", inContract(t, validNotification())), "other-recipient", []string{"No event of the message was stored", someID, someActor, `"5790001330552"`}},
		{"one of many for another recipient", session(someActor, inJSON(t, "application/json", []any{validFields(), event("recipient", "5790001330552")})), "other-recipient", []string{"No event of the message was stored", "is for 5790001330552", "Send each event with its recipient"}},
		{"a session without a name", session("", inContract(t, validNotification())), "other-recipient", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			events, _, rejected := testDecoder(MessageLimits{}).decode(tc.message)
			require.Empty(t, events)
			require.NotNil(t, rejected)
			require.Equal(t, tc.reason, rejected.Reason, rejected.Description)
			for _, part := range tc.says {
				require.Contains(t, rejected.Description, part)
			}
			requireFits(t, rejected)
		})
	}
}

// requireFits requires that the reason and description of a rejection fit into a dead letter.
func requireFits(t testing.TB, r *rejection) {
	t.Helper()
	require.NotEmpty(t, r.Reason)
	require.LessOrEqual(t, len(r.Reason), 128)
	require.NotEmpty(t, r.Description)
	require.LessOrEqual(t, len(r.Description), 4096)
	require.True(t, utf8.ValidString(r.Description), "%q", r.Description)
}

func TestASessionMayWriteItsRecipientInAnyForm(t *testing.T) {
	for _, session := range []string{someActor, strings.ToUpper(someActor), "{" + someActor + "}", strings.ReplaceAll(someActor, "-", "")} {
		m := inContract(t, validNotification())
		m.SessionID = &session
		_, _, rejected := testDecoder(MessageLimits{}).decode(m)
		require.Nil(t, rejected, session)
	}
	gln := "5790001330552"
	m := inContract(t, validNotification(func(c *contract.DataAvailableNotificationContract) { c.Recipient = gln }))
	m.SessionID = &gln
	_, _, rejected := testDecoder(MessageLimits{}).decode(m)
	require.Nil(t, rejected)
}

func TestDecode_IgnoresUnknownProperties(t *testing.T) {
	m := inContract(t, validNotification())
	m.ApplicationProperties = map[string]any{
		"MessageType": "DataAvailable", "MessageVersion": "one", "OperationTimestamp": time.Now(), "OperationCorrelationId": 7,
		"EventIdentification": nil, "messageType": 7, "DeadLetterReason": []byte{1},
	}
	events, _, rejected := testDecoder(MessageLimits{}).decode(m)
	require.Nil(t, rejected)
	require.Len(t, events, 1)
	m.ApplicationProperties = map[string]any{"MessageType": nil}
	_, _, rejected = testDecoder(MessageLimits{}).decode(m)
	require.Nil(t, rejected)
}

func TestDecode_UsesTheConfiguredLimits(t *testing.T) {
	d := testDecoder(MessageLimits{Body: 600, Events: 2, Payload: 10})
	two := inJSON(t, "application/json", []any{validFields(), validFields()})
	require.Less(t, len(two.Body), 600)
	_, _, rejected := d.decode(two)
	require.Nil(t, rejected)

	two.Body = append(two.Body, strings.Repeat(" ", 600-len(two.Body))...)
	_, _, rejected = d.decode(two)
	require.Nil(t, rejected)
	two.Body = append(two.Body, ' ')
	_, _, rejected = d.decode(two)
	require.Equal(t, "body-too-large", rejected.Reason)

	_, _, rejected = d.decode(inJSON(t, "application/json", "[{},{},{}]"))
	require.Equal(t, "too-many-events", rejected.Reason)
	fields := validFields()
	fields["payload"] = strings.Repeat("x", 8)
	_, _, rejected = d.decode(inJSON(t, "application/json", fields))
	require.Nil(t, rejected)
	fields["payload"] = strings.Repeat("x", 9)
	_, _, rejected = d.decode(inJSON(t, "application/json", fields))
	require.Contains(t, rejected.Description, "want at most 10 bytes, got 11")

	d = testDecoder(MessageLimits{PayloadDepth: 1, PayloadNumber: 2})
	_, _, rejected = d.decode(inJSON(t, "application/json", withPayload("[[]]")))
	require.Contains(t, rejected.Description, "want at most 1 levels of nesting")
	_, _, rejected = d.decode(inJSON(t, "application/json", withPayload("123")))
	require.Contains(t, rejected.Description, "want numbers of at most 2 characters, got 3")
}

func TestDecode_ShortensALongDescription(t *testing.T) {
	fields := validFields()
	fields["origin"] = strings.Repeat("æ", 100)
	var all []any
	for range 500 {
		all = append(all, fields)
	}
	_, _, rejected := testDecoder(MessageLimits{}).decode(inJSON(t, "application/json", all))
	require.Equal(t, "invalid", rejected.Reason)
	require.Contains(t, rejected.Description, "because of 500 faults")
	require.True(t, strings.HasSuffix(rejected.Description, "…"))
	require.Greater(t, len(rejected.Description), 4000)
	requireFits(t, rejected)
}

// withPayload returns the JSON of a valid event with a payload.
func withPayload(text string) string {
	event, err := json.Marshal(validFields())
	if err != nil {
		panic(err)
	}
	return strings.TrimSuffix(string(event), "}") + `,"payload":` + text + "}"
}

func TestDecode_PutsNoPayloadIntoARejection(t *testing.T) {
	const secret = "canary-4711"
	_, _, repeated := testDecoder(MessageLimits{}).decode(inJSON(t, "application/json", withPayload(`{"`+secret+`":1,"`+secret+`":2}`)))
	require.NotContains(t, repeated.Description, secret)
	fields := validFields()
	fields["payload"] = strings.Repeat(secret, 1000)
	_, _, rejected := testDecoder(MessageLimits{}).decode(inJSON(t, "application/json", fields))
	require.NotContains(t, rejected.Description, secret)
	_, _, rejected = testDecoder(MessageLimits{}).decode(inJSON(t, "application/json", `{"payload":"`+secret+`" "x"}`))
	require.Equal(t, "not-json", rejected.Reason)
	require.NotContains(t, rejected.Description, secret)
}
