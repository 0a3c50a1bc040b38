package domain

import (
	"slices"
	"strings"
	"time"
)

// A Bundle is a range of consecutive events of one cabinet that its recipient receives together.
// Until the bundle is dequeued, it is open and every Peek of its group returns it.
type Bundle struct {
	ID            BundleID
	Group         Group
	Cabinet       CabinetKey
	Count         int // number of events, at least 1
	Weight        Weight
	First, Last   Sequence // sequences of the first and the last event
	DocumentTypes []DocumentType
	Content       ContentMode
	Format        Format
	Version       string    // version of the format that the actor requested
	Opened        time.Time // time of opening; used only to sort the open bundles of an actor
	Body          Body
	Peeked        TraceContext // the Peek that opened the bundle; zero: unknown

	// The following fields are set only in content mode Request.
	List           string         // name of a shared object that lists the event ids for the domain
	Object         string         // name of the content in the content store; "" until the domain has produced the content
	Gone           bool           // the content is known to be deleted
	ContentFailure ContentFailure // failures of the domain to produce the content; zero while the content exists
}

// IsUnanswered reports whether b waits for its domain to produce its content for the first
// time. While b waits, an actor can neither receive nor dequeue it.
func (b *Bundle) IsUnanswered() bool { return b.Content == Request && b.Object == "" }

// LacksContent reports whether the domain has to produce the content of b: for the first time,
// or again because the content was deleted. An actor may dequeue a bundle with deleted content,
// because the actor may have received the content earlier.
func (b *Bundle) LacksContent() bool { return b.IsUnanswered() || b.Content == Request && b.Gone }

// ContentFailure describes a domain's failed attempts to produce the content of a bundle.
type ContentFailure struct {
	Failures int    // consecutive failures
	Reason   string // reason of the last failure, in one word: no-answer, or the word that the domain sent
	Text     string // the domain's description of the last failure
}

// markedAfter is the number of consecutive content failures after which an operator should act.
const markedAfter = 5

// NeedsOperator reports whether an operator should examine the bundle, because markedAfter
// consecutive requests have failed. The hub continues to request the content.
func (f ContentFailure) NeedsOperator() bool { return f.Failures >= markedAfter }

// A Body contains the length and the digest of a bundle's body, which are known before the body is
// read. It is zero if they are unknown: an older version of the hub opened the bundle, or the
// domain has not produced the content yet.
type Body struct {
	Length int64  // bytes
	Digest Digest // digest of the body
}

// MessageType returns the distinct document types in the order in which they
// first appear, joined by commas.
func (b *Bundle) MessageType() string {
	texts := make([]string, len(b.DocumentTypes))
	for i, d := range b.DocumentTypes {
		texts[i] = d.s
	}
	return strings.Join(texts, ",")
}

// A ContentMode says how the data of a domain reaches the actor.
type ContentMode string

// The content modes.
const (
	Manifest ContentMode = "manifest" // the body lists the events of the bundle
	Inline   ContentMode = "inline"   // the body contains the payloads of the events
	Request  ContentMode = "request"  // the body is content that the domain produces on request
)

// ParseContentMode accepts manifest, inline and request.
func ParseContentMode(s string) (ContentMode, error) {
	switch m := ContentMode(s); m {
	case Manifest, Inline, Request:
		return m, nil
	}
	return "", Errorf(Invalid, "content: want manifest, inline or request, got %q", Shorten(s))
}

// A Format is the data format that an actor requests for content in mode Request.
type Format string

// The formats.
const (
	JSON Format = "json"
	XML  Format = "xml"
)

// ParseFormat accepts json and xml in upper or lower case.
func ParseFormat(s string) (Format, error) {
	switch f := Format(strings.ToLower(s)); f {
	case JSON, XML:
		return f, nil
	}
	return "", Errorf(Invalid, "format: want json or xml, got %q", Shorten(s))
}

// MaxDocumentTypes is the maximum number of document types in a bundle of several events. The types
// are sent in one header, and 32 types of maximum length take 4 KB.
const MaxDocumentTypes = 32

// A Filler decides which events of one cabinet form a bundle. The caller offers the events in their
// order, and the Filler applies these rules:
//
//   - the first event always fits, even if its weight exceeds Max;
//   - if the first event does not support bundling, the bundle contains no other event;
//   - further events fit as long as they support bundling and the sum of the weights does not
//     exceed Max;
//   - an event that would exceed MaxDocumentTypes does not fit, because the types are sent in
//     one header;
//   - the first event that does not fit ends the bundle: no later event may overtake it.
//
// The zero Filler has room for MaxBundleWeight.
type Filler struct {
	Max Weight // maximum weight of the bundle; 0: MaxBundleWeight

	count         int
	weight        Weight
	first, last   Sequence
	documentTypes []DocumentType
	full          bool
}

// Take adds the next event if it fits into the bundle, and reports whether it did. After the
// first event that does not fit, no event fits.
func (f *Filler) Take(e *Event, at Sequence) bool {
	limit := f.Max
	if limit == 0 {
		limit = MaxBundleWeight
	}
	weight := f.weight.Add(e.Weight)
	newType := !slices.Contains(f.documentTypes, e.DocumentType)
	tooMany := newType && len(f.documentTypes) == MaxDocumentTypes
	if f.full || f.count > 0 && (!e.SupportsBundling || weight > limit || tooMany) {
		f.full = true
		return false
	}
	if f.count == 0 {
		f.first = at
	}
	f.count++
	f.weight, f.last = weight, at
	f.full = !e.SupportsBundling || weight >= limit
	if newType {
		f.documentTypes = append(f.documentTypes, e.DocumentType)
	}
	return true
}

// Full reports whether no further event can fit. If so, the caller need not read the next event.
func (f *Filler) Full() bool { return f.full }

// Fill sets the fields of b that summarize the events in the bundle.
func (f *Filler) Fill(b *Bundle) {
	b.Count, b.Weight = f.count, f.weight
	b.First, b.Last = f.first, f.last
	b.DocumentTypes = f.documentTypes
}
