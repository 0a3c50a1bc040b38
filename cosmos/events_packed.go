package cosmos

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Version 2 of packed events is used in tails and in the pages of flushes. Its events may belong to several
// Saves, while all events in version 1 (see encodePage) belong to one. So two additional flags state that
// an event differs from its predecessor in a value that all events of a Save share.
//
//	flags     8 the payload is in another object, or does not follow the previous payload;
//	          16 the event was saved at another time
//
// and two additional values follow the document type:
//
//	object    16 bytes, the id in the object's name; and a uvarint, the offset of the payload
//	time      varint, milliseconds since the time of the previous event
//
// The first event is relative to a packedBase.
const tailEventsVersion = 2

const (
	flagOtherObject = 1 << (3 + iota)
	flagOtherTime
)

// A packedBase contains the values to which the first event of a packed sequence is relative.
type packedBase struct {
	folder   string // folder of the drawer's payloads, in version 2 only
	object   string // object with the payload of the first event
	offset   int64
	sequence domain.Sequence
	saved    millis
}

// appendEvents appends events of one drawer in version 2, without a checksum.
func appendEvents(data []byte, events []storedEvent, base packedBase) []byte {
	data = append(data, tailEventsVersion)
	types := make(typeNumbers)
	for i := range events {
		e := &events[i]
		data = appendIdentity(data, &e.Event, &e.digest, e.Sequence-base.sequence)
		base.sequence = e.Sequence
		var flags byte
		if e.SupportsBundling {
			flags |= flagBundling
		}
		if !types.has(e.DocumentType) {
			flags |= flagNewType
		}
		payload := e.PayloadAt
		if !payload.IsZero() {
			flags |= flagPayload
			if payload.Object != base.object || payload.Offset != base.offset {
				flags |= flagOtherObject
			}
		}
		if millisOf(e.Saved) != base.saved {
			flags |= flagOtherTime
		}
		data = types.appendType(append(data, flags), e.DocumentType)
		if flags&flagOtherObject != 0 {
			data = append(data, objectNumber(payload.Object)...)
			data = binary.AppendUvarint(data, uint64(payload.Offset)) //nolint:gosec // not negative
			base.object, base.offset = payload.Object, payload.Offset
		}
		if flags&flagOtherTime != 0 {
			data = binary.AppendVarint(data, int64(millisOf(e.Saved)-base.saved))
			base.saved = millisOf(e.Saved)
		}
		if flags&flagPayload != 0 {
			data = binary.AppendUvarint(data, uint64(payload.Length)) //nolint:gosec // not negative
			data = binary.LittleEndian.AppendUint32(data, payload.Sum)
			base.offset += payload.Length
		}
	}
	return data
}

// objectNumber returns the 16 bytes of the id at the end of an object's name.
func objectNumber(object string) []byte {
	number, ok := idNumber(object[strings.LastIndexByte(object, '/')+1:])
	if !ok {
		panic("the payloads of a tail are in object " + object) // the hub names all objects of a tail by ids
	}
	return number[:]
}

// objectName returns the name of the object in folder whose id has these 16 bytes.
func objectName(folder string, number [16]byte) string { return folder + "/" + idText(number) }

// idNumber returns the 16 bytes of an id that idText has formatted. ok reports whether text is such an id.
func idNumber(text string) (number [16]byte, ok bool) {
	digits := strings.ReplaceAll(text, "-", "")
	if len(digits) != hex.EncodedLen(len(number)) {
		return number, false
	}
	_, err := hex.Decode(number[:], []byte(digits))
	return number, err == nil
}

// idText formats the 16 bytes of an id.
func idText(number [16]byte) string {
	t := hex.EncodeToString(number[:])
	return t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
}

// decodeEvents decodes data, the packed events of the slots from to until-1 in a known version, and yields
// these events of cabinet. data has no checksum at its end.
func decodeEvents(data []byte, from, until int, base packedBase, cabinet domain.CabinetKey, yield func(slot int, e *storedEvent) bool) error {
	d := decoder{b: data}
	version, _ := d.readByte()
	first := base.sequence
	var types []domain.DocumentType
	var e storedEvent
	for slot := from; slot < until; slot++ {
		e = storedEvent{}
		e.Recipient, e.Origin, e.ContentType = cabinet.Recipient, cabinet.Origin, cabinet.ContentType
		d.readInto(e.ID[:])
		d.readInto(e.digest[:])
		base.sequence += domain.Sequence(d.readUvarint()) //nolint:gosec // written from an int64
		e.Sequence = base.sequence
		e.Weight = domain.Weight(d.readUvarint()) //nolint:gosec // written from an int64
		flags, _ := d.readByte()
		if version == eventsVersion {
			flags &^= flagOtherObject | flagOtherTime
		}
		e.SupportsBundling = flags&flagBundling != 0
		if flags&flagNewType != 0 {
			t, err := domain.ParseDocumentType(string(d.readText()))
			if err != nil {
				return errPage
			}
			types = append(types, t)
			e.DocumentType = t
		} else if at := d.readUvarint(); at < uint64(len(types)) {
			e.DocumentType = types[at]
		} else {
			return errPage
		}
		if flags&flagOtherObject != 0 {
			var number [16]byte
			d.readInto(number[:])
			base.object, base.offset = objectName(base.folder, number), int64(d.readUvarint()) //nolint:gosec // written from an int64
		}
		if flags&flagOtherTime != 0 {
			base.saved += millis(d.readVarint())
		}
		e.Saved = base.saved.toTime()
		if flags&flagPayload != 0 {
			length := int64(d.readUvarint()) //nolint:gosec // written from a length
			if length < 0 || base.offset < 0 {
				return errPage
			}
			e.PayloadAt = repository.Section{Object: base.object, Offset: base.offset, Length: length, Sum: d.readUint32()}
			base.offset += length
		}
		if d.failed || e.Weight < 1 || e.Sequence < first {
			return errPage
		}
		if !yield(slot, &e) {
			return nil
		}
	}
	if len(d.b) > 0 {
		return errPage
	}
	return nil
}
