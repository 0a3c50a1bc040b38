package objectjson

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/messagehub/messagehub/domain"
)

// A kind is what the name of an event means.
type kind struct {
	eventType domain.ObjectEventType
	isMarker  bool
	reason    domain.ObjectReason
}

// kindsOfS3 has the names of events in notifications of S3. A name that ends in * stands for all
// that begin like it and are not listed.
var kindsOfS3 = map[string]kind{
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

// kindOfS3 returns the meaning of a name, with or without the s3: that some senders put in front.
func kindOfS3(name string) (kind, bool) {
	name = strings.TrimPrefix(name, "s3:")
	if k, ok := kindsOfS3[name]; ok && !strings.HasSuffix(name, "*") {
		return k, true
	}
	family, _, _ := strings.Cut(name, ":")
	k, ok := kindsOfS3[family+":*"]
	return k, ok
}

// s3Record reads a record of a notification that S3 sends itself.
func (n *node) s3Record() {
	e, name := n.event, n.get("eventName").value()
	k, ok := kindOfS3(name)
	if !ok && e.fault == nil {
		e.ignore(name)
		return
	}
	s3 := n.object("s3")
	bucket := s3.object("bucket").get("name")
	object := s3.get("get_object") // as events of Intelligent-Tiering have it
	if object.text == nil {
		object = s3.object("object")
	}
	key := object.get("key")
	e.add(change{
		bucket: bucket.value(), bucketAt: bucket, key: key.formKey(), keyAt: key,
		ObjectEvent: domain.ObjectEvent{
			Version: object.get("versionId").version(), Type: k.eventType, Marker: k.isMarker,
			Sequencer: object.get("sequencer").sequencer(domain.HexSequencer), Time: n.get("eventTime").time(),
			ObjectFacts: n.s3Facts(object, k.reason),
		},
	}, "")
}

// s3Facts returns what a record says about the content of its object.
func (n *node) s3Facts(object *node, reason domain.ObjectReason) domain.ObjectFacts {
	facts := domain.ObjectFacts{Size: object.get("size").size(), ETag: object.get("eTag").etag(), Reason: reason}
	switch reason {
	case domain.Restored, domain.RestoreExpired:
		facts.StorageClass = n.get("glacierEventData").get("restoreEventData").get("lifecycleRestoreStorageClass").optional()
	case domain.StorageClassChanged:
		facts.StorageClass = n.get("lifecycleEventData").get("transitionEventData").get("destinationStorageClass").optional()
		setTier(&facts, n.get("intelligentTieringEventData").get("destinationAccessTier").optional())
	default:
	}
	return facts
}

// formKey returns a key that is encoded as forms are.
func (n *node) formKey() string {
	text := n.value()
	key, err := url.QueryUnescape(text)
	switch {
	case n.event.fault != nil:
	case err != nil:
		n.fail(KeyNotEncoded, "key: want a key in which %% begins an encoded byte, such as %%25, got %q", domain.Clip(text))
	case !utf8.ValidString(key):
		n.fail(KeyNotUTF8, "key: want a key that is UTF-8 once it is decoded, got %q", domain.Clip(text))
	}
	return key
}
