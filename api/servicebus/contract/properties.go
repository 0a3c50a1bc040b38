package contract

import (
	"time"

	"github.com/google/uuid"
)

// Properties returns the application properties of a message that has the type messageType and was
// created at the time at. id is random and unique for the message. If a message is sent again, its
// properties do not change.
func Properties(messageType, correlation string, at time.Time, id uuid.UUID) map[string]any {
	return map[string]any{
		PropertyTimestamp:      at.UTC().Format("2006-01-02T15:04:05Z"),
		PropertyCorrelation:    correlation,
		PropertyVersion:        int32(Version), // int32, because the original reads an int of .NET, which has 32 bits
		PropertyMessageType:    messageType,
		PropertyIdentification: id.String(),
	}
}

// FormerMessageID returns the message id that the original sender set; id is the current message
// id. The two differ if an operator has sent the message again.
func FormerMessageID(id string, properties map[string]any) string {
	if former, ok := properties[PropertyFormerMessageID].(string); ok && properties[PropertyResentBy] != nil {
		return former
	}
	return id
}
