package domain

import (
	"slices"
	"strings"
	"time"
)

// A Bundle is a run of events of one cabinet that its recipient gets together.
// It stays open, and every Peek of its group repeats it, until it is dequeued.
type Bundle struct {
	ID            BundleID
	Group         Group
	Cabinet       CabinetKey
	Count         int // events, at least 1
	Weight        Weight
	First, Last   Sequence // of its events
	DocumentTypes []DocumentType
	Content       ContentMode
	Format        Format
	Version       string    // of the format, as the actor asked for it
	Opened        time.Time // orders the open bundles of an actor; no decision rests on it
	Body          Body
	Peeked        TraceContext // the Peek that opened it; zero if that is not known

	// Of a bundle in content mode Request:
	List    string  // the shared object that tells the domain the ids of its events
	Object  string  // in the content store, what the domain has made; "" until it has
	Gone    bool    // Object is known to be deleted
	Trouble Trouble // of the domain with making it; zero once there is an Object that is not gone
}

// IsUnanswered reports whether b waits for its domain to make its content: until
// then there is nothing to hand out, and nothing that an actor could confirm.
func (b *Bundle) IsUnanswered() bool { return b.Content == Request && b.Object == "" }

// LacksContent reports whether the domain has to make the content of b: for the first time, or
// again, because it was deleted. An actor may confirm deleted content, which it may hold.
func (b *Bundle) LacksContent() bool { return b.IsUnanswered() || b.Content == Request && b.Gone }

// Trouble is what a domain has with making the content of a bundle.
type Trouble struct {
	Failures int    // in a row
	Reason   string // of the last one, a word: no-answer, or what the domain calls it
	Text     string // what it says about it
}

// markedAfter is how many failures in a row call for an operator.
const markedAfter = 5

// IsMarked reports whether an operator should look at the bundle: asking again has
// not helped so far, though it goes on.
func (t Trouble) IsMarked() bool { return t.Failures >= markedAfter }

// A Body says what the body of a bundle is before anybody reads it. The zero Body
// says nothing: it is that of a bundle which an older version opened, or which
// waits for its domain.
type Body struct {
	Length int64  // bytes
	Digest Digest // tells it from any other body
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
	Inline   ContentMode = "inline"   // the body is the payloads that came with the events
	Request  ContentMode = "request"  // the body is what the domain makes when it is asked
)

// ParseContentMode accepts manifest, inline and request.
func ParseContentMode(s string) (ContentMode, error) {
	switch m := ContentMode(s); m {
	case Manifest, Inline, Request:
		return m, nil
	}
	return "", Errorf(Invalid, "content: want manifest, inline or request, got %q", Clip(s))
}

// A Format is the form in which an actor wants content that a domain makes on
// request.
type Format string

// The formats.
const (
	JSON Format = "json"
	XML  Format = "xml"
)

// ParseFormat accepts json and xml in any case.
func ParseFormat(s string) (Format, error) {
	switch f := Format(strings.ToLower(s)); f {
	case JSON, XML:
		return f, nil
	}
	return "", Errorf(Invalid, "format: want json or xml, got %q", Clip(s))
}

// MaxDocumentTypes is the most document types that a bundle of several events
// has. 32 of the longest are a header of 4 KB.
const MaxDocumentTypes = 32

// A Filler applies the bundling rules to the events of one cabinet, offered in
// order:
//
//   - the first event always goes, whatever it weighs;
//   - if it does not support bundling, it travels alone;
//   - after it, events go as long as they support bundling and the sum of the
//     weights stays within Max;
//   - an event that would bring more than MaxDocumentTypes into the bundle does
//     not go: the types travel in one header;
//   - the first event that does not go ends the bundle: none behind it may
//     overtake it.
//
// The zero Filler has room for MaxBundleWeight.
type Filler struct {
	Max Weight // 0 means MaxBundleWeight

	count         int
	weight        Weight
	first, last   Sequence
	documentTypes []DocumentType
	full          bool
}

// Take offers the next event and reports whether it goes into the bundle. After
// the first refusal it refuses everything.
func (f *Filler) Take(e *Event, at Sequence) bool {
	most := f.Max
	if most == 0 {
		most = MaxBundleWeight
	}
	weight := f.weight.Add(e.Weight)
	newType := !slices.Contains(f.documentTypes, e.DocumentType)
	tooMany := newType && len(f.documentTypes) == MaxDocumentTypes
	if f.full || f.count > 0 && (!e.SupportsBundling || weight > most || tooMany) {
		f.full = true
		return false
	}
	if f.count == 0 {
		f.first = at
	}
	f.count++
	f.weight, f.last = weight, at
	f.full = !e.SupportsBundling || weight >= most
	if newType {
		f.documentTypes = append(f.documentTypes, e.DocumentType)
	}
	return true
}

// Full reports that no event whatever would go in any more, so that the next
// need not be read.
func (f *Filler) Full() bool { return f.full }

// Fill copies into b what the events that went in amount to.
func (f *Filler) Fill(b *Bundle) {
	b.Count, b.Weight = f.count, f.weight
	b.First, b.Last = f.first, f.last
	b.DocumentTypes = f.documentTypes
}
