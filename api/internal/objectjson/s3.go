package objectjson

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/messagehub/messagehub/domain"
)

// An eventKind is the meaning of an event name.
type eventKind struct {
	eventType domain.ObjectEventType
	isMarker  bool
	reason    domain.ObjectReason
}

// eventKindsOfS3 maps the names of events in S3 notifications to their kinds. A name that ends with
// * stands for all names that start with the rest and are not listed.
var eventKindsOfS3 = map[string]eventKind{
	"ObjectCreated:Put":                       {eventType: domain.ObjectCreated, reason: domain.CreatedPut},
	"ObjectCreated:Post":                      {eventType: domain.ObjectCreated, reason: domain.CreatedPost},
	"ObjectCreated:Copy":                      {eventType: domain.ObjectCreated, reason: domain.CreatedCopy},
	"ObjectCreated:CompleteMultipartUpload":   {eventType: domain.ObjectCreated, reason: domain.CreatedCompleteMultipartUpload},
	"ObjectCreated:*":                         {eventType: domain.ObjectCreated, reason: domain.UnknownReason},
	"ObjectRestore:Completed":                 {eventType: domain.ObjectCreated, reason: domain.Restored},
	"ObjectRestore:Delete":                    {eventType: domain.ObjectCreated, reason: domain.RestoreExpired},
	"LifecycleTransition":                     {eventType: domain.ObjectCreated, reason: domain.StorageClassChanged},
	"IntelligentTiering":                      {eventType: domain.ObjectCreated, reason: domain.StorageClassChanged},
	"ObjectRemoved:DeleteMarkerCreated":       {eventType: domain.ObjectDeleted, isMarker: true, reason: domain.DeletedByRequest},
	"ObjectRemoved:*":                         {eventType: domain.ObjectDeleted, reason: domain.DeletedByRequest},
	"LifecycleExpiration:DeleteMarkerCreated": {eventType: domain.ObjectDeleted, isMarker: true, reason: domain.DeletedLifecycle},
	"LifecycleExpiration:*":                   {eventType: domain.ObjectDeleted, reason: domain.DeletedLifecycle},
}

// kindOfS3 returns the kind of events called name. The name may start with s3:, which some senders
// add.
func kindOfS3(name string) (eventKind, bool) {
	name = strings.TrimPrefix(name, "s3:")
	if k, ok := eventKindsOfS3[name]; ok && !strings.HasSuffix(name, "*") {
		return k, true
	}
	family, _, _ := strings.Cut(name, ":")
	k, ok := eventKindsOfS3[family+":*"]
	return k, ok
}

// readS3Record reads one record of a notification that S3 has sent directly.
func (n *jsonNode) readS3Record() {
	e, name := n.event, n.findMember("eventName").stringValue()
	k, ok := kindOfS3(name)
	if !ok && e.fault == nil {
		e.markIgnored(name)
		return
	}
	s3 := n.objectMember("s3")
	bucket := s3.objectMember("bucket").findMember("name")
	object := s3.findMember("get_object") // events of Intelligent-Tiering contain the object in this member
	if object.text == nil {
		object = s3.objectMember("object")
	}
	key := object.findMember("key")
	e.addChange(objectChange{
		bucket: bucket.stringValue(), bucketAt: bucket, key: key.formKey(), keyAt: key,
		ObjectEvent: domain.ObjectEvent{
			Version: object.findMember("versionId").readVersion(), Type: k.eventType, Marker: k.isMarker,
			Sequencer: object.findMember("sequencer").readSequencer(domain.HexSequencer), Time: n.findMember("eventTime").timeValue(),
			ObjectFacts: n.s3Facts(object, k.reason),
		},
	}, "")
}

// s3Facts returns the facts about an object's content that a record contains.
func (n *jsonNode) s3Facts(object *jsonNode, reason domain.ObjectReason) domain.ObjectFacts {
	facts := domain.ObjectFacts{Size: object.findMember("size").sizeValue(), ETag: object.findMember("eTag").readETag(), Reason: reason}
	switch reason {
	case domain.Restored, domain.RestoreExpired:
		facts.StorageClass = n.findMember("glacierEventData").findMember("restoreEventData").findMember("lifecycleRestoreStorageClass").optionalString()
	case domain.StorageClassChanged:
		facts.StorageClass = n.findMember("lifecycleEventData").findMember("transitionEventData").findMember("destinationStorageClass").optionalString()
		setTier(&facts, n.findMember("intelligentTieringEventData").findMember("destinationAccessTier").optionalString())
	default:
	}
	return facts
}

// formKey decodes a form-encoded key, in which + means a space.
func (n *jsonNode) formKey() string {
	text := n.stringValue()
	key, err := url.QueryUnescape(text)
	switch {
	case n.event.fault != nil:
	case err != nil:
		n.reportFault(KeyNotEncoded, "key: want a key in which %% begins an encoded byte, such as %%25, got %q", domain.Shorten(text))
	case !utf8.ValidString(key):
		n.reportFault(KeyNotUTF8, "key: want a key that is UTF-8 once it is decoded, got %q", domain.Shorten(text))
	}
	return key
}
