package domain

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// A Subscription determines which messages of a topic a receiver gets, and how the hub calls the
// receiver with them. Its filter and attachments are JMESPath expressions over the metadata of a
// message. The package that evaluates these expressions also validates them.
type Subscription struct {
	Owner            ActorID
	Topic            string
	CallbackURL      string
	Method           string // HTTP method of the calls: POST or PUT
	Encoding         string // content type of the calls: JSONEncoding or FormEncoding
	FormFields       map[string]string
	PayloadFormField string            // name of the form field that contains the message
	HMACKeyID        string            // id of the HMAC key that the header Authorization names; "": the id of the subscription
	Filter           string            // expression that selects messages; "": all messages
	Attachments      map[string]string // expression for each attachment, by the attachment's name

	IsSync         bool    // a message is attempted only once, and its sender waits for the result
	MaxRate        float64 // maximum number of calls per second; 0: no limit
	MaxConcurrency int     // maximum number of concurrent calls; 0: the hub's limit
	IsOrdered      bool    // calls are made one at a time, in the order of the topic
}

// A SubscriptionID names a subscription. It is a UUID, and unique among the subscriptions of all
// owners.
type SubscriptionID [16]byte

// ParseSubscriptionID reads the 36-character form of a UUID, in upper or lower case. It returns an
// Invalid error for any other text and for the nil UUID.
func ParseSubscriptionID(s string) (SubscriptionID, error) {
	id, err := parseUUID("subscription id", s)
	return id, err
}

// String returns the 36-character form in lower case.
func (id SubscriptionID) String() string { return formatUUID(id) }

// Cursor returns the id of the subscription's cursor.
func (id SubscriptionID) Cursor() CursorID { return CursorID{"s|" + id.String()} }

// SubscriptionOf returns the subscription to which a cursor belongs. It returns an Invalid error if
// the cursor belongs to a different kind of receiver.
func SubscriptionOf(cursor CursorID) (SubscriptionID, error) {
	text, ok := strings.CutPrefix(cursor.s, "s|")
	if !ok {
		return SubscriptionID{}, Errorf(Invalid, "cursor %s does not belong to a subscription", cursor)
	}
	return ParseSubscriptionID(text)
}

// The formats in which the hub sends a message to a receiver.
const (
	JSONEncoding = "application/json"
	FormEncoding = "multipart/form-data"
)

// The limits of a subscription.
const (
	MaxCallbackURL = 2048 // bytes
	MaxExpression  = 1024 // bytes
	MaxAttachments = 16
	MaxFormFields  = 64

	// MaxSubscriptions is the maximum number of subscriptions of one owner.
	MaxSubscriptions = 100

	// MaxSync is the maximum number of sync subscriptions of one topic. Concurrent requests may
	// create a few more.
	MaxSync = 16

	// MinCallRate and MaxCallRate are the bounds of Subscription.MaxRate.
	MinCallRate = 0.01
	MaxCallRate = 1000

	// DefaultTopic is the topic of a subscription that names no topic.
	DefaultTopic = "events"
)

// DataTopic is the topic whose subscriptions are called when data is available for their owner.
// Only the hub publishes to it.
const DataTopic = "data-available"

// DequeuedTopic is the topic whose subscriptions are called when their owner has dequeued a bundle.
// Only the hub publishes to it.
const DequeuedTopic = "bundle-dequeued"

// Stream returns the stream from which s receives messages.
func (s *Subscription) Stream() (StreamName, error) {
	switch s.Topic {
	case DataTopic:
		return DataStream(s.Owner), nil
	case DequeuedTopic:
		return DequeuedStream(s.Owner), nil
	}
	return ParseTopic(s.Topic)
}

// IsReservedTopic reports whether only the hub may publish to the topic.
func IsReservedTopic(topic string) bool {
	return topic == DataTopic || topic == DequeuedTopic || topic == ObjectsTopic
}

// SetDefaults replaces each empty field by its default, if it has one.
func (s *Subscription) SetDefaults() {
	if s.Topic == "" {
		s.Topic = DefaultTopic
	}
	if s.Method == "" {
		s.Method = "POST"
	}
	if s.Encoding == "" {
		s.Encoding = JSONEncoding
	}
	if s.PayloadFormField == "" {
		s.PayloadFormField = "payload"
	}
}

// Check returns an Invalid error if a field of s is invalid. The error text begins with the field's
// JSON pointer.
func (s *Subscription) Check() error {
	if err := checkCallback(s.CallbackURL); err != nil {
		return err
	}
	if _, err := ParseTopic(s.Topic); err != nil {
		return Errorf(Invalid, "/topic: %w", err)
	}
	if s.Method != "POST" && s.Method != "PUT" {
		return Errorf(Invalid, "/method: want POST or PUT, got %q", Shorten(s.Method))
	}
	if err := s.checkCalls(); err != nil {
		return err
	}
	switch s.Encoding {
	case JSONEncoding:
		if len(s.FormFields) > 0 {
			return Errorf(Invalid, "/form_fields: only %s has fields", FormEncoding)
		}
	case FormEncoding:
	default:
		return Errorf(Invalid, "/encoding: want %s or %s, got %q", JSONEncoding, FormEncoding, Shorten(s.Encoding))
	}
	if n := len(s.FormFields); n > MaxFormFields {
		return Errorf(Invalid, "/form_fields: want at most %d, got %d", MaxFormFields, n)
	}
	for _, name := range slices.Sorted(maps.Keys(s.FormFields)) {
		if name == "" {
			return Errorf(Invalid, "/form_fields/: want a name")
		}
		if name == s.PayloadFormField {
			return Errorf(Invalid, "/form_fields/%s: this name is the form field for the message", pointer(name))
		}
		if err := checkText("/form_fields/"+pointer(name), name+s.FormFields[name], MaxAttributeBytes); err != nil {
			return err
		}
	}
	for _, text := range []struct{ where, s string }{{"/payload_form_field", s.PayloadFormField}, {"/hmac_key_id", s.HMACKeyID}} {
		if err := checkText(text.where, text.s, MaxMessageID); err != nil {
			return err
		}
	}
	if n := len(s.Filter); n > MaxExpression {
		return Errorf(Invalid, "/jmespath_query: want at most %d bytes, got %d", MaxExpression, n)
	}
	if n := len(s.Attachments); n > MaxAttachments {
		return Errorf(Invalid, "/attachments: want at most %d, got %d", MaxAttachments, n)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Attachments)) {
		switch n := len(s.Attachments[name]); {
		case name == "" || strings.HasPrefix(name, "_"):
			return Errorf(Invalid, "/attachments/%s: want a name that does not begin with _", pointer(name))
		case n == 0 || n > MaxExpression:
			return Errorf(Invalid, "/attachments/%s/expression: want 1 to %d bytes, got %d", pointer(name), MaxExpression, n)
		}
	}
	return nil
}

// checkCalls returns an error if a limit is out of bounds, or if sync deliveries are requested for
// a topic to which only the hub publishes.
func (s *Subscription) checkCalls() error {
	switch {
	case s.IsSync && IsReservedTopic(s.Topic):
		return Errorf(Invalid, "/delivery: want async: only the hub publishes to %s, and it waits for no receiver", s.Topic)
	case s.MaxRate != 0 && !(s.MaxRate >= MinCallRate && s.MaxRate <= MaxCallRate): // NaN included
		return Errorf(Invalid, "/max_rate: want %v to %v calls per second, got %v", MinCallRate, MaxCallRate, s.MaxRate)
	case s.MaxConcurrency < 0 || s.MaxConcurrency > MaxConcurrency:
		return Errorf(Invalid, "/max_concurrency: want 1 to %d, got %d", MaxConcurrency, s.MaxConcurrency)
	case s.IsOrdered && s.MaxConcurrency > 1:
		return Errorf(Invalid, "/max_concurrency: want 1, or none: an ordered subscription has one call at a time, got %d", s.MaxConcurrency)
	}
	return nil
}

// checkCallback returns an error if the hub must not send calls to the URL. It does not check the
// IP address, which may change and is therefore checked at each call.
func checkCallback(text string) error {
	if err := CheckCallbackURL(text); err != nil {
		return Errorf(Invalid, "/callback_url: %w", err)
	}
	return nil
}

// CheckCallbackURL returns an Invalid error if the hub must not send calls to a URL. It does not
// check the IP address. The error text contains no credentials.
func CheckCallbackURL(text string) error {
	if len(text) > MaxCallbackURL {
		return Errorf(Invalid, "want at most %d bytes, got %d", MaxCallbackURL, len(text))
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return Errorf(Invalid, "want a URL") // err is omitted: its text may contain credentials
	case u.User != nil:
		return Errorf(Invalid, "want no credentials in it")
	case u.Scheme != "http" && u.Scheme != "https":
		return Errorf(Invalid, "want http or https, got %q", Shorten(text))
	case u.Hostname() == "":
		return Errorf(Invalid, "want a host, got %q", Shorten(text))
	case u.Fragment != "":
		return Errorf(Invalid, "want no fragment, got %q", Shorten(u.Fragment))
	}
	return nil
}

// Clone returns a deep copy of s.
func (s *Subscription) Clone() Subscription {
	c := *s
	c.FormFields, c.Attachments = maps.Clone(s.FormFields), maps.Clone(s.Attachments)
	return c
}

// IsEqual reports whether all fields of s and o are equal.
func (s *Subscription) IsEqual(o *Subscription) bool {
	return s.Owner == o.Owner && s.Topic == o.Topic && s.CallbackURL == o.CallbackURL && s.Method == o.Method &&
		s.Encoding == o.Encoding && s.PayloadFormField == o.PayloadFormField && s.HMACKeyID == o.HMACKeyID &&
		s.IsSync == o.IsSync && s.MaxRate == o.MaxRate && s.MaxConcurrency == o.MaxConcurrency && s.IsOrdered == o.IsOrdered &&
		s.Filter == o.Filter && maps.Equal(s.FormFields, o.FormFields) && maps.Equal(s.Attachments, o.Attachments)
}

// pointer escapes a name for a JSON pointer, and shortens long names.
func pointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(Shorten(name))
}
