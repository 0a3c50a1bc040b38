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
	ID           string // result of DeliveryID
	Attempts     int    // number of failed attempts
	Subscription string // id of the subscription
	Settings     *domain.Subscription
	Message      *domain.Message
	Attachments  json.RawMessage   // object with the values of the attachments; nil: none
	Headers      map[string]string // headers chosen by the owner; see CheckHeaders

	// Secrets sign the message, each with a separate signature: two while one
	// replaces the other.
	Secrets []Secret
	HMACKey Key // signs in the Authorization header; "": no such signature
}

// A Key is the HMAC key of a receiver. It prints as stars.
type Key string

// String returns stars.
func (k Key) String() string { return hidden }

// GoString returns stars.
func (k Key) GoString() string { return hidden }

// LogValue returns stars.
func (k Key) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText returns stars.
func (k Key) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// DeliveryID returns the id of the delivery of an entry to the receiver of a
// cursor. It is the same for each attempt. It differs for an entry of a stream
// with the same name that was created later.
func DeliveryID(cursor domain.CursorID, stream domain.StreamName, entry domain.EntryID, published time.Time) string {
	text := cursor.String() + "\n" + stream.String() + "\n" + entry.String() + "\n" + strconv.FormatInt(published.UnixMicro(), 10)
	sum := sha256.Sum256([]byte(text))
	return "msg_" + hex.EncodeToString(sum[:16])
}
