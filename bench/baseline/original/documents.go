package original

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/bench/baseline/internal/items"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

func catalogKey(recipient, origin string) string { return recipient + "_" + origin }

func cabinetKey(key domain.CabinetKey) string {
	return catalogKey(key.Recipient.String(), key.Origin.String()) + "_" + key.ContentType.String()
}

// A watermark is the highest number that is visible.
type watermark struct {
	ID             string          `json:"id"`
	PartitionKey   string          `json:"partitionKey"`
	SequenceNumber domain.Sequence `json:"sequenceNumber"`
}

const (
	watermarkID  = "CosmosSequenceNumberIdentifier"
	watermarkKey = "SequenceNumber"
)

// A catalogEntry points to a drawer. It has the number of the drawer's first unacknowledged
// event.
type catalogEntry struct {
	ID                 string          `json:"id"`
	PartitionKey       string          `json:"partitionKey"`
	ContentType        string          `json:"contentType"`
	NextSequenceNumber domain.Sequence `json:"nextSequenceNumber"`
}

// A drawerItem holds events. Only a count query returns their number.
type drawerItem struct {
	ID           string          `json:"id"`
	PartitionKey string          `json:"partitionKey"`
	Position     int             `json:"position"` // events acknowledged
	OrderBy      domain.Sequence `json:"orderBy"`  // number of the first event
	ETag         azcore.ETag     `json:"_etag,omitempty"`
}

// An eventItem is the document of one event.
type eventItem struct {
	ID               string          `json:"id"`
	PartitionKey     string          `json:"partitionKey"` // the drawer
	Recipient        string          `json:"recipient"`
	Origin           string          `json:"origin"`
	ContentType      string          `json:"contentType"`
	SequenceNumber   domain.Sequence `json:"sequenceNumber"`
	SupportsBundling bool            `json:"supportsBundling"`
	RelativeWeight   domain.Weight   `json:"relativeWeight"`
	DocumentType     string          `json:"documentType"`
	Payload          *payloadSection `json:"payload,omitempty"` // the original stored no payloads
	Timestamp        int64           `json:"_ts,omitempty"`
}

// A payloadSection is the position of a payload in the content store.
type payloadSection repository.Section

func newEvent(e *ingestedEvent, drawer string) eventItem {
	item := eventItem{
		ID: e.ID.String(), PartitionKey: drawer, Recipient: e.Recipient.String(), Origin: e.Origin.String(),
		ContentType: e.ContentType.String(), SequenceNumber: e.number, SupportsBundling: e.SupportsBundling,
		RelativeWeight: e.Weight, DocumentType: e.DocumentType.String(),
	}
	if !e.payload.IsZero() {
		item.Payload = (*payloadSection)(&e.payload)
	}
	return item
}

func (item *eventItem) stored() (repository.StoredEvent, error) {
	e, err := items.Words{
		ID: item.ID, Recipient: item.Recipient, Origin: item.Origin, ContentType: item.ContentType, DocumentType: item.DocumentType,
	}.Event()
	e.SupportsBundling, e.Weight = item.SupportsBundling, item.RelativeWeight
	stored := repository.StoredEvent{Event: e, Sequence: item.SequenceNumber, Saved: time.Unix(item.Timestamp, 0).UTC()}
	if item.Payload != nil {
		stored.PayloadAt = repository.Section(*item.Payload)
	}
	return stored, err
}

// A uniqueID records that an event was received, and its drawer.
type uniqueID struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Content      string `json:"content"`
	DrawerID     string `json:"drawerId"`
}

// newUniqueID hashes the fields of an event as the original did: without the document
// type, without separators, and with weights of 32 bits.
func newUniqueID(e *ingestedEvent, drawer string) uniqueID {
	content := []byte(e.ContentType.String() + e.Origin.String() + e.Recipient.String())
	content = strconv.AppendBool(content, e.SupportsBundling)
	content = binary.LittleEndian.AppendUint64(content, uint64(e.Weight)) //nolint:gosec // converts the bits
	return uniqueID{
		ID: e.ID.String(), PartitionKey: strconv.Itoa(int(e.ID[3])),
		Content: base64.StdEncoding.EncodeToString(content), DrawerID: drawer,
	}
}

// A bundleItem is a bundle with the ids of all its events and its drawers.
type bundleItem struct {
	ID                    string     `json:"id"`
	ProcessID             string     `json:"processId"`
	Recipient             string     `json:"recipient"`
	Origin                string     `json:"origin"`
	ContentType           string     `json:"contentType"`
	Dequeued              bool       `json:"dequeued"`
	NotificationIDsBase64 []byte     `json:"notificationIdsBase64"` // 16 bytes for each event
	DocumentTypes         string     `json:"documentTypes"`
	AffectedDrawers       []affected `json:"affectedDrawers"`
	ContentPath           string     `json:"contentPath"`
	ResponseFormat        int        `json:"responseFormat"`
	Port                  string     `json:"port"` // fields of a bundle that only our ports need, as one text, so that the index has one path for all of them
}

// An affected drawer is a drawer that has events of a bundle.
type affected struct {
	UpdatedDrawer                     drawerItem      `json:"updatedDrawer"`       // the drawer after the Dequeue, with the etag from before the Dequeue
	UpdatedCatalogEntry               *catalogEntry   `json:"updatedCatalogEntry"` // entry for the first event after the bundle; nil if the Peek read no such event
	InitialCatalogEntrySequenceNumber domain.Sequence `json:"initialCatalogEntrySequenceNumber"`
}

// domain converts the item to a bundle of the port.
func (item *bundleItem) domain() (domain.Bundle, error) {
	id, err := domain.ParseBundleID(item.ID)
	var b items.Bundle
	if err == nil {
		err = json.Unmarshal([]byte(item.Port), &b)
	}
	if err != nil {
		return domain.Bundle{}, domain.Errorf(domain.Damaged, "stored bundle %s: %w", item.ID, err)
	}
	return b.Bundle(id)
}

// processID returns the id by which domains know a bundle.
func processID(b *domain.Bundle) string { return fmt.Sprintf("%s_%s", b.ID, b.Cabinet.Recipient) }
