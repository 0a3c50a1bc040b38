package domain

import (
	"strings"
	"time"
)

// An ObjectEventType says whether an event created or deleted an object.
type ObjectEventType int

// The types of events. If a Created and a Deleted event of one version have the same sequencer,
// Deleted counts as later, because its value is greater.
const (
	ObjectCreated ObjectEventType = iota + 1
	ObjectDeleted
)

func (t ObjectEventType) String() string {
	if t == ObjectDeleted {
		return "Deleted"
	}
	return "Created"
}

// An ObjectReason says why a store changed an object, or how the hub learned of its state.
type ObjectReason string

// The values of ObjectReason.
const (
	CreatedPut                     ObjectReason = "CreatedPut"
	CreatedPost                    ObjectReason = "CreatedPost"
	CreatedCopy                    ObjectReason = "CreatedCopy"
	CreatedCompleteMultipartUpload ObjectReason = "CreatedCompleteMultipartUpload"
	DeletedByRequest               ObjectReason = "Deleted"
	DeletedLifecycle               ObjectReason = "DeletedLifecycle"
	Restored                       ObjectReason = "Restored"
	RestoreExpired                 ObjectReason = "RestoreExpired"
	StorageClassChanged            ObjectReason = "StorageClassChanged"
	Crawl                          ObjectReason = "Crawl"
	CrawlRestored                  ObjectReason = "CrawlRestored"
	Confirmed                      ObjectReason = "Confirmed" // the hub read the state from the store, because of Object.Doubt
	UnknownReason                  ObjectReason = "Unknown"
)

// The storage classes and archive states of S3 that determine whether content can be read.
const (
	ClassStandard           = "STANDARD"
	ClassGlacier            = "GLACIER"
	ClassDeepArchive        = "DEEP_ARCHIVE"
	ClassIntelligentTiering = "INTELLIGENT_TIERING"
	ClassAzureArchive       = "Archive"
)

// ObjectFacts is the metadata that an event contains about the content of an object. Empty values
// are unknown.
type ObjectFacts struct {
	Size          *int64
	ETag          string // ETag in quotes; see QuoteETag
	SHA256        string
	StorageClass  string
	ArchiveStatus string
	LastModified  time.Time
	Reason        ObjectReason
	IngestID      string
	Attributes    string // user-defined attributes, as a JSON object
	Patches       string // ids of the last patch jobs that changed this metadata; see NotePatch
}

// An ObjectEvent is a store's report that a version of an object was created or deleted.
type ObjectEvent struct {
	Version   VersionID
	Type      ObjectEventType
	Marker    bool // set with ObjectDeleted: a delete marker was created, which is a version
	Sequencer Sequencer
	Carrier   Carrier   // identifies the event if it has no sequencer
	Time      time.Time // time of the event; zero: unknown
	ObjectFacts
}

// A Carrier identifies an event that has no sequencer: by the message that contained it, and by its
// index in the message. If the message is delivered again, its events are duplicates. Two equal
// events in one message are different events.
type Carrier struct {
	Message string // id of the message, or a digest of its body
	Index   int
}

// IsMarker reports whether the event created a delete marker.
func (e *ObjectEvent) IsMarker() bool { return e.Type == ObjectDeleted && e.Marker }

// IsLive reports whether the version exists after the event. A delete marker is a version.
func (e *ObjectEvent) IsLive() bool { return e.Type == ObjectCreated || e.Marker }

// An ObjectRowID identifies an event among the events of one object, and the row that stores the
// event. If Carrier identifies the event, the other fields are zero.
type ObjectRowID struct {
	Version   VersionID
	Type      ObjectEventType
	Sequencer string
	Carrier   Carrier
}

// ID returns the id of the row that stores the event.
func (e *ObjectEvent) ID() ObjectRowID {
	if e.Sequencer.IsNull() {
		return ObjectRowID{Carrier: e.Carrier}
	}
	return ObjectRowID{Version: e.Version, Type: e.Type, Sequencer: e.Sequencer.identity()}
}

// Check returns an Invalid error if the event must not be stored.
func (e *ObjectEvent) Check() error {
	switch {
	case e.Type != ObjectCreated && e.Type != ObjectDeleted:
		return Errorf(Invalid, "object event: want Created or Deleted")
	case e.Sequencer.IsNull() && e.Carrier == Carrier{}:
		return Errorf(Invalid, "object event without sequencer: want the message that carried it")
	}
	return nil
}

// IsAccessible reports whether the content can be read immediately. Callers use it for the current
// row of an object. As in the original system, content in an unknown storage class counts as
// readable. Unlike in the original, a restored object of any archive class counts as readable, too.
func (e *ObjectEvent) IsAccessible() bool {
	if e.Type != ObjectCreated {
		return false
	}
	switch e.StorageClass {
	case ClassGlacier, ClassDeepArchive, ClassAzureArchive:
		return e.Reason == Restored || e.Reason == CrawlRestored
	case ClassIntelligentTiering:
		return e.ArchiveStatus == ""
	default:
		return true
	}
}

// QuoteETag returns an ETag in the form in which it is stored: in quotes, after W/ if the ETag is
// weak.
func QuoteETag(s string) string {
	weak, tag := "", s
	if rest, ok := strings.CutPrefix(s, "W/"); ok {
		weak, tag = "W/", rest
	}
	tag = strings.TrimPrefix(tag, `"`)
	tag = strings.TrimSuffix(tag, `"`)
	return weak + `"` + tag + `"`
}
