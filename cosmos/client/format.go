package client

import (
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/messagehub/messagehub/domain"
)

// Nodes of two versions share a store while a deployment is upgraded, and after an upgrade was undone.
// Two mechanisms protect the documents of the newer version:
//
//   - A newer version may add members to a document or to an object in it. Every type whose JSON is
//     replaced has an embedded field Unknown: decoding stores in it the members that the type does not
//     name, and encoding writes them again.
//   - A newer version that stores data which an older version must not change raises the format number
//     of the document, its member v. In the older version, decoding such a document fails with
//     domain.NewerFormat, and no patch applies to it.
//
// A document without a member v has format 1.

// A FormatNumber is the format of a stored document. It is embedded in the types of
// documents that are written once. Documents that are replaced embed [Document].
type FormatNumber struct {
	StoredFormat int `json:"v,omitempty"`
}

// DocumentFormat returns the stored number, or 0 if the document has no number.
func (n FormatNumber) DocumentFormat() int { return n.StoredFormat }

// UnknownMembers are the members of a JSON object that its Go type does not name: a JSON object with
// only these members, or nothing. It is never changed in place.
type UnknownMembers = jsontext.Value

// A Document is embedded in the type of every document that is replaced. It retains the members that the
// type does not name.
type Document struct {
	FormatNumber
	SystemMembers
	Unknown UnknownMembers `json:",embed"`
}

// SystemMembers are the members that Cosmos adds to every item. Decoding drops them, so that they are
// not written back as unknown members.
type SystemMembers struct {
	RID         droppedMember `json:"_rid,omitzero"`
	Self        droppedMember `json:"_self,omitzero"`
	ETag        droppedMember `json:"_etag,omitzero"` // a type that needs the etag declares it, which hides this field
	Attachments droppedMember `json:"_attachments,omitzero"`
	Timestamp   droppedMember `json:"_ts,omitzero"`
	LSN         droppedMember `json:"_lsn,omitzero"`
}

type droppedMember struct{}

func (*droppedMember) UnmarshalJSON([]byte) error { return nil }

// A DocumentKind is the name of a kind of document, and the highest format of the kind that this
// version reads and writes.
type DocumentKind struct {
	Name   string
	Format int
}

// A formattedDocument is a document with a format number.
type formattedDocument interface {
	DocumentKind() DocumentKind
	DocumentFormat() int
}

// A FormatObserver is notified of the formats of documents that [Call.Decode] reads.
type FormatObserver interface {
	// Newer reports a document with a format that this version does not know, and the
	// error that Decode returns for it.
	Newer(partitionKey, id string, err error)
	// Known reports a document with a known format. Decode calls it for every document, so id is a
	// function: the observer decodes the id only if it needs the id.
	Known(partitionKey string, id func() string)
}

// A validator is a document that detects values which no version writes.
type validator interface{ Validate() error }

// jsonOptions encode and decode documents as encoding/json does, except that names
// match exactly: a member that differs in case is another member.
var jsonOptions = json.JoinOptions(jsonv1.DefaultOptionsV1(), json.MatchCaseInsensitiveNames(false))

// Encode returns the JSON of a document. It panics if the document cannot be encoded. Strings, numbers
// and times can always be encoded.
func Encode(doc any) []byte {
	b, err := json.Marshal(doc, jsonOptions)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", doc, err)) // impossible with strings, numbers and times
	}
	return b
}

// Decode decodes a document of the partition of key. It fails with Damaged if the document cannot be
// decoded, or if into has a method Validate() error that fails. If into has a format (the methods
// DocumentKind and DocumentFormat), Decode fails with NewerFormat if this version does not know the
// format of the document.
func (c *Call) Decode(doc []byte, key string, into any) error {
	err := json.Unmarshal(doc, into, jsonOptions)
	if err != nil {
		err = domain.Errorf(domain.Damaged, "decode document %q of partition %s: %w", idOf(doc), key, err)
	}
	s, ok := into.(formattedDocument)
	if !ok {
		return err
	}
	format := s.DocumentFormat()
	if err != nil { // members of a newer format may have other types
		var number FormatNumber
		_ = json.Unmarshal(doc, &number, jsonOptions)
		format = number.StoredFormat
	}
	if known := s.DocumentKind(); format > known.Format {
		return c.refuseFormat(doc, key, known, format)
	}
	if err != nil {
		return err
	}
	if observer := c.client.opts.Formats; observer != nil {
		observer.Known(key, func() string { return idOf(doc) })
	}
	if v, ok := into.(validator); ok {
		if err := v.Validate(); err != nil {
			return domain.Errorf(domain.Damaged, "document %q of partition %s: %w", idOf(doc), key, err)
		}
	}
	return nil
}

// refuseFormat returns the error for a document with an unknown format.
func (c *Call) refuseFormat(doc []byte, key string, known DocumentKind, format int) error {
	id := idOf(doc)
	err := domain.Errorf(domain.NewerFormat, "document %q in partition %s has format %d of a %s, and this version knows formats up to %d: upgrade this node, or use one of the newer version",
		id, key, format, known.Name, known.Format)
	if observer := c.client.opts.Formats; observer != nil {
		observer.Newer(key, id, err)
	}
	return err
}

// idOf returns the id of a document, even if this version cannot decode the document.
func idOf(doc []byte) string {
	var named struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(doc, &named, jsonOptions)
	return named.ID
}

// modifiedOf returns the time of the last write of a document, in seconds, even if this version cannot
// decode the document.
func modifiedOf(doc []byte) int64 {
	var stamped struct {
		Timestamp int64 `json:"_ts"`
	}
	_ = json.Unmarshal(doc, &stamped, jsonOptions)
	return stamped.Timestamp
}

// NewPatch returns a patch without operations, which applies only if the document meets all conditions
// and has a known format. The sender of a patch need not have read the document, so the patch itself
// must check the format.
func NewPatch(kind DocumentKind, conditions ...string) azcosmos.PatchOperations {
	format := fmt.Sprintf("(NOT IS_DEFINED(c.v) OR c.v <= %d)", kind.Format)
	var ops azcosmos.PatchOperations
	ops.SetCondition("from c where " + strings.Join(append([]string{format}, conditions...), " and "))
	return ops
}
