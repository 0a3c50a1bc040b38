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
// generated place: behind Base, ordered by time and number; see object_place.go.
type ObjectRow struct {
	ObjectEvent
	Base Sequencer     // sequencer of the base of a generated place; null: before all native rows
	Rank PlacementRank // rank of a generated place
	// After is the time of the row over others that this row follows. It keeps this row below
	// later rows over others. It is zero if this row follows no row over others, or if the time
	// of the followed row is unknown.
	After      time.Time
	Number     int64  // number of the generated place in the object, from 1; 0: a native row
	Duplicates int64  // number of deliveries of the event after the first
	Reordered  int64  // see object_pair.go
	WriteID    string // id of the update that stored the row
}

// A PlacementRank orders the rows that have the same sequencer as their base.
type PlacementRank int

// The ranks at one base.
const (
	NativeRank PlacementRank = iota // the row with the sequencer itself
	BehindRow                       // a row behind a native row of the same version
	OverRow                         // a row over a native row of any version, or a later row of the same version behind it
)

// IsGenerated reports whether the place of the row was generated.
func (r *ObjectRow) IsGenerated() bool { return r.Number > 0 }

// IsAnchor reports whether rows of the same version may have generated places behind r.
func (r *ObjectRow) IsAnchor() bool { return !r.IsGenerated() || r.isOver() }

// An ObjectOrder is the place of a row among all rows of its object. Compare compares the
// fields in the order of their declaration. The fields are exported for stores, which only copy
// them.
type ObjectOrder struct {
	Base      string
	Rank      PlacementRank
	After     int64 // with OverRow: the time of the row over others, also in the rows that follow it
	Time      int64 // time of a row with a generated place, in microseconds; an unknown time is the lowest
	Number    int64
	Type      ObjectEventType // Type, Version and Sequencer are only set for native rows
	Version   VersionID
	Sequencer string
}

// Order returns the place of the row.
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

// Compare returns -1, 0 or +1. Only a row and itself compare as 0.
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

// paddedSequencer is the length to which the original pads the base of a generated sequencer.
const paddedSequencer = 30

// SequencerText returns the sequencer in the form of the API: the text of the store or, for a
// generated place, a text in the form of the original system. This form ends with the number in
// hexadecimal digits, the lowest byte first, so texts do not sort in the order of the rows.
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

// size returns the approximate number of bytes that the row takes in a document.
func (r *ObjectRow) size() int {
	const names = 200 // bytes of field names, numbers and times
	return names + len(r.Version.s) + len(r.Sequencer.text) + len(r.Base.text) + len(r.Carrier.Message) + len(r.WriteID) +
		len(r.ETag) + len(r.SHA256) + len(r.StorageClass) + len(r.ArchiveStatus) + len(r.Reason) + len(r.IngestID) + len(r.Attributes) + len(r.Patches)
}
