package single

import (
	"maps"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/bench/baseline/internal/items"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A queueItem counts the saved and the acknowledged events of a recipient.
type queueItem struct {
	ID        string               `json:"id"` // always "queue"
	Recipient string               `json:"recipient"`
	Last      domain.Sequence      `json:"last"`
	Cabinets  []cabinetCount       `json:"cabinets"`
	Groups    map[string]groupGate `json:"groups"`
	ETag      azcore.ETag          `json:"_etag,omitempty"` // "" if the queue was never stored
}

const queueID = "queue"

// A cabinetCount counts the events of an origin and a content type.
type cabinetCount struct {
	Origin       string          `json:"origin"`
	ContentType  string          `json:"contentType"`
	Group        string          `json:"group"`
	Received     int64           `json:"received"`
	Acknowledged int64           `json:"acknowledged"`
	Position     domain.Sequence `json:"position"` // number of the last acknowledged event
	Since        time.Time       `json:"since"`    // time of the first Save since the cabinet was last empty
}

// A groupGate records the open bundle of a group.
type groupGate struct {
	Generation int64     `json:"generation"` // number that grows when a bundle is opened or closed
	Open       string    `json:"open,omitempty"`
	Opened     time.Time `json:"opened,omitzero"`
	First      int64     `json:"first,omitempty"` // sequence number of the bundle's first event
	Asked      []string  `json:"asked,omitempty"` // groups that the Peek requested
}

// clone returns a copy that can be changed.
func (q *queueItem) clone() *queueItem {
	c := *q
	c.Cabinets = slices.Clone(q.Cabinets)
	c.Groups = maps.Clone(q.Groups)
	return &c
}

// cabinetOf returns the cabinet of q with this key, or nil if no event was ever saved to that
// cabinet.
func (q *queueItem) cabinetOf(key domain.CabinetKey) *cabinetCount {
	for i := range q.Cabinets {
		if c := &q.Cabinets[i]; c.Origin == key.Origin.String() && c.ContentType == key.ContentType.String() {
			return c
		}
	}
	return nil
}

// groupOf returns the group in which the bundle with an id is open.
func (q *queueItem) groupOf(id domain.BundleID) (group string, found bool) {
	for group, g := range q.Groups {
		if g.Open == id.String() {
			return group, true
		}
	}
	return "", false
}

func (c *cabinetCount) countWaiting() int64 { return c.Received - c.Acknowledged }

// backlogOf returns the backlog of groups, without the first skipCount events of the cabinet
// skipped.
func (q *queueItem) backlogOf(groups []string, skipped *cabinetCount, skipCount int) domain.Backlog {
	var sum domain.Backlog
	for i := range q.Cabinets {
		c := &q.Cabinets[i]
		n := c.countWaiting()
		if skipped != nil && c.Origin == skipped.Origin && c.ContentType == skipped.ContentType {
			n -= int64(skipCount)
		}
		if n > 0 && slices.Contains(groups, c.Group) {
			sum = sum.Plus(domain.Backlog{Events: n, Oldest: c.Since})
		}
	}
	return sum
}

// An eventItem is one event.
type eventItem struct {
	ID               string          `json:"id"`
	Recipient        string          `json:"recipient"`
	Sequence         domain.Sequence `json:"sequence"`
	Origin           string          `json:"origin"`
	ContentType      string          `json:"contentType"`
	DocumentType     string          `json:"documentType"`
	SupportsBundling bool            `json:"supportsBundling"`
	Weight           domain.Weight   `json:"weight"`
	Digest           []byte          `json:"digest"`
	Saved            int64           `json:"saved"` // in milliseconds
	Payload          *payloadSection `json:"payload,omitempty"`
}

// A payloadSection is the position of a payload in the content store.
type payloadSection repository.Section

func newEvent(e *domain.Event, payload repository.Section, saved time.Time) eventItem {
	digest := e.Digest()
	item := eventItem{
		ID: e.ID.String(), Recipient: e.Recipient.String(),
		Origin: e.Origin.String(), ContentType: e.ContentType.String(), DocumentType: e.DocumentType.String(),
		SupportsBundling: e.SupportsBundling, Weight: e.Weight, Digest: digest[:], Saved: saved.UnixMilli(),
	}
	if !payload.IsZero() {
		item.Payload = (*payloadSection)(&payload)
	}
	return item
}

func (item *eventItem) storedEvent() (repository.StoredEvent, error) {
	e, err := items.Words{
		ID: item.ID, Recipient: item.Recipient, Origin: item.Origin, ContentType: item.ContentType, DocumentType: item.DocumentType,
	}.Event()
	e.SupportsBundling, e.Weight = item.SupportsBundling, item.Weight
	stored := repository.StoredEvent{Event: e, Sequence: item.Sequence, Saved: time.UnixMilli(item.Saved).UTC()}
	if item.Payload != nil {
		stored.PayloadAt = repository.Section(*item.Payload)
	}
	return stored, err
}

// A bundleItem is a bundle. The queue records whether it is open.
type bundleItem struct {
	ID string `json:"id"`
	items.Bundle
}

// bundleID returns the id of a bundle's document. It has a prefix, because an
// event may have the same UUID.
func bundleID(id domain.BundleID) string { return "bundle-" + id.String() }
