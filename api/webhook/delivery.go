package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A Delivery is one message for one receiver.
type Delivery struct {
	ID           string // id of the delivery, from DeliveryID
	Attempts     int    // number of failed attempts
	Subscription string // id of the subscription
	Settings     *domain.Subscription
	Message      *domain.Message
	Attachments  json.RawMessage   // object with the values of the attachments; nil: no attachments
	Headers      map[string]string // headers from the owner of the subscription; see CheckHeaders

	// Secrets sign the message, each with a separate signature. There are two secrets while one
	// replaces the other.
	Secrets []Secret
	HMACKey Key // signs the Authorization header; "": no such signature
}

// A Key is the HMAC key of a receiver. It prints as asterisks.
type Key string

// String returns asterisks.
func (k Key) String() string { return hidden }

// GoString returns asterisks.
func (k Key) GoString() string { return hidden }

// LogValue returns asterisks.
func (k Key) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText returns asterisks.
func (k Key) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// DeliveryID returns the id of the delivery of an entry to the receiver of a cursor. The id is the
// same in each attempt. It differs for an entry of a later stream with the same name, because the
// id depends on the time of publication.
func DeliveryID(cursor domain.CursorID, stream domain.StreamName, entry domain.EntryID, published time.Time) string {
	text := cursor.String() + "\n" + stream.String() + "\n" + entry.String() + "\n" + strconv.FormatInt(published.UnixMicro(), 10)
	sum := sha256.Sum256([]byte(text))
	return "msg_" + hex.EncodeToString(sum[:16])
}
