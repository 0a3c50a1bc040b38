package ingest

import "github.com/messagehub/messagehub/api/servicebus/internal/receiver"

// Reasons for which a message becomes a dead letter. They never change, so that an operator can
// group dead letters by reason. If the HTTP API has a problem type for the same fault, the reason
// equals that type.
const (
	reasonMessageType    = "wrong-message-type"     // the property MessageType is not DataAvailable
	reasonContentType    = "unsupported-media-type" // the content type is unknown
	reasonNoBody         = "no-body"                // the body is not one data section
	reasonTooLarge       = "body-too-large"
	reasonTooMany        = "too-many-events"
	reasonNotProtobuf    = "not-protobuf"    // the body does not match its content type
	reasonNotJSON        = "not-json"        // the body does not match its content type
	reasonInvalid        = "invalid"         // an event has an invalid field
	reasonConflict       = "id-conflict"     // an event has the id of another event, of the message or stored before, and different content
	reasonOtherRecipient = "other-recipient" // an event is not for the recipient of the session
	reasonWrongOrigin    = "wrong-origin"    // an event does not have the required origin of its queue
	reasonDamaged        = "damaged"         // the mailbox of a recipient is damaged; the message is valid
)

// reasons has all reasons.
var reasons = []string{
	reasonMessageType, reasonContentType, reasonNoBody, reasonTooLarge, reasonTooMany, reasonNotProtobuf, reasonNotJSON, reasonInvalid,
	reasonConflict, reasonOtherRecipient, reasonWrongOrigin, reasonDamaged,
}

// A rejection is the reason and the description of a dead letter.
type rejection = receiver.Rejection

func reject(reason, format string, args ...any) *rejection {
	return receiver.Reject(reason, format, args...)
}
