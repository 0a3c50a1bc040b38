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
	ID           string // of DeliveryID
	Attempts     int    // failed ones
	Subscription string // its id
	Settings     *domain.Subscription
	Message      *domain.Message
	Attachments  json.RawMessage   // an object with the values of their expressions; nil: none
	Headers      map[string]string // of the user; see CheckHeaders

	// Secrets sign the message, each with its own signature: two while one replaces the
	// other.
	Secrets []Secret
	HMACKey Key // for the Authorization header; "": none
}

// A Key is the secret of a receiver with an HMAC key. It prints as stars.
type Key string

// String returns stars.
func (k Key) String() string { return hidden }

// GoString returns stars.
func (k Key) GoString() string { return hidden }

// LogValue returns stars.
func (k Key) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText returns stars.
func (k Key) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// DeliveryID returns the id of the delivery of an entry to the receiver of a cursor. It is
// the same for each attempt, and another one for an entry of a stream of the same name that
// was made later.
func DeliveryID(cursor domain.CursorID, stream domain.StreamName, entry domain.EntryID, published time.Time) string {
	text := cursor.String() + "\n" + stream.String() + "\n" + entry.String() + "\n" + strconv.FormatInt(published.UnixMicro(), 10)
	sum := sha256.Sum256([]byte(text))
	return "msg_" + hex.EncodeToString(sum[:16])
}
