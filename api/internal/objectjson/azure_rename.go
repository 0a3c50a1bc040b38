package objectjson

import (
	"net/url"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// addSource adds the deletion of the renamed blob's former name. renamed is the change at the
// destination.
//
// For the source, the event contains only a URL. It is not documented whether the path of this URL
// is percent-encoded. For the destination, the event contains a URL and the unencoded key in the
// subject. If the path of the destination's URL ends with this key only before decoding, paths are
// not encoded.
func (a *azureEvent) addSource(e *parsedEvent, renamed objectChange) {
	source := a.data.findMember("sourceUrl")
	container, key, ok := blobOfURL(source.stringValue(), a.pathsAreEncoded(renamed.key))
	account, _, _ := strings.Cut(renamed.bucket, "/")
	bucket := account + "/" + container
	switch {
	case e.fault != nil:
		return
	case !ok:
		source.reportFault(InvalidSubject, "sourceUrl: want the URL of a blob, got %q", domain.Shorten(source.stringValue()))
		return
	case bucket == renamed.bucket && key == renamed.key:
		source.reportFault(InvalidSubject, "sourceUrl: want another blob than that of the subject")
		return
	}
	e.addChange(objectChange{
		bucket: bucket, bucketAt: source, key: key, keyAt: source,
		ObjectEvent: domain.ObjectEvent{
			Type: domain.ObjectDeleted, Sequencer: renamed.Sequencer, Time: renamed.Time,
			ObjectFacts: domain.ObjectFacts{Reason: domain.DeletedByRequest},
		},
	}, a.uniqueID())
}

// pathsAreEncoded reports whether the paths of the event's URLs are percent-encoded, as URLs should
// be. key is the key of the destination.
func (a *azureEvent) pathsAreEncoded(key string) bool {
	destination := a.data.findMember("destinationUrl")
	if destination.text == nil {
		return true
	}
	text := destination.stringValue()
	_, decoded, ok := blobOfURL(text, true)
	if ok && decoded == key {
		return true
	}
	_, plain, ok := blobOfURL(text, false)
	return !ok || plain != key
}

// blobOfURL returns the container and the key that the path of a URL contains.
func blobOfURL(text string, isEncoded bool) (container, key string, ok bool) {
	_, rest, ok := strings.Cut(text, "://")
	if !ok {
		return "", "", false
	}
	_, path, _ := strings.Cut(rest, "/")
	container, key, _ = strings.Cut(path, "/")
	if isEncoded {
		key, _, _ = strings.Cut(key, "?")
		decoded, err := url.PathUnescape(key)
		if err != nil {
			return "", "", false
		}
		key = decoded
	}
	return container, key, container != "" && key != ""
}
