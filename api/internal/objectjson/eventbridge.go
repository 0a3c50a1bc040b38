package objectjson

import "github.com/messagehub/messagehub/domain"

// kindsOfEventBridge has the names of events in EventBridge. A deletion and a creation have details.
var kindsOfEventBridge = map[string]kind{
	"Object Created":               {eventType: domain.ObjectCreated},
	"Object Deleted":               {eventType: domain.ObjectDeleted},
	"Object Restore Completed":     {eventType: domain.ObjectCreated, reason: domain.Restored},
	"Object Restore Expired":       {eventType: domain.ObjectCreated, reason: domain.RestoreExpired},
	"Object Storage Class Changed": {eventType: domain.ObjectCreated, reason: domain.StorageClassChanged},
	"Object Access Tier Changed":   {eventType: domain.ObjectCreated, reason: domain.StorageClassChanged},
}

// reasonsOfEventBridge has the values of the member reason.
var reasonsOfEventBridge = map[string]domain.ObjectReason{
	"PutObject":               domain.CreatedPut,
	"POST Object":             domain.CreatedPost,
	"CopyObject":              domain.CreatedCopy,
	"CompleteMultipartUpload": domain.CreatedCompleteMultipartUpload,
	"DeleteObject":            domain.DeletedByRequest,
	"Lifecycle Expiration":    domain.DeletedLifecycle,
}

// eventBridge reads an event of S3 that came by EventBridge.
func (n *node) eventBridge() {
	e, name := n.event, n.get("detail-type").value()
	k, ok := kindsOfEventBridge[name]
	if !ok && e.fault == nil {
		e.ignore(name)
		return
	}
	detail := n.object("detail")
	if k.reason == "" {
		k.reason = domain.UnknownReason
		if reason, ok := reasonsOfEventBridge[detail.get("reason").optional()]; ok {
			k.reason = reason
		} else if k.eventType == domain.ObjectDeleted {
			k.reason = domain.DeletedByRequest
		}
	}
	k.isMarker = k.eventType == domain.ObjectDeleted && detail.get("deletion-type").optional() == "Delete Marker Created"
	bucket, object := detail.object("bucket").get("name"), detail.object("object")
	key := object.get("key")
	facts := domain.ObjectFacts{Size: object.get("size").size(), ETag: object.get("etag").etag(), Reason: k.reason}
	facts.StorageClass = detail.get("destination-storage-class").optional()
	if k.reason == domain.Restored || k.reason == domain.RestoreExpired {
		facts.StorageClass = detail.get("source-storage-class").optional()
	}
	setTier(&facts, detail.get("destination-access-tier").optional())
	e.add(change{
		bucket: bucket.value(), bucketAt: bucket, key: key.value(), keyAt: key,
		ObjectEvent: domain.ObjectEvent{
			Version: object.get("version-id").version(), Type: k.eventType, Marker: k.isMarker,
			Sequencer: object.get("sequencer").sequencer(domain.HexSequencer), Time: n.get("time").time(), ObjectFacts: facts,
		},
	}, n.ownID("eventbridge", n.get("id").optional()))
}

// setTier notes the tier to which Intelligent-Tiering has moved an object. Only the archive tiers matter:
// content in the others can be read at once.
func setTier(f *domain.ObjectFacts, tier string) {
	if tier == "" {
		return
	}
	f.StorageClass = domain.ClassIntelligentTiering
	if tier == archiveTier || tier == deepArchiveTier {
		f.ArchiveStatus = tier
	}
}

// The tiers of which content has to be restored before it can be read.
const (
	archiveTier     = "ARCHIVE_ACCESS"
	deepArchiveTier = "DEEP_ARCHIVE_ACCESS"
)

// ownID returns an identity of an event that has an id, "" without one.
func (n *node) ownID(source, id string) string {
	if id == "" {
		return ""
	}
	return source + "\n" + id
}
