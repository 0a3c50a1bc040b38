package hub

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"strconv"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A jsonFramer writes the parts of a body around its payloads. A body is a JSON array with one element per line: the
// events in content mode manifest, the payloads in content mode inline.
//
// This format must not change while bundles are open that an older version opened, because their length and digest are
// stored.
type jsonFramer struct {
	mode  domain.ContentMode
	lines int  // number of lines begun
	open  bool // true if the end of the last line, after its payload, is missing

	// The fields that consecutive events have in common, and their JSON text.
	cabinet      domain.CabinetKey
	cabinetText  []byte
	document     domain.DocumentType
	documentText []byte
}

// appendEvent appends the text in front of the payload of e. If e has no payload, it appends the whole line.
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

// appendFields appends the fields of e as a JSON object without its closing brace. It may quote words as Go does,
// because the words of package domain are printable ASCII.
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

// A bodyDigest computes the length and digest of a body. It reads no payloads: the digest includes only their lengths
// and checksums.
type bodyDigest struct {
	frame  jsonFramer
	hash   hash.Hash
	length int64
	text   []byte // text that is not in hash yet
}

// newBodyDigest returns a bodyDigest for a bundle. The digest includes the id, so it differs between bundles.
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

// measuredBody returns the length and digest after all events were added.
func (m *bodyDigest) measuredBody() domain.Body {
	before := len(m.text)
	m.text = m.frame.appendEnd(m.text)
	m.hash.Write(m.text)
	body := domain.Body{Length: m.length + int64(len(m.text)-before)}
	copy(body.Digest[:], m.hash.Sum(nil))
	return body
}
