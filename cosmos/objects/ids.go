package objects

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	shardsID   = "shards"
	rowPrefix  = "-r."
	headPrefix = "-v."

	behindHeads   = "-v/" // sorts after the ids of all copies
	changePrefix  = "-c."
	behindChanges = "-c/" // sorts after the ids of all changes for watches

	statePrefix  = "-t."
	behindStates = "-t/" // sorts after the ids of all changes for the topic

	firstID   = "0"  // sorts before the ids of all objects; ids of other documents begin with a dash
	lastRowID = "-z" // sorts after the ids of all documents that are not objects

	plainKey = repository.OrderedKey // maximum number of bytes of the key that an id contains
)

// keyEncoding preserves the byte order of keys.
var keyEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// objectID returns the id of the document of an object.
func objectID(key string) string {
	if len(key) <= plainKey {
		return keyEncoding.EncodeToString([]byte(key))
	}
	return keyEncoding.EncodeToString([]byte(key[:plainKey])) + "-" + hashOf(key)
}

// idRange returns the range of the ids of all keys with a prefix: the first id of the range, and the first
// id after it. to is empty if the range has no upper bound.
func idRange(prefix string) (from, to string) {
	prefix = prefix[:min(len(prefix), plainKey)]
	from = max(keyEncoding.EncodeToString([]byte(prefix)), firstID)
	for end := []byte(prefix); len(end) > 0; end = end[:len(end)-1] {
		if last := &end[len(end)-1]; *last < 0xff {
			*last++
			return from, keyEncoding.EncodeToString(end)
		}
	}
	return from, ""
}

// hashOf returns a hash of the texts and their lengths.
func hashOf(texts ...string) string {
	h := sha256.New()
	for _, s := range texts {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// rowID returns the id of a spilled row.
func rowID(key string, id domain.ObjectRowID) string {
	return rowPrefix + hashOf(key, id.Version.String(), id.Type.String(), id.Sequencer, id.Carrier.Message, fmt.Sprint(id.Carrier.Index))
}

// headID returns the id of a version's copy, which repeats the newest spilled row of the version.
func headID(key string, v domain.VersionID) string { return headPrefix + hashOf(key, v.String()) }

// changeID returns the id of the document that stores a change of an object for its watches. The ids of
// an object's changes sort by version.
func changeID(key string, version int64) string {
	from, _ := changeIDs(key)
	return fmt.Sprintf("%s%020d", from, version)
}

// changeIDs returns the range of the ids that changeID returns for an object.
func changeIDs(key string) (from, to string) {
	hash := hashOf(key)
	return changePrefix + hash + ".", changePrefix + hash + "/"
}

// stateID returns the id of the document that stores a change of an object for the topic. The ids of an
// object's changes sort by version.
func stateID(key string, version int64) string {
	return fmt.Sprintf("%s%s.%020d", statePrefix, hashOf(key), version)
}

func bucketKey(bucket string) string { return "bucket|" + bucket }

func shardKey(bucket string, shard int) string { return fmt.Sprintf("shard|%02d|%s", shard, bucket) }

// shardOf returns the shard of a key.
func shardOf(key string, shards int) int {
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % uint32(shards)) //nolint:gosec // shards is 1 to 256
}

// orderText formats an order as text. The byte order of the texts is the order of the rows.
func orderText(o domain.ObjectOrder) string {
	var b strings.Builder
	// An exclamation mark sorts before all characters of a base or a number.
	fmt.Fprintf(&b, "%s!%d", o.Base, o.Rank)
	if o.Rank == domain.OverRow {
		fmt.Fprintf(&b, "%016x", uint64(o.After)^1<<63) //nolint:gosec // the bits of a time
	}
	fmt.Fprintf(&b, "%016x%016x%d%x!%s", uint64(o.Time)^1<<63, uint64(o.Number), o.Type, versionText(o.Version), o.Sequencer) //nolint:gosec // the bits of a time
	return b.String()
}

// versionText returns the text of a version, which is empty for the null version.
func versionText(v domain.VersionID) string {
	if v == (domain.VersionID{}) {
		return ""
	}
	return v.String()
}
