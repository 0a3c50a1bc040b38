package ingest

import "github.com/messagehub/messagehub/api/servicebus/internal/receiver"

// The reasons for which a message is dead-lettered: words that never change their
// meaning, so that an operator can sort dead letters by them. Where HTTP knows the
// same trouble, the word is that of its problem.
const (
	reasonMessageType    = "wrong-message-type"     // it says that it is no announcement
	reasonContentType    = "unsupported-media-type" // the body has a form that is not known
	reasonNoBody         = "no-body"                // the body is not one data section
	reasonTooLarge       = "body-too-large"
	reasonTooMany        = "too-many-events"
	reasonNotProtobuf    = "not-protobuf"    // the body is not what its content type says
	reasonNotJSON        = "not-json"        // the same
	reasonInvalid        = "invalid"         // an event says what none may
	reasonConflict       = "id-conflict"     // one id stands for different contents in the message
	reasonOtherRecipient = "other-recipient" // an event is for another recipient than its session
	reasonWrongOrigin    = "wrong-origin"    // an event is of another origin than the one that its queue is for
	reasonDamaged        = "damaged"         // the mailbox of a recipient cannot be read; the message is sound
)

// reasons has all of them.
var reasons = []string{
	reasonMessageType, reasonContentType, reasonNoBody, reasonTooLarge, reasonTooMany, reasonNotProtobuf, reasonNotJSON, reasonInvalid,
	reasonConflict, reasonOtherRecipient, reasonWrongOrigin, reasonDamaged,
}

// A rejection is what a dead letter says.
type rejection = receiver.Rejection

func reject(reason, format string, args ...any) *rejection {
	return receiver.Reject(reason, format, args...)
}
