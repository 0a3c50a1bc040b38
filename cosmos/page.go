package cosmos

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A drawerPage has the events of consecutive slots of a drawer. One Save or one flush of a tail writes the
// page; no write changes it.
type drawerPage struct {
	ID            string          `json:"id"`
	PartitionKey  string          `json:"partitionKey"` // the id of the drawer
	Intent        string          `json:"intent"`       // id of the Save or flush that wrote the page
	Slot          int             `json:"slot"`
	Until         int             `json:"until"` // the slot after the page
	FirstSequence domain.Sequence `json:"firstSequence"`
	Payloads      string          `json:"payloads,omitempty"` // name of the object with the payloads in the content store
	PayloadsFrom  int64           `json:"payloadsFrom,omitempty"`
	Saved         millis          `json:"saved,omitempty"` // the time of the first Save of these events
	Events        packed          `json:"events"`          // see encodePage
	Saves         packed          `json:"saves,omitempty"` // the spans that saved the events; see save_traces.go
	Sum           uint32          `json:"sum,omitempty"`   // see computeChecksum; missing in the pages of older versions
	client.FormatNumber
}

func pageID(slot int) string { return fmt.Sprintf("page-%05d", slot) }

// Cosmos charges for bytes, and a full bundle has 51,200 events. So the events of a page are encoded in one
// byte string of about 40 bytes for each event, without the values that are the same for the whole
// cabinet. After a version byte, the string has for each event:
//
//	id        16 bytes
//	digest    16 bytes
//	gap       uvarint   difference to the previous sequence number; for the first event, to that of the page
//	weight    uvarint
//	flags     1 byte    1 supports bundling, 2 a new document type follows, 4 has a payload
//	type      uvarint   index of the document type among those seen in this page; if new, its length and its text
//	payload   uvarint   length; only if there is one. Payloads follow each other in the page's object.
//	sum       4 bytes   CRC-32C of the payload; only if there is one
//
// and at the end 4 bytes, the CRC-32C of everything before.
const eventsVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	flagBundling = 1 << iota
	flagNewType
	flagPayload
)

// A numberedEvent is an event to which a plan has assigned a number and a slot.
type numberedEvent struct {
	*domain.Event
	digest   domain.Digest
	sequence domain.Sequence
	save     *domain.TraceContext // the span that saves the event; nil if spans are not stored
}

// maxPageBytes is the size of a page at which Cosmos charges least for a KB: 64 KB as base64.
const maxPageBytes = 48 << 10

// encodePage encodes the first n events, as many as fit into a page.
func encodePage(events []numberedEvent) (data []byte, n int) {
	data = make([]byte, 0, min(maxPageBytes, 64*len(events)+64))
	data = append(data, eventsVersion)
	types := make(typeNumbers)
	last := events[0].sequence
	for _, e := range events {
		if len(data) > maxPageBytes-256 {
			break
		}
		data = appendIdentity(data, e.Event, &e.digest, e.sequence-last)
		last = e.sequence
		var flags byte
		if e.SupportsBundling {
			flags |= flagBundling
		}
		if !types.has(e.DocumentType) {
			flags |= flagNewType
		}
		if e.Payload != nil {
			flags |= flagPayload
		}
		data = types.appendType(append(data, flags), e.DocumentType)
		if e.Payload != nil {
			data = binary.AppendUvarint(data, uint64(len(e.Payload)))
			data = binary.LittleEndian.AppendUint32(data, repository.SumOf(e.Payload))
		}
		n++
	}
	return binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, castagnoli)), n
}

// appendIdentity appends the values with which an event begins in every version of the format: id, digest,
// the distance from the number of the previous event, and weight.
func appendIdentity(data []byte, e *domain.Event, digest *domain.Digest, distance domain.Sequence) []byte {
	data = append(data, e.ID[:]...)
	data = append(data, digest[:]...)
	data = binary.AppendUvarint(data, uint64(distance)) //nolint:gosec // ascending
	return binary.AppendUvarint(data, uint64(e.Weight)) //nolint:gosec // at least 1
}

// typeNumbers maps each document type that was encoded so far to its index.
type typeNumbers map[domain.DocumentType]int

func (n typeNumbers) has(t domain.DocumentType) bool {
	_, found := n[t]
	return found
}

// appendType appends the index of t. The first time, it also appends the text of t.
func (n typeNumbers) appendType(data []byte, t domain.DocumentType) []byte {
	if at, found := n[t]; found {
		return binary.AppendUvarint(data, uint64(at)) //nolint:gosec // an index
	}
	n[t] = len(n)
	text := t.String()
	data = binary.AppendUvarint(data, uint64(len(text)))
	return append(data, text...)
}

// packed is a byte string that is base64 in JSON, like []byte. It is decoded in one pass, because base64 has
// no characters to unescape, and most bytes that a Peek reads are packed.
type packed []byte

// UnmarshalJSON implements json.Unmarshaler.
func (p *packed) UnmarshalJSON(text []byte) error {
	if n := len(text); n < 2 || text[0] != '"' || bytes.IndexByte(text, '\\') >= 0 {
		return json.Unmarshal(text, (*[]byte)(p))
	}
	*p = make([]byte, base64.StdEncoding.DecodedLen(len(text)-2))
	n, err := base64.StdEncoding.Decode(*p, text[1:len(text)-1])
	*p = (*p)[:n]
	return err
}

// computeChecksum returns the CRC-32C of those members beside Events that determine the numbers and slots
// of the events. The checksum in Events does not cover these members: with another first number, for
// example, the events would be decoded with wrong numbers.
func (p *drawerPage) computeChecksum() uint32 {
	text := fmt.Sprintf("%s|%s|%d|%d|%d|%d|%d|%s", p.ID, p.PartitionKey, p.Slot, p.Until, p.FirstSequence, p.Saved, p.PayloadsFrom, p.Payloads)
	return crc32.Checksum([]byte(text), castagnoli)
}

var errPage = errors.New("the events of a page cannot be decoded")

// A storedEvent is an event that was read from a page or a tail.
type storedEvent struct {
	repository.StoredEvent
	digest domain.Digest
}

// maxEvents returns an upper bound for the number of events in p.
func (p *drawerPage) maxEvents() int {
	const least = len(domain.EventID{}) + len(domain.Digest{}) + 4 // the other values take a byte each
	return len(p.Events) / least
}

// decodeEvents yields the events of p in order; they belong to cabinet. A yielded event is valid only
// during the call of yield, because the next event uses the same memory.
func (p *drawerPage) decodeEvents(cabinet domain.CabinetKey, yield func(slot int, e *storedEvent) bool) error {
	end := len(p.Events) - 4
	if end < 0 || p.Slot < 0 || p.Until-p.Slot > p.maxEvents() || crc32.Checksum(p.Events[:end], castagnoli) != binary.LittleEndian.Uint32(p.Events[end:]) {
		return errPage
	}
	if p.Sum != 0 && p.Sum != p.computeChecksum() {
		return errPage
	}
	data := p.Events[:end]
	switch {
	case len(data) > 0 && data[0] > tailEventsVersion:
		return domain.Errorf(domain.NewerFormat, "the events of page %s in drawer %s have version %d, and this version of the hub knows versions up to %d: upgrade this node, or use one of the newer version",
			p.ID, p.PartitionKey, data[0], tailEventsVersion)
	case len(data) == 0 || data[0] < eventsVersion:
		return errPage
	}
	return decodeEvents(data, p.Slot, p.Until, p.firstEventBase(), cabinet, yield)
}

// firstEventBase returns the values to which the first event of p is relative.
func (p *drawerPage) firstEventBase() packedBase {
	return packedBase{
		folder: payloadFolder(p.PartitionKey), object: p.Payloads, offset: p.PayloadsFrom,
		sequence: p.FirstSequence, saved: p.Saved,
	}
}

// A decoder reads values from b and removes them. After a failure it returns zeros.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) readByte() (byte, error) {
	if len(d.b) == 0 {
		d.failed = true
		return 0, errPage
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v, nil
}

func (d *decoder) readInto(to []byte) {
	if len(d.b) < len(to) {
		d.failed, d.b = true, nil
		return
	}
	copy(to, d.b)
	d.b = d.b[len(to):]
}

func (d *decoder) readUvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.failed, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

// readVarint decodes an integer that binary.AppendVarint has appended.
func (d *decoder) readVarint() int64 {
	u := d.readUvarint()
	v := int64(u >> 1)
	if u&1 != 0 {
		return ^v
	}
	return v
}

func (d *decoder) readUint32() uint32 {
	var b [4]byte
	d.readInto(b[:])
	return binary.LittleEndian.Uint32(b[:])
}

func (d *decoder) readText() []byte {
	n := d.readUvarint()
	if n > uint64(len(d.b)) {
		d.failed, d.b = true, nil
		return nil
	}
	t := d.b[:n]
	d.b = d.b[n:]
	return t
}
