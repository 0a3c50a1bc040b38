package hub

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"strconv"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A jsonFramer composes the text around the payloads of a body: a JSON array with one element
// in each line. In content mode manifest the elements are the events, in content mode inline
// their payloads.
//
// The form of a body must not change while bundles are open that an older version opened,
// because their length and digest are stored.
type jsonFramer struct {
	mode  domain.ContentMode
	lines int  // lines that were begun
	open  bool // the last line still needs its end, after the payload

	// The fields that neighbouring events have in common, and their text.
	cabinet      domain.CabinetKey
	cabinetText  []byte
	document     domain.DocumentType
	documentText []byte
}

// appendEvent appends the text up to the payload of e, or the whole line of an event without
// payload.
func (f *jsonFramer) appendEvent(b []byte, e *repository.StoredEvent) []byte {
	b = f.closeEvent(b)
	if f.lines == 0 {
		b = append(b, "[\n"...)
	} else {
		b = append(b, ",\n"...)
	}
	f.lines++
	payload := !e.PayloadAt.IsZero()
	switch {
	case f.mode == domain.Inline && !payload:
		b = append(b, "null"...)
	case f.mode != domain.Inline && payload:
		b = append(f.appendFields(b, e), `,"payload":`...)
		f.open = true
	case f.mode != domain.Inline:
		b = append(f.appendFields(b, e), '}')
	}
	return b
}

// appendEnd appends the text after the last event.
func (f *jsonFramer) appendEnd(b []byte) []byte { return append(f.closeEvent(b), "\n]\n"...) }

func (f *jsonFramer) closeEvent(b []byte) []byte {
	if f.open {
		f.open = false
		b = append(b, '}')
	}
	return b
}

// appendFields appends the fields of e as an open JSON object. The words of package
// domain are printable ASCII, so quoting them for Go quotes them for JSON.
func (f *jsonFramer) appendFields(b []byte, e *repository.StoredEvent) []byte {
	if cabinet := e.Cabinet(); f.cabinetText == nil || f.cabinet != cabinet {
		f.cabinet = cabinet
		t := append(f.cabinetText[:0], `","recipient":"`...)
		t = append(t, e.Recipient.String()...)
		t = append(t, `","origin":"`...)
		t = append(t, e.Origin.String()...)
		t = append(t, `","contentType":`...)
		f.cabinetText = strconv.AppendQuote(t, e.ContentType.String())
	}
	if f.documentText == nil || f.document != e.DocumentType {
		f.document = e.DocumentType
		t := append(f.documentText[:0], `,"documentType":`...)
		t = strconv.AppendQuote(t, e.DocumentType.String())
		f.documentText = append(t, `,"supportsBundling":`...)
	}
	b = append(b, `{"id":"`...)
	b = e.ID.Append(b)
	b = append(b, f.cabinetText...)
	b = append(b, f.documentText...)
	b = strconv.AppendBool(b, e.SupportsBundling)
	b = append(b, `,"weight":`...)
	b = strconv.AppendInt(b, int64(e.Weight), 10)
	b = append(b, `,"sequence":`...)
	return strconv.AppendInt(b, int64(e.Sequence), 10)
}

// A bodyDigest computes the length and the digest of a body from its events, without reading
// payloads: in the digest, a payload is represented by its length and checksum.
type bodyDigest struct {
	frame  jsonFramer
	hash   hash.Hash
	length int64
	text   []byte // text that was not written to hash yet
}

// newBodyDigest returns a bodyDigest for bundle id. The id is a part of the digest, so two bundles
// always have different digests.
func newBodyDigest(id domain.BundleID, mode domain.ContentMode) *bodyDigest {
	m := &bodyDigest{frame: jsonFramer{mode: mode}, hash: sha256.New()}
	m.hash.Write(id[:])
	return m
}

func (m *bodyDigest) add(e *repository.StoredEvent) {
	before := len(m.text)
	m.text = m.frame.appendEvent(m.text, e)
	m.length += int64(len(m.text)-before) + e.PayloadAt.Length
	if !e.PayloadAt.IsZero() {
		m.text = binary.AppendVarint(m.text, e.PayloadAt.Length)
		m.text = binary.BigEndian.AppendUint32(m.text, e.PayloadAt.Sum)
	}
	const enough = 8 << 10
	if len(m.text) >= enough {
		m.hash.Write(m.text)
		m.text = m.text[:0]
	}
}

// measuredBody returns the length and the digest, after all events were added.
func (m *bodyDigest) measuredBody() domain.Body {
	before := len(m.text)
	m.text = m.frame.appendEnd(m.text)
	m.hash.Write(m.text)
	body := domain.Body{Length: m.length + int64(len(m.text)-before)}
	copy(body.Digest[:], m.hash.Sum(nil))
	return body
}
