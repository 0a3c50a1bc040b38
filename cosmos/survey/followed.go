package survey

import (
	"encoding/json"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A query or a read may return a version of a document that is up to a minute old, and older than the
// version that a feed has returned. So the survey records the versions that feeds returned in the last
// minute, and ignores older versions from queries and reads.

// A followedID identifies a document of a mailbox.
type followedID struct{ container, recipient, document string }

// A followedVersion is the version of a document that a feed returned.
type followedVersion struct {
	etag     string
	modified int64     // time of the last write in seconds, by the clock of the account
	at       time.Time // time at which the feed returned the version, by the clock of this node
}

// maxFollowed is the limit for the recorded versions. If the feeds return more versions in a minute, the
// survey drops all of them and stops rechecks for a minute.
const maxFollowed = 50_000

// versionOf returns the identity and the version of a document.
func versionOf(container string, recipient domain.ActorID, doc []byte) (followedID, followedVersion) {
	var d struct {
		ID       string `json:"id"`
		ETag     string `json:"_etag"`
		Modified int64  `json:"_ts"`
	}
	_ = json.Unmarshal(doc, &d) // never fails: the reader has parsed doc before
	return followedID{container, recipient.String(), d.ID}, followedVersion{etag: d.ETag, modified: d.Modified}
}

// noteFollowed records the versions of documents that a feed returned.
func (s *Survey) noteFollowed(container string, docs [][]byte) {
	o := &s.own
	now := s.opts.Clock()
	if len(o.followed)+len(docs) > maxFollowed {
		o.followed, o.followedSince = nil, now
	}
	if o.followed == nil {
		o.followed = make(map[followedID]followedVersion)
	}
	for _, doc := range docs {
		recipient, ok := s.reader.Recipient(container, doc)
		if !ok {
			continue
		}
		id, version := versionOf(container, recipient, doc)
		version.at = now
		o.followed[id] = version
	}
}

// forgetFollowed drops the versions that feeds returned more than a minute ago: after a minute, reads
// return no older versions.
func (s *Survey) forgetFollowed() {
	now := s.opts.Clock()
	if now.Before(s.own.followedSince) { // the clock was set back
		s.own.followed, s.own.followedSince = nil, now
	}
	for id, version := range s.own.followed {
		if now.Sub(version.at) >= feedMargin {
			delete(s.own.followed, id)
		}
	}
}

// isOutdated reports whether a version that was read may be older than the version that a feed returned.
// The zero version means that the document was not found.
func (s *Survey) isOutdated(id followedID, version followedVersion) bool {
	followed, ok := s.own.followed[id]
	return ok && version.etag != followed.etag && version.modified <= followed.modified
}
