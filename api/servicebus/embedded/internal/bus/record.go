package bus

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

var errRecord = fmt.Errorf("%w: a stored message cannot be read", disk.ErrDamaged)

// recordVersion is the first byte of a stored message. The numbers of the message follow, then its strings and
// sections, each with its length.
const recordVersion = 1

const (
	flagSession = 1 << iota
	flagRewritten
)

func encodeMessage(m *Message) []byte {
	b := make([]byte, 0, 160+len(m.ApplicationProperties)+len(m.Sections))
	flags := byte(0)
	session := ""
	if m.SessionID != nil {
		flags |= flagSession
		session = *m.SessionID
	}
	if m.Rewritten {
		flags |= flagRewritten
	}
	b = append(b, recordVersion, flags)
	for _, n := range []int64{
		m.SequenceNumber, m.EnqueuedSequenceNumber, toMillis(m.EnqueuedAt), toMillis(m.ExpiresAt), toMillis(m.ScheduledFor),
		int64(m.TTL), int64(m.DeliveryCount), int64(m.State),
	} {
		b = binary.AppendVarint(b, n)
	}
	for _, s := range []string{
		session, m.ID, m.PartitionKey, m.Subject, m.To, m.ReplyTo, m.ReplyToSessionID, m.CorrelationID,
		m.ContentType, m.DeadLetterSource,
	} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(len(m.ApplicationProperties)))
	b = append(b, m.ApplicationProperties...)
	return append(b, m.Sections...)
}

// decodeMessage decodes a stored message. The message shares the memory of b.
func decodeMessage(b []byte) (Message, error) {
	if len(b) > 0 && b[0] > recordVersion {
		return Message{}, fmt.Errorf("%w: a message has version %d, this version reads %d", disk.ErrFormat, b[0], recordVersion)
	}
	if len(b) < 2 || b[0] != recordVersion {
		return Message{}, errRecord
	}
	flags := b[1]
	r := recordReader{rest: b[2:]}
	var m Message
	m.SequenceNumber, m.EnqueuedSequenceNumber = r.readNumber(), r.readNumber()
	m.EnqueuedAt, m.ExpiresAt, m.ScheduledFor = r.readTime(), r.readTime(), r.readTime()
	m.TTL = time.Duration(r.readNumber())
	m.DeliveryCount, m.State = uint32(r.readNumber()), State(r.readNumber()) //nolint:gosec // as they were encoded
	session := r.readText()
	if flags&flagSession != 0 {
		m.SessionID = &session
	}
	m.Rewritten = flags&flagRewritten != 0
	m.ID, m.PartitionKey, m.Subject, m.To = r.readText(), r.readText(), r.readText(), r.readText()
	m.ReplyTo, m.ReplyToSessionID, m.CorrelationID = r.readText(), r.readText(), r.readText()
	m.ContentType, m.DeadLetterSource = r.readText(), r.readText()
	m.ApplicationProperties = r.readBytes()
	m.Sections = r.rest
	if r.failed {
		return Message{}, errRecord
	}
	return m, nil
}

type recordReader struct {
	rest   []byte
	failed bool
}

func (r *recordReader) readNumber() int64 {
	n, size := binary.Varint(r.rest)
	if size <= 0 {
		r.failed = true
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *recordReader) readTime() time.Time {
	if n := r.readNumber(); n != 0 {
		return time.UnixMilli(n).UTC()
	}
	return time.Time{}
}

func (r *recordReader) readBytes() []byte {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > uint64(len(r.rest)-size) { //nolint:gosec // size is at most the length
		r.failed = true
		return nil
	}
	b := r.rest[size : size+int(n)] //nolint:gosec // checked above
	r.rest = r.rest[size+int(n):]   //nolint:gosec // checked above
	return b[:len(b):len(b)]
}

func (r *recordReader) readText() string { return string(r.readBytes()) }

func toMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
