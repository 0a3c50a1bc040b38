package domain

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"time"
)

// An ObjectRow is a stored event of an object. The row of an event without sequencer has a
// generated place: behind the row with sequencer Base, and ordered by time and number among other
// such rows. See object_place.go.
type ObjectRow struct {
	ObjectEvent
	Base Sequencer     // for a generated place: sequencer of the row that it follows; null: before all native rows
	Rank PlacementRank // rank of a generated place
	// After is the time of the row over others that this row follows. It keeps this row below later
	// rows over others. It is zero if this row follows no row over others, or if that time is
	// unknown.
	After      time.Time
	Number     int64  // number of the generated place, unique in the object, from 1; 0: a native row
	Duplicates int64  // number of times that the event was delivered after the first delivery
	Reordered  int64  // see object_pair.go
	WriteID    string // id of the update that stored the row
}

// A PlacementRank orders the rows that have the same sequencer as their base.
type PlacementRank int

// The ranks of the rows at one base, in ascending order.
const (
	NativeRank PlacementRank = iota // the native row whose sequencer is the base
	BehindRow                       // a row behind a native row of the same version
	OverRow                         // a row over a native row of any version, or a later row of the same version behind it
)

// IsGenerated reports whether the place of the row was generated.
func (r *ObjectRow) IsGenerated() bool { return r.Number > 0 }

// IsAnchor reports whether rows of the same version may have generated places behind r.
func (r *ObjectRow) IsAnchor() bool { return !r.IsGenerated() || r.isOver() }

// An ObjectOrder is the place of a row among the rows of its object. Compare compares the fields in
// the order of their declaration. The fields are exported only for stores, which copy them.
type ObjectOrder struct {
	Base      string
	Rank      PlacementRank
	After     int64 // with OverRow: time of this row over others, or of the one that this row follows
	Time      int64 // time of a row with a generated place, in microseconds; an unknown time sorts first
	Number    int64
	Type      ObjectEventType // Type, Version and Sequencer are set only for native rows
	Version   VersionID
	Sequencer string
}

// Order returns the place of the row among the rows of its object.
func (r *ObjectRow) Order() ObjectOrder {
	if !r.IsGenerated() {
		return ObjectOrder{Base: r.Sequencer.order, Type: r.Type, Version: r.Version, Sequencer: r.Sequencer.identity()}
	}
	o := ObjectOrder{Base: r.Base.order, Rank: r.Rank, Time: orderedTime(r.Time), Number: r.Number}
	if o.Rank == OverRow {
		o.After = o.Time
		if !r.After.IsZero() {
			o.After = orderedTime(r.After)
		}
	}
	return o
}

func orderedTime(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return t.UnixMicro()
}

// Compare returns -1, 0 or +1. It returns 0 only for the order of the same row.
func (o ObjectOrder) Compare(p ObjectOrder) int {
	if c := strings.Compare(o.Base, p.Base); c != 0 {
		return c
	}
	return cmp.Or(
		cmp.Compare(o.Rank, p.Rank), cmp.Compare(o.After, p.After), cmp.Compare(o.Time, p.Time), cmp.Compare(o.Number, p.Number),
		cmp.Compare(o.Type, p.Type), cmp.Compare(o.Version.s, p.Version.s), cmp.Compare(o.Sequencer, p.Sequencer),
	)
}

// CompareObjectRows orders the rows of one object.
func CompareObjectRows(a, b ObjectRow) int { return a.Order().Compare(b.Order()) }

// paddedSequencer is the length to which the original system pads the base of a generated
// sequencer.
const paddedSequencer = 30

// SequencerText returns the sequencer as the API returns it. For a native row, this is the store's
// text. For a generated place, it is a text in the form of the original system. It ends with the
// number in hexadecimal digits, the lowest byte first, so the texts do not sort in the order of the
// rows.
func (r *ObjectRow) SequencerText() string {
	if !r.IsGenerated() {
		return r.Sequencer.text
	}
	base := r.Base.text
	if n := len(base); n < paddedSequencer {
		base += strings.Repeat("0", paddedSequencer-n)
	}
	var number [8]byte
	binary.LittleEndian.PutUint64(number[:], uint64(r.Number)) //nolint:gosec // numbers begin at 1
	return base + "-" + hex.EncodeToString(number[:])
}

// size returns the approximate number of bytes that the row occupies in a document.
func (r *ObjectRow) size() int {
	const names = 200 // bytes of field names, numbers and times
	return names + len(r.Version.s) + len(r.Sequencer.text) + len(r.Base.text) + len(r.Carrier.Message) + len(r.WriteID) +
		len(r.ETag) + len(r.SHA256) + len(r.StorageClass) + len(r.ArchiveStatus) + len(r.Reason) + len(r.IngestID) + len(r.Attributes) + len(r.Patches)
}
