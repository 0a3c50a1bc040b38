package contract

import (
	"time"

	"github.com/google/uuid"
)

// Properties returns the application properties of a message of a type, made at
// a time; id is random and unique for the message. A retry that sends the same
// message keeps them.
func Properties(messageType, correlation string, at time.Time, id uuid.UUID) map[string]any {
	return map[string]any{
		PropertyTimestamp:      at.UTC().Format("2006-01-02T15:04:05Z"),
		PropertyCorrelation:    correlation,
		PropertyVersion:        int32(Version), // int in .NET
		PropertyMessageType:    messageType,
		PropertyIdentification: id.String(),
	}
}

// FormerMessageID returns the message id that the original sender has set,
// given the current one. They differ if an operator has sent the message again.
func FormerMessageID(id string, properties map[string]any) string {
	if former, ok := properties[PropertyFormerMessageID].(string); ok && properties[PropertyResentBy] != nil {
		return former
	}
	return id
}
