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

// A drawerPage contains the events of consecutive slots of a drawer. One Save, or one flush of a tail,
// writes the page, which is never modified.
type drawerPage struct {
	ID            string          `json:"id"`
	PartitionKey  string          `json:"partitionKey"` // id of the drawer
	Intent        string          `json:"intent"`       // id of the Save or flush that wrote the page
	Slot          int             `json:"slot"`
	Until         int             `json:"until"` // number of the first slot after the page
	FirstSequence domain.Sequence `json:"firstSequence"`
	Payloads      string          `json:"payloads,omitempty"` // name of the object in the content store that contains the payloads of the page
	PayloadsFrom  int64           `json:"payloadsFrom,omitempty"`
	Saved         millis          `json:"saved,omitempty"` // time of the Save of the oldest event in the page
	Events        packed          `json:"events"`          // see encodePage
	Saves         packed          `json:"saves,omitempty"` // spans of the Saves that stored the events; encoded as in save_traces.go
	Sum           uint32          `json:"sum,omitempty"`   // result of computeChecksum; missing in the pages of older versions
	client.FormatNumber
}

func pageID(slot int) string { return fmt.Sprintf("page-%05d", slot) }

// Cosmos DB charges for bytes, and a full bundle contains up to 51,200 events. So the events of a page
// are encoded in one byte string of about 40 bytes for each event, which omits the values that all events
// of the cabinet share. The string begins with a version byte, followed for each event by:
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
// The last 4 bytes are the CRC-32C of all preceding bytes.
const eventsVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	flagBundling = 1 << iota
	flagNewType
	flagPayload
)

// A numberedEvent is an event with the number and the digest that a Save will store.
type numberedEvent struct {
	*domain.Event
	digest   domain.Digest
	sequence domain.Sequence
	save     *domain.TraceContext // span that saves the event; nil if spans are not stored
}

// maxPageBytes is the page size with the lowest cost for each KB: 64 KB when encoded as base64.
const maxPageBytes = 48 << 10

// encodePage encodes events up to the size limit of a page. n is the number of encoded events.
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

// appendIdentity appends the values with which each event begins in every version of the format: id,
// digest, difference to the number of the previous event, and weight.
func appendIdentity(data []byte, e *domain.Event, digest *domain.Digest, distance domain.Sequence) []byte {
	data = append(data, e.ID[:]...)
	data = append(data, digest[:]...)
	data = binary.AppendUvarint(data, uint64(distance)) //nolint:gosec // ascending
	return binary.AppendUvarint(data, uint64(e.Weight)) //nolint:gosec // at least 1
}

// typeNumbers maps each document type that this page contains so far to its index.
type typeNumbers map[domain.DocumentType]int

func (n typeNumbers) has(t domain.DocumentType) bool {
	_, found := n[t]
	return found
}

// appendType appends the index of t. If t is new in this page, it also appends the text of t.
func (n typeNumbers) appendType(data []byte, t domain.DocumentType) []byte {
	if at, found := n[t]; found {
		return binary.AppendUvarint(data, uint64(at)) //nolint:gosec // an index
	}
	n[t] = len(n)
	text := t.String()
	data = binary.AppendUvarint(data, uint64(len(text)))
	return append(data, text...)
}

// packed is a byte string that is stored as base64 in JSON, like []byte. It is decoded in one pass:
// base64 contains no escaped characters, and most bytes that a Peek reads are packed.
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

// computeChecksum returns the CRC-32C of the members that determine the numbers and slots of the events,
// except Events, which contains its own checksum. Without it, the events could be decoded with wrong
// numbers, for example after a change of FirstSequence.
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
	const least = len(domain.EventID{}) + len(domain.Digest{}) + 4 // every other value has at least one byte
	return len(p.Events) / least
}

// decodeEvents yields the events of p in order. They belong to cabinet. A yielded event is valid only
// until yield returns, because the memory is reused.
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

// firstEventBase returns the values that the first event of p is encoded relative to.
func (p *drawerPage) firstEventBase() packedBase {
	return packedBase{
		folder: payloadFolder(p.PartitionKey), object: p.Payloads, offset: p.PayloadsFrom,
		sequence: p.FirstSequence, saved: p.Saved,
	}
}

// A decoder reads values from the start of b and removes them from b. After a failure, it returns zeros.
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

// readVarint decodes an integer in the format of binary.AppendVarint.
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
