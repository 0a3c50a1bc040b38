package cosmos

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/domain"
)

// Keys are joined by a bar, which no actor id and no origin contains, so that no
// two different keys give the same text.

func headKey(recipient domain.ActorID) string { return recipient.String() }

func catalogKey(recipient domain.ActorID, origin domain.Origin) string {
	return recipient.String() + "|" + origin.String()
}

func cabinetKey(k domain.CabinetKey) string {
	return k.Recipient.String() + "|" + nameOf(k)
}

// A cabinetName tells the cabinets of one recipient apart: origin and content type.
type cabinetName = string

func nameOf(k domain.CabinetKey) cabinetName {
	return k.Origin.String() + "|" + k.ContentType.String()
}

// A namer is nameOf for the events of a Save, most of which follow one of their own
// cabinet.
type namer struct {
	last domain.CabinetKey
	name cabinetName
}

func (n *namer) of(k domain.CabinetKey) cabinetName {
	if n.name == "" || k != n.last {
		n.last, n.name = k, nameOf(k)
	}
	return n.name
}

// cabinetOf is the inverse of nameOf.
func cabinetOf(recipient domain.ActorID, name cabinetName) (domain.CabinetKey, error) {
	origin, contentType, _ := strings.Cut(name, "|")
	o, err := domain.ParseOrigin(origin)
	if err != nil {
		return domain.CabinetKey{}, domain.Errorf(domain.Damaged, "head of %s names cabinet %q: %w", recipient, name, err)
	}
	c, err := domain.ParseContentType(contentType)
	if err != nil {
		return domain.CabinetKey{}, domain.Errorf(domain.Damaged, "head of %s names cabinet %q: %w", recipient, name, err)
	}
	return domain.CabinetKey{Recipient: recipient, Origin: o, ContentType: c}, nil
}

// A head is the truth about what a recipient has received. There is one for
// each recipient, in the catalog container; every write of it is conditional.
type head struct {
	ID           string                   `json:"id"` // always "head"
	PartitionKey string                   `json:"partitionKey"`
	WriteID      string                   `json:"operation"` // id of the last write
	Reserved     domain.Sequence          `json:"reserved"`  // the highest number ever given away
	Watermark    domain.Sequence          `json:"watermark"` // the highest number that is visible
	Intent       *intent                  `json:"intent,omitempty"`
	Wanted       string                   `json:"wanted,omitempty"` // the process that waits for the intent to end
	Undone       int                      `json:"undone,omitempty"` // intents rolled back since the last commit that nobody waited for
	Cabinets     map[cabinetName]received `json:"cabinets"`
	Retention    map[cabinetName]retained `json:"retention,omitempty"`
	Fence        string                   `json:"fence,omitempty"` // id of the last write of Retention
	document

	etag azcore.ETag
}

const headID = "head"

// received says how far a cabinet has been filled by Saves that are committed.
type received struct {
	Drawer   string          `json:"drawer,omitempty"` // the last one; "" after a rollback: the next Save begins a new one
	Fill     int             `json:"fill"`             // events in Drawer
	Ordinal  int             `json:"ordinal"`          // the highest one used, Drawer's if there is one
	Sequence domain.Sequence `json:"sequence"`         // of the last event
	Total    int64           `json:"total"`            // events ever
	Marks    []mark          `json:"marks,omitempty"`  // when they were saved, in order
	Unknown  unknownMembers  `json:",embed"`
}

// An intent is a Save in flight: what it is going to write, told beforehand so
// that anybody can undo it.
type intent struct {
	ID      string          `json:"id"`
	Owner   string          `json:"owner"` // the process that saves
	First   domain.Sequence `json:"first"`
	Last    domain.Sequence `json:"last"`
	Aborted bool            `json:"aborted,omitempty"` // claimed for rollback: can only be undone
	Saved   millis          `json:"saved,omitempty"`   // the time of the Save
	Parts   []part          `json:"parts"`
	Unknown unknownMembers  `json:",embed"`
}

// A part is a run of slots of one drawer that a Save fills.
type part struct {
	Cabinet cabinetName     `json:"cabinet"`
	Drawer  string          `json:"drawer"`
	Ordinal int             `json:"ordinal"`
	Slot    int             `json:"slot"` // the first one
	Count   int             `json:"count"`
	New     bool            `json:"new,omitempty"` // the drawer is to be created
	First   domain.Sequence `json:"first"`
	Last    domain.Sequence `json:"last"`
	Unknown unknownMembers  `json:",embed"`
}

func (p *part) end() int { return p.Slot + p.Count }

// A drawer holds up to 10,000 events of a cabinet; they lie in pages, in the
// partition that bears the drawer's id.
type drawer struct {
	ID            string          `json:"id"`
	PartitionKey  string          `json:"partitionKey"`
	Ordinal       int             `json:"ordinal"` // dense in the cabinet from 1, never reused
	FirstSequence domain.Sequence `json:"firstSequence"`
	Count         int             `json:"count"`
	Weight        domain.Weight   `json:"weight"` // of its events; an estimate, too high after a rollback
	Sealed        bool            `json:"sealed"`
	Position      int             `json:"position"`  // hint: slots acknowledged
	WriteID       string          `json:"operation"` // the intent that last counted
	document
}

// An entry is a hint: the drawer has unacknowledged events from NextSequence on.
// Its id is the drawer's, so that writing it twice is harmless.
type entry struct {
	ID           string          `json:"id"`
	PartitionKey string          `json:"partitionKey"`
	ContentType  string          `json:"contentType"`
	Ordinal      int             `json:"ordinal"`
	NextSequence domain.Sequence `json:"nextSequence"`
	ETag         azcore.ETag     `json:"_etag,omitempty"`
	document
}

// replacing returns e as it is written in place of old.
func (e entry) replacing(old *entry) *entry {
	e.document = old.document
	return &e
}

// A page is a run of consecutive slots of a drawer, as one Save wrote it. It is
// never changed.
type page struct {
	ID            string          `json:"id"`
	PartitionKey  string          `json:"partitionKey"` // the drawer
	Intent        string          `json:"intent"`       // the Save that wrote it
	Slot          int             `json:"slot"`
	Until         int             `json:"until"` // the slot after the last
	FirstSequence domain.Sequence `json:"firstSequence"`
	Payloads      string          `json:"payloads,omitempty"` // object in the content store
	PayloadsFrom  int64           `json:"payloadsFrom,omitempty"`
	Saved         millis          `json:"saved,omitempty"` // the time of the Save
	Events        packed          `json:"events"`          // see encodePage
	Sum           uint32          `json:"sum,omitempty"`   // of what stands around the events; missing in the pages of older versions
	formatNumber
}

func pageID(slot int) string { return fmt.Sprintf("page-%05d", slot) }

// A filterDoc stands beside the pages of a sealed drawer.
type filterDoc struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"` // the drawer
	Count        int    `json:"count"`
	Filter       []byte `json:"filter"`
	document
}

const filterID = "filter"

// A gate is the truth about what a recipient has acknowledged in one group. It
// lies with the bundles of the recipient; every write of it is conditional.
type gate struct {
	ID         string                `json:"id"`
	Recipient  string                `json:"recipient"`
	Kind       string                `json:"kind"` // always "gate"
	WriteID    string                `json:"operation"`
	Generation int64                 `json:"generation"`
	Frozen     bool                  `json:"frozen,omitempty"` // by an operator: nothing is peeked or dequeued
	Last       string                `json:"last,omitempty"`   // bundle that was closed last
	Open       string                `json:"open,omitempty"`   // bundle
	Opened     time.Time             `json:"opened,omitzero"`
	First      domain.Sequence       `json:"first,omitempty"` // of the open bundle
	At         map[cabinetName]place `json:"at"`
	ETag       azcore.ETag           `json:"_etag,omitempty"`
	document
}

const gateKind = "gate"

func gateID(g domain.Group) string { return "gate." + g.String() }

// A place is just behind the last acknowledged event of a cabinet.
type place struct {
	Ordinal  int             `json:"ordinal"` // drawer; 0: before the first
	Slot     int             `json:"slot"`
	Sequence domain.Sequence `json:"sequence"`
	Total    int64           `json:"total"` // events acknowledged ever

	NextSaved millis `json:"nextSaved,omitempty"` // when the event just behind was saved, if that is known

	// Doubt is up to where the gate has been before it was moved back. Below it,
	// entries may be too high.
	Doubt domain.Sequence `json:"doubt,omitempty"`

	Unknown unknownMembers `json:",embed"`
}

// A bundleDoc is a bundle: not the ids of its events but where they lie.
type bundleDoc struct {
	ID            string          `json:"id"`
	Recipient     string          `json:"recipient"`
	Kind          string          `json:"kind"` // always "bundle"
	WriteID       string          `json:"operation"`
	State         string          `json:"state"` // open, dequeued, …
	Group         string          `json:"group"`
	Cabinet       cabinetName     `json:"cabinet"`
	Count         int             `json:"count"`
	Weight        domain.Weight   `json:"weight,string"` // numbers in Cosmos are exact up to 2^53 only
	First         domain.Sequence `json:"first"`
	Last          domain.Sequence `json:"last"`
	DocumentTypes []string        `json:"documentTypes"`
	Content       string          `json:"content"`
	Format        string          `json:"format"`
	Version       string          `json:"version"`
	Opened        time.Time       `json:"opened"`
	Ranges        []slots         `json:"ranges"`           // at most six
	TTL           int             `json:"ttl,omitempty"`    // seconds after the last write; once it is closed
	Before        string          `json:"before,omitempty"` // the bundle of its group that was closed before it was opened
	Start         place           `json:"start"`            // where the gate stood in the cabinet when it was opened
	Next          domain.Sequence `json:"next,omitempty"`   // hint: of the event behind the bundle in its last drawer
	NextSaved     millis          `json:"nextSaved,omitempty"`
	Behind        behind          `json:"behind,omitzero"`
	BodyLength    int64           `json:"bodyLength,omitempty"`
	BodyDigest    []byte          `json:"bodyDigest,omitempty"` // missing in the bundles of older versions

	// Of a bundle in content mode request:
	List    string      `json:"list,omitempty"`
	Object  string      `json:"object,omitempty"`  // once it is answered
	Trouble *troubleDoc `json:"trouble,omitempty"` // always there
	Opening int64       `json:"opening,omitempty"` // generation by which the gate opened it last
	document

	etag azcore.ETag
}

// A troubleDoc is what a domain has with making content.
type troubleDoc struct {
	Failures int    `json:"failures"`
	Reason   string `json:"reason"`
	Text     string `json:"text"`
	Call     string `json:"call"` // of Fail, that was the last

	Unknown unknownMembers `json:",embed"`
}

const (
	bundleKind    = "bundle"
	stateOpen     = "open"
	stateDequeued = "dequeued"
	stateSkipped  = "skipped"  // closed by an operator, not by its actor
	stateReleased = "released" // taken back by an operator
)

// slots are a run of slots of a drawer.
type slots struct {
	Drawer  string `json:"drawer"`
	Ordinal int    `json:"ordinal"`
	From    int    `json:"from"`
	To      int    `json:"to"` // exclusive

	Unknown unknownMembers `json:",embed"`
}

// bundle returns what the rules know of a bundle.
func (d *bundleDoc) bundle() (domain.Bundle, error) {
	b := domain.Bundle{
		Count: d.Count, Weight: d.Weight, First: d.First, Last: d.Last,
		Content: domain.ContentMode(d.Content), Format: domain.Format(d.Format), Version: d.Version, Opened: d.Opened,
		List: d.List, Object: d.Object,
	}
	if t := d.Trouble; t != nil {
		b.Trouble = domain.Trouble{Failures: t.Failures, Reason: t.Reason, Text: t.Text}
	}
	recipient, err := domain.ParseActorID(d.Recipient)
	if err == nil {
		b.ID, err = domain.ParseBundleID(d.ID)
	}
	if err == nil {
		b.Group, err = domain.ParseGroup(d.Group)
	}
	if err == nil {
		b.Cabinet, err = cabinetOf(recipient, d.Cabinet)
	}
	for _, text := range d.DocumentTypes {
		t, terr := domain.ParseDocumentType(text)
		if err == nil {
			err = terr
		}
		b.DocumentTypes = append(b.DocumentTypes, t)
	}
	b.Body.Length = d.BodyLength
	switch n := len(d.BodyDigest); {
	case n == len(b.Body.Digest):
		b.Body.Digest = domain.Digest(d.BodyDigest)
	case n != 0 && err == nil:
		err = fmt.Errorf("the digest of its body has %d bytes", n)
	}
	if err == nil && len(d.Ranges) == 0 {
		err = errors.New("it has no events")
	}
	if err != nil {
		return b, domain.Errorf(domain.Damaged, "bundle %s of %s: %w", d.ID, d.Recipient, err)
	}
	return b, nil
}

func newBundleDoc(b *domain.Bundle, writeID string, ranges []slots, next domain.Sequence) *bundleDoc {
	d := &bundleDoc{
		ID: b.ID.String(), Recipient: b.Cabinet.Recipient.String(), Kind: bundleKind,
		WriteID: writeID, State: stateOpen,
		Group: b.Group.String(), Cabinet: nameOf(b.Cabinet),
		Count: b.Count, Weight: b.Weight, First: b.First, Last: b.Last,
		Content: string(b.Content), Format: string(b.Format), Version: b.Version, Opened: b.Opened,
		Ranges: ranges, Next: next,
		BodyLength: b.Body.Length,
		List:       b.List, Object: b.Object,
	}
	if b.Content == domain.Request {
		d.Trouble = &troubleDoc{Failures: b.Trouble.Failures, Reason: b.Trouble.Reason, Text: b.Trouble.Text}
	}
	if b.Body != (domain.Body{}) {
		d.BodyDigest = b.Body.Digest[:]
	}
	for _, t := range b.DocumentTypes {
		d.DocumentTypes = append(d.DocumentTypes, t.String())
	}
	return d
}
