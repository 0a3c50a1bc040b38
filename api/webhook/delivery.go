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

// A Delivery delivers one message to one receiver.
type Delivery struct {
	ID           string // id of the delivery, from DeliveryID
	Attempts     int    // number of failed attempts before this call
	Subscription string // id of the subscription
	Settings     *domain.Subscription
	Message      *domain.Message
	Attachments  json.RawMessage   // JSON object with the values of the attachments; nil if none exist
	Headers      map[string]string // headers that the owner of the subscription has chosen; see CheckHeaders

	// Secrets sign the message, each with a separate signature. There are two secrets while one
	// replaces the other.
	Secrets []Secret
	HMACKey Key // key that signs the Authorization header; "" if there is no such header
}

// A Key is the HMAC key of a receiver. Its printed form is asterisks.
type Key string

// String returns asterisks.
func (k Key) String() string { return hidden }

// GoString returns asterisks.
func (k Key) GoString() string { return hidden }

// LogValue returns asterisks.
func (k Key) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText returns asterisks.
func (k Key) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// DeliveryID returns the id for the delivery of an entry to the receiver of a cursor, which is the
// same in each attempt. It depends on the time of publication, so an entry of a later stream with
// the same name gets a different id.
func DeliveryID(cursor domain.CursorID, stream domain.StreamName, entry domain.EntryID, published time.Time) string {
	text := cursor.String() + "\n" + stream.String() + "\n" + entry.String() + "\n" + strconv.FormatInt(published.UnixMicro(), 10)
	sum := sha256.Sum256([]byte(text))
	return "msg_" + hex.EncodeToString(sum[:16])
}
