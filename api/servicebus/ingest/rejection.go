package ingest

import "github.com/messagehub/messagehub/api/servicebus/internal/receiver"

// The reasons why a message becomes a dead letter: words whose meaning never
// changes, so that an operator can group dead letters by them. If HTTP has a
// problem for the same fault, the reason is its type.
const (
	reasonMessageType    = "wrong-message-type"     // its type is not that of an announcement
	reasonContentType    = "unsupported-media-type" // its content type is not known
	reasonNoBody         = "no-body"                // the body is not one data section
	reasonTooLarge       = "body-too-large"
	reasonTooMany        = "too-many-events"
	reasonNotProtobuf    = "not-protobuf"    // the body does not match its content type
	reasonNotJSON        = "not-json"        // the body does not match its content type
	reasonInvalid        = "invalid"         // an event has an invalid field
	reasonConflict       = "id-conflict"     // one id has different contents in the message
	reasonOtherRecipient = "other-recipient" // an event is for another recipient than that of its session
	reasonWrongOrigin    = "wrong-origin"    // an event is of another origin than that of its queue
	reasonDamaged        = "damaged"         // the mailbox of a recipient cannot be read; the message is valid
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
