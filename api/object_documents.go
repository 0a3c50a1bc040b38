package api

import (
	"encoding/json"
	"time"

	"github.com/messagehub/messagehub/domain/ledger"
)

// An objectDocument is the JSON of an object's row. Unknown values are null.
type objectDocument struct {
	ID               string          `json:"id"`
	Bucket           string          `json:"bucket"`
	Key              string          `json:"key"`
	VersionID        string          `json:"versionId"`
	Sequencer        string          `json:"sequencer"`
	EventType        string          `json:"eventType"`
	EventTime        *time.Time      `json:"eventTime"`
	Size             *int64          `json:"size"`
	ETag             *string         `json:"eTag"`
	SHA256           *string         `json:"sha256"`
	LastModifiedDate *time.Time      `json:"lastModifiedDate"`
	StorageClass     *string         `json:"storageClass"`
	ArchiveStatus    *string         `json:"archiveStatus"`
	Reason           *string         `json:"reason"`
	IngestID         *string         `json:"ingestId"`
	Attributes       json.RawMessage `json:"attributes"`
	IsDeleteMarker   bool            `json:"isDeleteMarker"`
	IsCurrentState   bool            `json:"isCurrentState"`
	IsAccessible     bool            `json:"isAccessible"`
	IsDoubtful       bool            `json:"isDoubtful"`
	Duplicates       int64           `json:"numberDuplicateEvents"`
}

// A pairDocument is the JSON of a row in paired mode.
type pairDocument struct {
	Created    *objectDocument `json:"created"`
	Deleted    *objectDocument `json:"deleted"`
	Duplicates int64           `json:"numberDuplicateEvents"`
	Reordered  int64           `json:"numberReordered"`
}

// A linksDocument contains the path of the next page, or null.
type linksDocument struct {
	Next *string `json:"next"`
}

func documentOfObject(r *ledger.Row) objectDocument {
	d := objectDocument{
		ID: r.RowID().String(), Bucket: r.Name.Bucket(), Key: r.Name.Key(), VersionID: r.Version.String(), Sequencer: r.SequencerText(),
		EventType: r.Type.String(), EventTime: knownTime(r.Time), Size: r.Size, ETag: knownText(r.ETag), SHA256: knownText(r.SHA256),
		LastModifiedDate: knownTime(r.LastModified), StorageClass: knownText(r.StorageClass), ArchiveStatus: knownText(r.ArchiveStatus),
		Reason: knownText(string(r.Reason)), IngestID: knownText(r.IngestID),
		IsDeleteMarker: r.IsMarker(), IsCurrentState: r.IsCurrent, IsAccessible: r.IsAccessible(), IsDoubtful: r.IsDoubtful, Duplicates: r.Duplicates,
	}
	if json.Valid([]byte(r.Attributes)) {
		d.Attributes = json.RawMessage(r.Attributes)
	}
	return d
}

func documentOfPair(p *ledger.Pair) pairDocument {
	d := pairDocument{Duplicates: p.Duplicates, Reordered: p.Reordered}
	if p.Created != nil {
		created := documentOfObject(p.Created)
		d.Created = &created
	}
	if p.Deleted != nil {
		deleted := documentOfObject(p.Deleted)
		d.Deleted = &deleted
	}
	return d
}

func knownText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func knownTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
