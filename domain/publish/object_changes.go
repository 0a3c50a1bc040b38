package publish

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// objectsPath is the path of objects in the API, and the source of the events about objects.
const objectsPath = "/v1/objects"

// An objectData is the data of an event about a changed object. For a deletion, it describes the
// row that was current before. Members without a value are omitted.
type objectData struct {
	Event        domain.ObjectStateEvent `json:"event"`
	Bucket       string                  `json:"bucket"`
	Key          string                  `json:"key"`
	Version      int64                   `json:"version"`
	Changed      string                  `json:"changed"`
	ID           string                  `json:"id"` // id of the row that this event describes
	VersionID    string                  `json:"versionId"`
	EventTime    string                  `json:"eventTime,omitempty"`
	Size         *int64                  `json:"size,omitempty"`
	ETag         string                  `json:"eTag,omitempty"`
	SHA256       string                  `json:"sha256,omitempty"`
	LastModified string                  `json:"lastModifiedDate,omitempty"`
	StorageClass string                  `json:"storageClass,omitempty"`
	Reason       string                  `json:"reason,omitempty"`
}

// objectMessage returns the event that reports a change. It depends only on the change, so the
// stream detects a duplicate if the change is published again.
func objectMessage(c *domain.ObjectChange) domain.Message {
	row, at := &c.Row, timeText(c.At)
	payload, err := json.Marshal(objectData{
		Event: c.Event, Bucket: c.Name.Bucket(), Key: c.Name.Key(), Version: c.Version, Changed: at,
		ID: domain.ObjectID{Name: c.Name, Row: row.ID()}.String(), VersionID: row.Version.String(), EventTime: timeText(row.Time),
		Size: row.Size, ETag: row.ETag, SHA256: row.SHA256, LastModified: timeText(row.LastModified), StorageClass: row.StorageClass, Reason: string(row.Reason),
	})
	if err != nil {
		panic(err) // cannot happen: strings and numbers can be encoded
	}
	object := domain.ObjectID{Name: c.Name}.String()
	sum := sha256.Sum256([]byte(object)) // an object's id can be too long for a message id, so its hash is used
	id := fmt.Sprintf("%s/%d", hex.EncodeToString(sum[:]), c.Version)
	return domain.Message{
		ID: id,
		Attributes: map[string]string{
			"specversion": "1.0", "id": id, "time": at,
			"source": objectsPath, "type": "messagehub." + domain.ObjectsTopic, "subject": object,
		},
		ContentType: "application/json", Payload: payload,
	}
}

// timeText returns t in the format that events use, or "" for the zero time.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
