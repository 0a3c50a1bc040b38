package engine

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/checksum"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

const (
	// MaxItem is the maximum size of a document, in bytes of JSON.
	MaxItem = 2 << 20
	// maxID is the maximum length of a document id, in bytes.
	maxID = 1023
	// systemPropertiesSize is an upper limit for the bytes of a document's system properties.
	systemPropertiesSize = 320
	// maxInlineSize is the maximum size, in bytes, of JSON that is stored under key D, as the package comment
	// describes.
	maxInlineSize = 4 << 10
)

// A Document is a checked and compact document from a client, without system properties.
// Parsing it is the most expensive part of a write, and needs no transaction.
type Document struct {
	ID        string
	Partition Partition
	text      []byte // room for the stored header, followed by the JSON
	terms     int
	ttl       int32 // time to live in seconds; 0 if the document has no ttl
}

func (d Document) compactJSON() []byte { return d.text[headerSize:] }

// newTextBuffer returns a buffer with an empty header and enough capacity for size bytes of JSON and the system
// properties.
func newTextBuffer(size int) []byte {
	return make([]byte, headerSize, headerSize+size+systemPropertiesSize)
}

// ParseDocument checks a document that a client wants to store in c. If anyID is true, it accepts ids that Azure
// accepts but that some gateways cannot address.
func (c *Container) ParseDocument(body []byte, anyID bool) (Document, error) {
	if len(body) > MaxItem {
		return Document{}, newErrorf(http.StatusRequestEntityTooLarge, "the document has %d bytes; at most %d are allowed", len(body), MaxItem)
	}
	text, err := rawjson.Compact(newTextBuffer(len(body)), body)
	if err != nil {
		return Document{}, badRequest("%v", err)
	}
	doc, err := removeSystemMembers(text[headerSize:])
	if err != nil {
		return Document{}, err
	}
	if len(doc) < len(text)-headerSize {
		text = append(newTextBuffer(len(doc)), doc...)
	}
	id, ttl, err := readIDAndTTL(doc)
	if err == nil && !anyID {
		err = checkID(id)
	}
	if err != nil {
		return Document{}, err
	}
	pk, err := c.extractPartition(doc)
	if err != nil {
		return Document{}, err
	}
	return Document{ID: id, Partition: pk, text: text, terms: c.policy.countTerms(doc), ttl: ttl}, nil
}

func isSystem(name []byte) bool {
	if len(name) < 3 || name[1] != '_' {
		return false
	}
	switch string(name) {
	case `"_rid"`, `"_self"`, `"_etag"`, `"_attachments"`, `"_ts"`, `"_lsn"`:
		return true
	}
	return false
}

// isMetadata reports whether name is a system property, or a link from a database or container
// to its parts.
func isMetadata(name []byte) bool {
	switch string(name) {
	case `"_colls"`, `"_users"`, `"_docs"`, `"_sprocs"`, `"_triggers"`, `"_udfs"`, `"_conflicts"`:
		return true
	}
	return isSystem(name)
}

// removeSystemMembers removes the system properties from a compact object. Clients send them when they write back a
// document that they have read.
func removeSystemMembers(doc []byte) ([]byte, error) { return removeMembers(doc, isSystem) }

func removeMembers(doc []byte, isSystem func(name []byte) bool) ([]byte, error) {
	if len(doc) == 0 || doc[0] != '{' {
		return nil, badRequest("the body is not a JSON object")
	}
	found := false
	var names [][]byte
	twice := ""
	_ = rawjson.EachMember(doc, func(name, _ []byte) bool { // cannot fail, because doc is valid
		found = found || isSystem(name)
		for _, have := range names {
			if string(have) == string(name) {
				twice = string(name)
			}
		}
		if len(names) < 64 { // longer names are data, not a misspelled property
			names = append(names, name)
		}
		return twice == ""
	})
	if twice != "" {
		return nil, badRequest("the property %s occurs twice", twice)
	}
	if !found {
		return doc, nil
	}
	clean := append(make([]byte, 0, len(doc)+systemPropertiesSize), '{')
	_ = rawjson.EachMember(doc, func(name, value []byte) bool {
		if !isSystem(name) {
			if len(clean) > 1 {
				clean = append(clean, ',')
			}
			clean = append(clean, name...)
			clean = append(clean, ':')
			clean = append(clean, value...)
		}
		return true
	})
	return append(clean, '}'), nil
}

// readIDAndTTL returns the id and the time to live of a document.
func readIDAndTTL(doc []byte) (id string, ttl int32, err error) {
	var raw, life []byte
	_ = rawjson.EachMember(doc, func(name, value []byte) bool { // cannot fail, because doc is valid
		switch {
		case raw == nil && rawjson.IsName(name, "id"):
			raw = value
		case life == nil && rawjson.IsName(name, "ttl"):
			life = value
		}
		return raw == nil || life == nil
	})
	text, ok := rawjson.Unquote(raw)
	switch {
	case !ok:
		return "", 0, badRequest("the document has no id that is a string")
	case len(text) == 0:
		return "", 0, badRequest("the document id is empty")
	case len(text) > maxID:
		return "", 0, badRequest("the document id has %d bytes; at most %d are allowed", len(text), maxID)
	}
	ttl, err = parseTTL(life)
	return string(text), ttl, err
}

var escaped = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// checkID refuses ids that the documentation forbids, and ids that Azure accepts in a create but cannot address later.
func checkID(id string) error {
	switch {
	case strings.ContainsAny(id, "/\\#"):
		return badRequest("the document id %q has one of / \\ #", id)
	case escaped.MatchString(id):
		return badRequest("the document id %q has a percent escape, with which Azure could create but not find it", id)
	case strings.ContainsFunc(id, func(r rune) bool { return r < 0x20 }):
		return badRequest("the document id %q has a control character", id)
	case strings.HasSuffix(id, " "):
		return badRequest("the document id %q ends in a blank", id)
	}
	return nil
}

// A storedDocument is a document in the store: a header of fixed length, followed by small JSON. Large JSON is stored
// under key B.
type storedDocument struct {
	version uint64 // number of the write that created this version
	changed int64  // _ts
	terms   int
	user    int    // length of the JSON without the system properties
	size    int    // length of the JSON
	ttl     int32  // time to live in seconds; 0 if the document has no ttl
	sum     uint32 // checksum of summed and of the JSON
	summed  []byte // part of the header that the checksum includes
	small   []byte
	key     []byte // key in the store; valid only during the transaction
}

const (
	headerSize = sumAt + 4
	sumAt      = 8 + 8 + 4 + 4 + 4 + 4
)

// writeHeader writes the header of doc to b.
func (s storedDocument) writeHeader(b, doc []byte) {
	binary.BigEndian.PutUint64(b, s.version)
	binary.BigEndian.PutUint64(b[8:], uint64(s.changed)) //nolint:gosec // readStored converts it back
	binary.BigEndian.PutUint32(b[16:], uint32(s.terms))  //nolint:gosec // readStored converts it back
	binary.BigEndian.PutUint32(b[20:], uint32(s.user))   //nolint:gosec // readStored converts it back
	binary.BigEndian.PutUint32(b[24:], uint32(s.size))   //nolint:gosec // readStored converts it back
	binary.BigEndian.PutUint32(b[28:], uint32(s.ttl))    //nolint:gosec // readStored converts it back
	binary.BigEndian.PutUint32(b[sumAt:], checksumOf(b[:sumAt], doc))
}

func checksumOf(header, doc []byte) uint32 { return checksum.Update(checksum.Compute(header), doc) }

// readStored decodes the header of a document. It never fails, because readJSON detects damaged headers.
func readStored(key, b []byte) storedDocument {
	if len(b) < headerSize {
		return storedDocument{size: -1, key: key}
	}
	return storedDocument{
		version: binary.BigEndian.Uint64(b),
		changed: int64(binary.BigEndian.Uint64(b[8:])), //nolint:gosec // as writeHeader wrote it
		terms:   int(binary.BigEndian.Uint32(b[16:])),
		user:    int(binary.BigEndian.Uint32(b[20:])),
		size:    int(binary.BigEndian.Uint32(b[24:])),
		ttl:     int32(binary.BigEndian.Uint32(b[28:])), //nolint:gosec // as writeHeader wrote it
		sum:     binary.BigEndian.Uint32(b[sumAt:]),
		summed:  b[:sumAt],
		small:   b[headerSize:],
		key:     key,
	}
}

// readJSON verifies the checksum and returns the document with its system properties. The result is valid only during
// the transaction.
func (s storedDocument) readJSON(r disk.State, c *Container) ([]byte, error) {
	doc := s.readUnchecked(r, c)
	if len(doc) != s.size || s.user >= s.size || checksumOf(s.summed, doc) != s.sum {
		return nil, c.newDamageError(s)
	}
	return doc, nil
}

func (s storedDocument) readUnchecked(r disk.State, c *Container) []byte {
	if s.size > maxInlineSize {
		return r.Get(blobKey(c.number, s.version))
	}
	return s.small
}

// newDamageError returns an error that names the damaged document.
func (c *Container) newDamageError(s storedDocument) error {
	place, pk := string(s.key), Partition("")
	if n := len(s.key); n > 7+8 {
		pk = partitionOfKey(s.key)
		place = fmt.Sprintf("partition %s, number %d", pk, decodeNumber(s.key[n-8:]))
	}
	return &DamageError{pk, fmt.Errorf("%w: database %q, container %q, %s: the document does not match its checksum; "+
		"the check command lists all such documents", disk.ErrDamaged, c.Database, c.ID, place)}
}

// appendSystemProperties appends the system properties to doc, a compact JSON object that contains at least an id.
func (e *Engine) appendSystemProperties(c *Container, doc []byte, seq, version uint64, now time.Time) []byte {
	id := formatRID(binary.BigEndian.AppendUint64(append([]byte(nil), c.ridBytes...), seq))
	doc = append(doc[:len(doc)-1], `,"_rid":"`...)
	doc = append(doc, id...)
	doc = append(doc, `","_self":"`...)
	doc = append(doc, c.self...)
	doc = append(doc, "docs/"...)
	doc = append(doc, id...)
	etag := e.formatETag(version)
	doc = append(doc, `/","_etag":"\"`...)
	doc = append(doc, etag[1:len(etag)-1]...)
	doc = append(doc, `\"","_attachments":"attachments/","_ts":`...)
	doc = strconv.AppendInt(doc, now.Unix(), 10)
	return append(doc, '}')
}
