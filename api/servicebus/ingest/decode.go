package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/internal/eventjson"
	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/internal/receiver"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// MessageLimits are the limits of one announcement. A zero field selects its default.
type MessageLimits struct {
	Body          int // maximum bytes of the whole message; default 32 MB
	Payload       int // maximum bytes of one payload, without insignificant white space; default 1 MB
	PayloadDepth  int // maximum levels of nesting in one payload; default 64
	PayloadNumber int // maximum characters of a number in a payload; default 400
	Events        int // default 10,000
}

// A decoder decodes the events in messages. It is safe for concurrent use.
type decoder struct {
	limits MessageLimits
	check  func([]domain.Event) error
}

// newDecoder returns a decoder with limits. check validates the events of one message; it is the
// method Check of a hub.Hub.
func newDecoder(limits MessageLimits, check func([]domain.Event) error) *decoder {
	const megabyte = 1 << 20
	return &decoder{
		limits: MessageLimits{
			Body:          cmp.Or(limits.Body, 32*megabyte),
			Payload:       cmp.Or(limits.Payload, megabyte),
			PayloadDepth:  limits.PayloadDepth,
			PayloadNumber: limits.PayloadNumber,
			Events:        cmp.Or(limits.Events, 10_000),
		},
		check: check,
	}
}

// decode returns the events of a message in order, or a rejection if the message can never be
// stored. hub.Ingest accepts each returned event. The events share no memory with the message. A
// message may contain no events. causes are the trace contexts in CloudEvents.
func (d *decoder) decode(m *azservicebus.ReceivedMessage) (events []domain.Event, causes []domain.TraceContext, _ *rejection) {
	if rejected := checkMessageType(m.ApplicationProperties); rejected != nil {
		return nil, nil, rejected
	}
	sent, rejected := d.readBody(m)
	if rejected != nil {
		return nil, nil, rejected
	}
	if rejected := d.rejectFaultyEvents(sent); rejected != nil {
		return nil, nil, rejected
	}
	if rejected := checkSession(m.SessionID, sent.events); rejected != nil {
		return nil, nil, rejected
	}
	return sent.events, sent.causes, nil
}

// A decodedBody contains the events and the faults of a message body, whatever its format.
type decodedBody struct {
	events []domain.Event    // valid events
	faults []eventjson.Fault // faults of invalid events, up to a limit
	total  int               // number of all faults, including those beyond the limit
	causes []domain.TraceContext

	// fault converts the hub's error for a field of events[i] to a fault.
	fault func(i int, field, detail string) eventjson.Fault
}

// checkMessageType rejects a message with a wrong message type. It accepts a message without a
// type, because only senders of the original set a type.
func checkMessageType(properties map[string]any) *rejection {
	switch stated := properties[contract.PropertyMessageType].(type) {
	case nil:
		return nil
	case string:
		if stated == contract.DataAvailable {
			return nil
		}
		return reject(reasonMessageType, "The application property %s is %q; this queue takes %s only.", contract.PropertyMessageType, domain.Shorten(stated), contract.DataAvailable)
	default:
		return reject(reasonMessageType, "The application property %s has the type %T; send the string %s.", contract.PropertyMessageType, stated, contract.DataAvailable)
	}
}

// readBody decodes the body of a message according to its content type.
func (d *decoder) readBody(m *azservicebus.ReceivedMessage) (*decodedBody, *rejection) {
	if m.Body == nil {
		return nil, reject(reasonNoBody, "The message has no body of one AMQP data section; a value, a sequence or several sections cannot be read. Send the bytes of the body as they are.")
	}
	if len(m.Body) > d.limits.Body {
		return nil, reject(reasonTooLarge, "The body has %d bytes; the hub takes at most %d. Send the events in several messages.", len(m.Body), d.limits.Body)
	}
	var parse func([]byte, eventjson.Limits) (*eventjson.Events, error)
	media, rejected := mediaType(m.ContentType)
	switch media {
	case contract.Protobuf:
		return readContract(m.Body)
	case contract.JSON:
		parse = eventjson.Parse
	case contract.CloudEvent:
		parse = eventjson.ParseCloudEvent
	case contract.CloudEventBatch:
		parse = eventjson.ParseCloudEvents
	default:
		return nil, rejected
	}
	sent, err := parse(m.Body, eventjson.Limits{
		Events: d.limits.Events, Payload: d.limits.Payload, PayloadDepth: d.limits.PayloadDepth, PayloadNumber: d.limits.PayloadNumber,
	})
	if err != nil {
		return nil, rejectUnreadable(err, media)
	}
	return &decodedBody{events: sent.Events, faults: sent.Faults.List, total: sent.Faults.Total, causes: sent.Causes, fault: sent.Fault}, nil
}

// mediaType returns the media type of a message as a constant of package contract. It returns a
// rejection if the media type is unknown.
func mediaType(stated *string) (string, *rejection) {
	const accepted = contract.Protobuf + " (or none), " + contract.JSON + ", " + contract.CloudEvent + " and " + contract.CloudEventBatch
	if stated == nil || strings.TrimSpace(*stated) == "" {
		return contract.Protobuf, nil
	}
	media, parameters, err := mime.ParseMediaType(*stated)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return "", reject(reasonContentType, "The content type %q is malformed; accepted are %s.", domain.Shorten(*stated), accepted)
	}
	switch media {
	case contract.Protobuf, "application/protobuf", "application/octet-stream":
		return contract.Protobuf, nil
	case contract.JSON, contract.CloudEvent, contract.CloudEventBatch:
		if charset := parameters["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii") {
			return "", reject(reasonContentType, "The charset %q is not accepted; JSON is UTF-8.", domain.Shorten(charset))
		}
		return media, nil
	}
	return "", reject(reasonContentType, "The content type %q is not accepted; accepted are %s.", domain.Shorten(*stated), accepted)
}

// rejectUnreadable returns the rejection for a body that could not be decoded completely.
func rejectUnreadable(err error, media string) *rejection {
	if many, ok := errors.AsType[*eventjson.TooManyError](err); ok {
		return reject(reasonTooMany, "There are %v in the message. Send them in several messages.", many)
	}
	if syntax, ok := errors.AsType[*eventjson.SyntaxError](err); ok && syntax.Pointer != "" {
		return reject(reasonNotJSON, "The body is not the JSON of %s: %s: %v.", media, syntax.Pointer, err)
	}
	return reject(reasonNotJSON, "The body is not the JSON of %s: %v.", media, err)
}

// rejectFaultyEvents returns nil if all events are valid and the hub accepts them. Otherwise it
// returns a rejection that lists all faults.
func (d *decoder) rejectFaultyEvents(a *decodedBody) *rejection {
	faults, total, reason := a.faults, a.total, reasonInvalid
	err := d.check(a.events)
	if refused, ok := errors.AsType[*hub.RejectionError](err); ok {
		for _, f := range refused.Faults {
			faults = append(faults, a.fault(f.Index, f.Field, f.Err.Error()))
		}
		if total == 0 && domain.KindOf(err) == domain.Conflict {
			reason = reasonConflict
		}
		total += len(refused.Faults)
	} else if err != nil {
		return reject(reasonInvalid, "The hub does not accept the events: %v.", err)
	}
	if total == 0 {
		return nil
	}
	slices.SortStableFunc(faults, func(a, b eventjson.Fault) int { return a.Index - b.Index })
	text := "No event of the message was stored, because of " + countedFaults(total) + ". Correct it and send the message again."
	for _, f := range faults {
		text += fmt.Sprintf("\n%s: %s", cmp.Or(f.Pointer, "the body"), f.Detail)
		if len(text) > receiver.MaxDescription {
			break
		}
	}
	return reject(reason, "%s", text)
}

func countedFaults(faults int) string {
	if faults == 1 {
		return "a fault"
	}
	return fmt.Sprintf("%d faults", faults)
}

// checkSession rejects a message in a session unless all its events are for the recipient of that
// session. In the wrong session, an event could overtake earlier events of its recipient. A message
// without a session may contain events for any recipients.
func checkSession(session *string, events []domain.Event) *rejection {
	if session == nil {
		return nil
	}
	for i := range events {
		if recipient := events[i].Recipient.String(); recipient != *session && plainRecipient(recipient) != plainRecipient(*session) {
			return reject(reasonOtherRecipient, "No event of the message was stored: event %s is for %s, and the session is %q. Send each event with its recipient as the session id.",
				events[i].ID, recipient, domain.Shorten(*session))
		}
	}
	return nil
}

// checkOrigin rejects a message unless all its events have the given origin. The zero Origin allows
// all origins.
func checkOrigin(origin domain.Origin, events []domain.Event) *rejection {
	if origin == (domain.Origin{}) {
		return nil
	}
	for i := range events {
		if other := events[i].Origin; other != origin {
			return reject(reasonWrongOrigin, "This queue is for events of %s, and event %s is of %s. No event of the message was stored; send each event by a queue that is for its domain.",
				origin, events[i].ID, other)
		}
	}
	return nil
}

// plainRecipient returns a GUID in its canonical format, and any text that is not a GUID unchanged.
func plainRecipient(recipient string) string {
	if uuid, ok := domain.FromGUID(recipient); ok {
		return uuid
	}
	return recipient
}
