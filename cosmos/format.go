package cosmos

import (
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/messagehub/messagehub/domain"
)

// Nodes of two versions work on one store while a deployment is upgraded, and after
// an upgrade was taken back. Two mechanisms keep them apart:
//
//   - A newer version may add members to a document or to an object in it. Every
//     type whose JSON is replaced has an embedded field Unknown: it takes up the
//     members that the type does not name, and encoding writes them again.
//   - A newer version that stores something which an older one must not touch raises
//     the format number of the document, its member v. Decoding such a document
//     fails with domain.NewerFormat, and no patch applies to it.
//
// Format 1 is not written: a document without a member v has it.

// A formatNumber is the format of a stored document. It is embedded in the types of
// documents that are written once; the others embed document.
type formatNumber struct {
	StoredFormat int `json:"v,omitempty"`
}

func (n formatNumber) storedFormat() int { return n.StoredFormat }

// unknownMembers are the members of a JSON object that its Go type does not name: a
// JSON object with these members alone, or nothing. It is never changed in place.
type unknownMembers = jsontext.Value

// A document is embedded in the type of every document that is replaced.
type document struct {
	formatNumber
	systemMembers
	Unknown unknownMembers `json:",embed"`
}

// systemMembers are the members that Cosmos adds to every item. They are dropped, so
// that they are neither kept as unknown members nor written.
type systemMembers struct {
	RID         droppedMember `json:"_rid,omitzero"`
	Self        droppedMember `json:"_self,omitzero"`
	ETag        droppedMember `json:"_etag,omitzero"` // hidden by the field of a type that needs it
	Attachments droppedMember `json:"_attachments,omitzero"`
	Timestamp   droppedMember `json:"_ts,omitzero"`
	LSN         droppedMember `json:"_lsn,omitzero"`
}

type droppedMember struct{}

func (*droppedMember) UnmarshalJSON([]byte) error { return nil }

// A documentKind is the name of a kind of document, and the highest format of it
// that this version reads and writes.
type documentKind struct {
	name   string
	format int
}

// The kinds of documents. A change that raises one of these numbers follows the rules
// for formats in the package comment.
var (
	headDocument   = documentKind{"head", 1}
	entryDocument  = documentKind{"entry", 1}
	drawerDocument = documentKind{"drawer", 1}
	pageDocument   = documentKind{"page", 1}
	filterDocument = documentKind{"filter", 1}
	gateDocument   = documentKind{"gate", 1}
	bundleDocument = documentKind{"bundle", 1}
	noticeDocument = documentKind{"notice", 1}
	recordDocument = documentKind{"record", 1}
	groupsDocument = documentKind{"groups", 1}
	sweepDocument  = documentKind{"sweep", 1}
)

func (*head) kind() documentKind      { return headDocument }
func (*entry) kind() documentKind     { return entryDocument }
func (*drawer) kind() documentKind    { return drawerDocument }
func (*page) kind() documentKind      { return pageDocument }
func (*filterDoc) kind() documentKind { return filterDocument }
func (*gate) kind() documentKind      { return gateDocument }
func (*bundleDoc) kind() documentKind { return bundleDocument }
func (*noticeDoc) kind() documentKind { return noticeDocument }
func (*recordDoc) kind() documentKind { return recordDocument }
func (*groupsDoc) kind() documentKind { return groupsDocument }
func (*sweepDoc) kind() documentKind  { return sweepDocument }

// A drawerItem has the members of a page, or of the filter of a drawer, that a sweep
// reads.
type drawerItem struct {
	ID string `json:"id"`
	formatNumber
}

func (d *drawerItem) kind() documentKind {
	if d.ID == filterID {
		return filterDocument
	}
	return pageDocument
}

// A stored value is a document with a format.
type stored interface {
	kind() documentKind
	storedFormat() int
}

// jsonOptions encode and decode documents as encoding/json does, except that names
// match exactly: a member that differs in case is another member.
var jsonOptions = json.JoinOptions(jsonv1.DefaultOptionsV1(), json.MatchCaseInsensitiveNames(false))

// encoded returns the JSON of a document, which always has one.
func encoded(doc any) []byte {
	b, err := json.Marshal(doc, jsonOptions)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", doc, err)) // strings, numbers and times only
	}
	return b
}

// decode reads a document of partition key. It fails with NewerFormat if the document
// has a format that this version does not know, and with Damaged if it cannot be read.
func (c *call) decode(doc []byte, key string, into any) error {
	err := json.Unmarshal(doc, into, jsonOptions)
	if err != nil {
		err = domain.Errorf(domain.Damaged, "decode a document of partition %s: %w", key, err)
	}
	s, ok := into.(stored)
	if !ok {
		return err
	}
	format := s.storedFormat()
	if err != nil { // its members may have other types in a newer format
		var number formatNumber
		_ = json.Unmarshal(doc, &number, jsonOptions)
		format = number.StoredFormat
	}
	if known := s.kind(); format > known.format {
		return c.refuseFormat(doc, key, known, format)
	}
	if err != nil {
		return err
	}
	c.r.newer.remove(mailboxOf(key), func() string { return idOf(doc) })
	return withinLimits(key, into)
}

// refuseFormat returns the error of a document with a format that is not known.
func (c *call) refuseFormat(doc []byte, key string, known documentKind, format int) error {
	id := idOf(doc)
	err := domain.Errorf(domain.NewerFormat, "document %q in partition %s has format %d of a %s, and this version knows formats up to %d: upgrade this node, or use one of the newer version",
		id, key, format, known.name, known.format)
	c.r.newer.add(mailboxOf(key), id, err)
	return err
}

// idOf returns the id of a document that may not be of this version.
func idOf(doc []byte) string {
	var named struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(doc, &named, jsonOptions)
	return named.ID
}

// mailboxOf returns the recipient to whom a partition belongs. The partition of a
// drawer, or of a document of all recipients, names none; then it is the partition.
func mailboxOf(key string) string {
	if mailbox, _, _ := strings.Cut(key, "|"); mailbox != "" {
		return mailbox
	}
	return key
}

// newPatch returns a patch without operations. It applies to a document that meets all
// conditions and has a known format: a patch changes a document that its sender may
// never have read.
func newPatch(kind documentKind, conditions ...string) azcosmos.PatchOperations {
	format := fmt.Sprintf("(NOT IS_DEFINED(c.v) OR c.v <= %d)", kind.format)
	var ops azcosmos.PatchOperations
	ops.SetCondition("from c where " + strings.Join(append([]string{format}, conditions...), " and "))
	return ops
}
