package bus

import (
	"encoding/binary"
	"math"
	"time"
)

// The tables of the store. A key consists of the byte of its table, the id of a queue (in most tables), and the parts
// listed after each constant. Numbers are big-endian, so that keys sort by number.
const (
	tableMeta      = 'a' // format of the store, and counters of the bus
	tableEntity    = 'e' // path -> entityRecord
	tableCounters  = 'c' // queue -> counters
	tableMessage   = 'm' // queue, sequence number -> message
	tableLane      = 'l' // queue, session, sequence number: active messages, in order
	tableHead      = 'h' // queue, sequence number of a session's first active message -> session
	tableDeferred  = 'd' // queue, session, sequence number of a deferred message
	tableSchedule  = 's' // queue, due time, sequence number of a scheduled message
	tableExpiry    = 't' // queue, expiry time, sequence number
	tableDuplicate = 'i' // queue, message id -> end of the duplicate window, sequence number
	tableForget    = 'o' // queue, end of the duplicate window, message id
	tableState     = 'z' // queue, session -> time of change, state
	tableRule      = 'r' // queue, name -> rule
	tablePurge     = 'x' // number of a deleted entity whose data must still be removed
)

// tablesOfQueue are the tables whose keys contain the id of a queue.
var tablesOfQueue = []byte{
	tableCounters, tableMessage, tableLane, tableHead, tableDeferred, tableSchedule,
	tableExpiry, tableDuplicate, tableForget, tableState, tableRule,
}

// A queueID consists of the number of an entity and a queuePart. The number of a deleted entity is not reused until all
// its data is removed.
type queueID [5]byte

func idOf(entity uint32, p queuePart) (id queueID) {
	binary.BigEndian.PutUint32(id[:], entity)
	id[4] = byte(p)
	return id
}

func newKey(table byte, id queueID, size int) []byte {
	k := make([]byte, 0, 1+len(id)+size)
	return append(append(k, table), id[:]...)
}

func messageKey(id queueID, seq int64) []byte {
	return appendNumber(newKey(tableMessage, id, 8), seq)
}

func headKey(id queueID, seq int64) []byte { return appendNumber(newKey(tableHead, id, 8), seq) }

// sessionKey returns a key of tableLane or tableDeferred.
func sessionKey(table byte, id queueID, session string, seq int64) []byte {
	return appendNumber(sessionPrefix(table, id, session), seq)
}

func sessionPrefix(table byte, id queueID, session string) []byte {
	return appendText(newKey(table, id, 2+len(session)+8), session)
}

func stateKey(id queueID, session string) []byte {
	return append(newKey(tableState, id, len(session)), session...)
}

func timeKey(table byte, id queueID, at time.Time, seq int64) []byte {
	return appendNumber(appendNumber(newKey(table, id, 16), at.UnixMilli()), seq)
}

func duplicateKey(id queueID, message string) []byte {
	return append(newKey(tableDuplicate, id, len(message)), message...)
}

func forgetKey(id queueID, at time.Time, message string) []byte {
	return append(appendNumber(newKey(tableForget, id, 8+len(message)), at.UnixMilli()), message...)
}

func ruleKey(id queueID, name string) []byte {
	return append(newKey(tableRule, id, len(name)), name...)
}

func entityKey(name string) []byte { return append([]byte{tableEntity}, name...) }

// timeOf returns the time that a timeKey or forgetKey contains.
func timeOf(k []byte) time.Time { return time.UnixMilli(readNumber(k[6:])).UTC() }

// lastNumber returns the sequence number at the end of a key.
func lastNumber(k []byte) int64 { return readNumber(k[len(k)-8:]) }

// sessionOf returns the session that a sessionKey contains.
func sessionOf(k []byte) string { return string(k[8 : len(k)-8]) }

// appendNumber appends n, which must not be negative.
func appendNumber(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(max(0, n)))
}

func readNumber(b []byte) int64 {
	if len(b) < 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b) & math.MaxInt64)
}

// appendText appends the length of s, as two bytes, and then s. Because of the length, no encoded string is a prefix of
// a different one.
func appendText(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(s))) //nolint:gosec // limited by checkMessage
	return append(b, s...)
}

// endOfPrefix returns the first key after all keys with a prefix.
func endOfPrefix(prefix []byte) []byte {
	end := append([]byte{}, prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil // cannot happen, because no table is 0xff
}
