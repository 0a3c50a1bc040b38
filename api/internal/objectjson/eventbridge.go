package objectjson

import "github.com/messagehub/messagehub/domain"

// kindsOfEventBridge maps the names of S3 events in EventBridge to their kinds. Further members of
// the event determine the details of deletions and creations.
var kindsOfEventBridge = map[string]eventKind{
	"Object Created":               {eventType: domain.ObjectCreated},
	"Object Deleted":               {eventType: domain.ObjectDeleted},
	"Object Restore Completed":     {eventType: domain.ObjectCreated, reason: domain.Restored},
	"Object Restore Expired":       {eventType: domain.ObjectCreated, reason: domain.RestoreExpired},
	"Object Storage Class Changed": {eventType: domain.ObjectCreated, reason: domain.StorageClassChanged},
	"Object Access Tier Changed":   {eventType: domain.ObjectCreated, reason: domain.StorageClassChanged},
}

// reasonsOfEventBridge maps the values of the member reason to reasons.
var reasonsOfEventBridge = map[string]domain.ObjectReason{
	"PutObject":               domain.CreatedPut,
	"POST Object":             domain.CreatedPost,
	"CopyObject":              domain.CreatedCopy,
	"CompleteMultipartUpload": domain.CreatedCompleteMultipartUpload,
	"DeleteObject":            domain.DeletedByRequest,
	"Lifecycle Expiration":    domain.DeletedLifecycle,
}

// readEventBridge reads an S3 event from EventBridge.
func (n *jsonNode) readEventBridge() {
	e, name := n.event, n.findMember("detail-type").stringValue()
	k, ok := kindsOfEventBridge[name]
	if !ok && e.fault == nil {
		e.markIgnored(name)
		return
	}
	detail := n.objectMember("detail")
	if k.reason == "" {
		k.reason = domain.UnknownReason
		if reason, ok := reasonsOfEventBridge[detail.findMember("reason").optionalString()]; ok {
			k.reason = reason
		} else if k.eventType == domain.ObjectDeleted {
			k.reason = domain.DeletedByRequest
		}
	}
	k.isMarker = k.eventType == domain.ObjectDeleted && detail.findMember("deletion-type").optionalString() == "Delete Marker Created"
	bucket, object := detail.objectMember("bucket").findMember("name"), detail.objectMember("object")
	key := object.findMember("key")
	facts := domain.ObjectFacts{Size: object.findMember("size").sizeValue(), ETag: object.findMember("etag").readETag(), Reason: k.reason}
	facts.StorageClass = detail.findMember("destination-storage-class").optionalString()
	if k.reason == domain.Restored || k.reason == domain.RestoreExpired {
		facts.StorageClass = detail.findMember("source-storage-class").optionalString()
	}
	setTier(&facts, detail.findMember("destination-access-tier").optionalString())
	e.addChange(objectChange{
		bucket: bucket.stringValue(), bucketAt: bucket, key: key.stringValue(), keyAt: key,
		ObjectEvent: domain.ObjectEvent{
			Version: object.findMember("version-id").readVersion(), Type: k.eventType, Marker: k.isMarker,
			Sequencer: object.findMember("sequencer").readSequencer(domain.HexSequencer), Time: n.findMember("time").timeValue(), ObjectFacts: facts,
		},
	}, n.uniqueID("eventbridge", n.findMember("id").optionalString()))
}

// setTier sets the facts about the tier to which Intelligent-Tiering has moved an object. Only the
// archive tiers matter, because content in any other tier can be read immediately.
func setTier(f *domain.ObjectFacts, tier string) {
	if tier == "" {
		return
	}
	f.StorageClass = domain.ClassIntelligentTiering
	if tier == archiveTier || tier == deepArchiveTier {
		f.ArchiveStatus = tier
	}
}

// Archive tiers, whose content must be restored before it can be read.
const (
	archiveTier     = "ARCHIVE_ACCESS"
	deepArchiveTier = "DEEP_ARCHIVE_ACCESS"
)

// uniqueID returns an id of the event that no event of another source has. It returns "" if id is
// "".
func (n *jsonNode) uniqueID(source, id string) string {
	if id == "" {
		return ""
	}
	return source + "\n" + id
}
