package objects

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"time"
)

// An objectRow is a stored event of an object.
type objectRow struct {
	Version    string `json:"version"`
	Type       int    `json:"type"`
	IsMarker   bool   `json:"marker"`
	Form       int    `json:"form"`
	Sequencer  string `json:"sequencer"`
	Message    string `json:"message"`
	Index      int    `json:"index"`
	Time       string `json:"time"`
	Size       string `json:"size"`
	ETag       string `json:"eTag"`
	SHA256     string `json:"sha256"`
	Class      string `json:"storageClass"`
	Archive    string `json:"archiveStatus"`
	Modified   string `json:"lastModified"`
	Reason     string `json:"reason"`
	IngestID   string `json:"ingestId"`
	Attributes string `json:"attributes"`
	BaseForm   int    `json:"baseForm"`
	Base       string `json:"base"`
	Rank       int    `json:"rank"`
	After      string `json:"after"`
	Number     int64  `json:"number"`
	Duplicates int64  `json:"duplicates"`
	Reordered  int64  `json:"reordered"`
	WriteID    string `json:"writeId"`
}

// The types of events, the form of hexadecimal sequencers, and the ranks of positions.
const (
	created = 1
	deleted = 2

	hexForm = 1

	behindRow = 1
	overRow   = 2
)

// An eventIdentity distinguishes the events of an object.
type eventIdentity struct {
	version   string
	kind      int
	sequencer string
	message   string
	index     int
}

func (r *objectRow) identityOf() eventIdentity {
	switch {
	case r.Sequencer == "":
		return eventIdentity{message: r.Message, index: r.Index}
	case r.Form == hexForm:
		return eventIdentity{version: r.Version, kind: r.Type, sequencer: strings.ToUpper(r.Sequencer)}
	}
	return eventIdentity{version: r.Version, kind: r.Type, sequencer: r.Sequencer}
}

// factsOf returns a copy of r with only the fields that never change.
func (r *objectRow) factsOf() objectRow {
	f := *r
	f.BaseForm, f.Base, f.Rank, f.After, f.Duplicates, f.Reordered = 0, "", 0, "", 0, 0
	f.Attributes, f.IngestID = "", "" // checkPatches checks these two fields
	return f
}

func (r *objectRow) isGenerated() bool { return r.Sequencer == "" }

func (r *objectRow) isDeleteMarker() bool { return r.Type == deleted && r.IsMarker }

// isLive reports whether the version of the row exists after the event.
func (r *objectRow) isLive() bool { return r.Type == created || r.isDeleteMarker() }

// isOver reports whether the event states that its version was the newest of all versions.
func (r *objectRow) isOver() bool {
	return r.isDeleteMarker() || r.Type == created && (r.Reason == "Crawl" || r.Reason == "CrawlRestored")
}

// happenedAt returns the time of the event in microseconds, and false if it is unknown.
func (r *objectRow) happenedAt() (int64, bool) { return micros(r.Time) }

// micros returns a time in microseconds. For an unknown time it returns the lowest number and false.
func micros(text string) (int64, bool) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return math.MinInt64, false
	}
	return t.UnixMicro(), true
}

// A rowOrder determines the position of a row among all rows of its object.
type rowOrder struct {
	base      string
	rank      int
	after     int64
	time      int64
	number    int64
	kind      int
	version   string
	sequencer string
}

// baseOf returns a text that sorts as the sequencer. Hexadecimal sequencers are padded to 64 digits, and sort before
// all opaque ones. Opaque sequencers sort by length first.
func baseOf(form int, sequencer string) string {
	switch {
	case sequencer == "":
		return ""
	case form == hexForm:
		return strings.ToUpper(sequencer) + strings.Repeat("0", 64-len(sequencer))
	}
	return fmt.Sprintf("~%04d", len(sequencer)) + sequencer
}

func (r *objectRow) orderOf() rowOrder {
	if !r.isGenerated() {
		return rowOrder{base: baseOf(r.Form, r.Sequencer), kind: r.Type, version: r.Version, sequencer: r.identityOf().sequencer}
	}
	t, _ := r.happenedAt()
	o := rowOrder{base: baseOf(r.BaseForm, r.Base), rank: r.Rank, time: t, number: r.Number}
	if o.rank == overRow {
		o.after = t
		if after, known := micros(r.After); known {
			o.after = after
		}
	}
	return o
}

func (o rowOrder) compareOrders(p rowOrder) int {
	return cmp.Or(
		cmp.Compare(o.base, p.base), cmp.Compare(o.rank, p.rank), cmp.Compare(o.after, p.after), cmp.Compare(o.time, p.time), cmp.Compare(o.number, p.number),
		cmp.Compare(o.kind, p.kind), cmp.Compare(o.version, p.version), cmp.Compare(o.sequencer, p.sequencer),
	)
}

func compareRows(a, b objectRow) int { return a.orderOf().compareOrders(b.orderOf()) }

// A scopeDocument is a document of a shard, or of a bucket.
type scopeDocument struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Bucket string `json:"bucket"`
	Shards int    `json:"shards"` // number of shards of a bucket

	Key              string      `json:"key"`
	Live             any         `json:"live"` // in an object, whether it has a current row; in a copy, see checkCopies
	Current          *objectRow  `json:"current"`
	Rows             []objectRow `json:"rows"`
	Events           int64       `json:"events"`
	Duplicates       int64       `json:"duplicates"`
	Generated        int64       `json:"generated"`
	Floor            *floor      `json:"floor"`
	Spilled          int64       `json:"spilled"`
	SpilledGenerated int64       `json:"spilledGenerated"`
	Writes           []string    `json:"writes"`
	Forgotten        *floor      `json:"forgotten"`
	ForgottenTo      string      `json:"forgottenTo"`
	ForgottenRows    int64       `json:"forgottenRows"`

	Object  string    `json:"object"` // id of the object to which a spilled row or a copy belongs
	Version string    `json:"version"`
	Row     objectRow `json:"row"`

	IsWatched bool  `json:"watched"`
	Changes   int64 `json:"changes"` // number of changes while the object was watched

	StateVersion int64 `json:"stateVersion"` // version of the object's last change for the topic

	Resource string `json:"resource"` // resource of a stored change; Number and Event are fields of the change, too
	Number   int64  `json:"number"`
	Event    string `json:"event"`
}

// A floor is the stored order of a row. The base is a sequencer; a hexadecimal sequencer has no trailing zeros.
type floor struct {
	Base      string `json:"base"`
	Rank      int    `json:"rank"`
	After     int64  `json:"after,string"`
	Time      int64  `json:"time,string"`
	Number    int64  `json:"number"`
	Type      int    `json:"type"`
	Version   string `json:"version"`
	Sequencer string `json:"sequencer"`
}

// orderOf returns the order of a floor. The base of an opaque sequencer has the form ~length:text.
func (f *floor) orderOf() rowOrder {
	if f == nil {
		return rowOrder{rank: -1} // an order below all rows
	}
	o := rowOrder{rank: f.Rank, after: f.After, time: f.Time, number: f.Number, kind: f.Type, version: f.Version, sequencer: f.Sequencer}
	if text, isOpaque := strings.CutPrefix(f.Base, "~"); isOpaque {
		_, text, _ = strings.Cut(text, ":")
		o.base = baseOf(hexForm+1, text)
	} else {
		o.base = baseOf(hexForm, f.Base)
	}
	return o
}

// plainKey is the number of bytes of a key that the id of its object contains.
const plainKey = 600

// idOf returns the id of the object with a key.
func idOf(key string) string {
	plain := base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(key[:min(len(key), plainKey)]))
	if len(key) <= plainKey {
		return plain
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s", len(key), key))
	return plain + "-" + hex.EncodeToString(sum[:20])
}

// shardOf returns the partition of the object with a key.
func shardOf(bucket, key string, shards int) string {
	h := fnv.New32a()
	h.Write([]byte(key))
	return fmt.Sprintf("shard|%02d|%s", int(h.Sum32())%shards, bucket)
}
