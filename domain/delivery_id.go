package domain

import (
	"fmt"
	"strconv"
	"strings"
)

// A DeliveryID names the delivery of one entry to one subscription. It is not a secret and grants
// no access: a caller may read the delivery if it may read the subscription.
type DeliveryID struct {
	Subscription SubscriptionID
	Entry        EntryID
}

// ParseDeliveryID reads the text of [DeliveryID.String]. The id of the subscription may be in upper
// or lower case. Any other text is an Invalid error, so that each delivery has exactly one id.
func ParseDeliveryID(s string) (DeliveryID, error) {
	malformed := Errorf(Invalid, "delivery id: want subscription.priority.number, such as 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41.0.17, got %q", Shorten(s))
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return DeliveryID{}, malformed
	}
	subscription, err := ParseSubscriptionID(parts[0])
	if err != nil {
		return DeliveryID{}, malformed
	}
	priority, err := parseCount(parts[1])
	if err != nil || priority >= Priorities {
		return DeliveryID{}, malformed
	}
	number, err := parseCount(parts[2])
	if err != nil {
		return DeliveryID{}, malformed
	}
	return DeliveryID{Subscription: subscription, Entry: EntryID{Priority: int(priority), Number: number}}, nil
}

// parseCount reads a decimal number that is not negative and has no leading zeros.
func parseCount(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil && (n < 0 || strconv.FormatInt(n, 10) != s) {
		err = strconv.ErrSyntax
	}
	return n, err
}

// String returns the id of the subscription, the priority and the number, joined by dots.
func (d DeliveryID) String() string { return fmt.Sprintf("%s.%s", d.Subscription, d.Entry) }
