package domain

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A SpilledQuery asks for spilled rows of an object. Select defines which rows are the answer.
type SpilledQuery struct {
	Kind    SpilledQueryKind
	ID      ObjectRowID // the row id of a query of kind SpilledByID
	Version VersionID   // of SpilledHead, SpilledEarlier, SpilledNeighbors, SpilledAnchor, SpilledRecent
	Order   ObjectOrder // of SpilledNeighbors, SpilledOld
	Limit   int         // limit for the rows of a query of kind SpilledLive
	Time    int64       // of SpilledEarlier, SpilledAnchor, SpilledOver, SpilledGenerated, SpilledOld, SpilledRecent: microseconds
}

// SpilledQueryKind says what a query asks for.
type SpilledQueryKind int

// The kinds of queries.
const (
	SpilledByID      SpilledQueryKind = iota + 1 // the row of an event
	SpilledLive                                  // the highest live rows among the newest rows of all versions, up to Limit
	SpilledHead                                  // a version's newest row
	SpilledEarlier                               // a version's newest row except those of SpilledGenerated
	SpilledNeighbors                             // a version's native rows just below and just above an order
	SpilledAnchor                                // a version's row, not later than a time, behind which a null sequencer is placed
	SpilledOver                                  // a row of any version, not later than a time, over which a row over others is placed
	SpilledGenerated                             // rows with a generated place later than a time
	SpilledOld                                   // the lowest rows above an order that are earlier than a time, up to MaxForgotten
	SpilledRecent                                // a version's newest row whose time is unknown or not before a time
)

// SpilledAnswers have the rows that answer queries.
type SpilledAnswers map[SpilledQuery][]ObjectRow

// Select returns the rows that answer the query among all spilled rows of the object.
func (q SpilledQuery) Select(rows []ObjectRow) []ObjectRow {
	switch q.Kind {
	case SpilledByID:
		return selectRows(rows, func(r *ObjectRow) bool { return r.ID() == q.ID })
	case SpilledLive:
		var heads []ObjectRow
		newest := make(map[VersionID]int)
		for _, r := range rows {
			if i, ok := newest[r.Version]; !ok {
				newest[r.Version] = len(heads)
				heads = append(heads, r)
			} else if CompareObjectRows(heads[i], r) < 0 {
				heads[i] = r
			}
		}
		heads = selectRows(heads, func(r *ObjectRow) bool { return r.IsLive() })
		slices.SortFunc(heads, func(a, b ObjectRow) int { return CompareObjectRows(b, a) })
		return heads[:min(len(heads), q.Limit)]
	case SpilledHead:
		return highest(selectRows(rows, func(r *ObjectRow) bool { return r.Version == q.Version }), CompareObjectRows)
	case SpilledEarlier:
		return highest(selectRows(rows, func(r *ObjectRow) bool { return r.Version == q.Version && !q.isGeneratedLater(r) }), CompareObjectRows)
	case SpilledNeighbors:
		natives := func(side int) []ObjectRow {
			return selectRows(rows, func(r *ObjectRow) bool {
				return r.Version == q.Version && !r.IsGenerated() && r.Order().Compare(q.Order) == side
			})
		}
		above := highest(natives(+1), func(a, b ObjectRow) int { return CompareObjectRows(b, a) })
		return append(highest(natives(-1), CompareObjectRows), above...)
	case SpilledAnchor:
		e := &ObjectEvent{Version: q.Version, Type: ObjectCreated}
		return q.selectAnchor(rows, e)
	case SpilledOver:
		return q.selectAnchor(rows, &ObjectEvent{Type: ObjectDeleted, Marker: true})
	case SpilledGenerated:
		return selectRows(rows, q.isGeneratedLater)
	case SpilledOld:
		old := selectRows(rows, func(r *ObjectRow) bool { return q.isOld(r) && r.Order().Compare(q.Order) > 0 })
		slices.SortFunc(old, CompareObjectRows)
		return old[:min(len(old), MaxForgotten)]
	case SpilledRecent:
		return highest(selectRows(rows, func(r *ObjectRow) bool { return r.Version == q.Version && !q.isOld(r) }), CompareObjectRows)
	}
	return nil
}

func (q SpilledQuery) isOld(r *ObjectRow) bool {
	return !r.Time.IsZero() && orderedTime(r.Time) < q.Time
}

func (q SpilledQuery) isGeneratedLater(r *ObjectRow) bool {
	return r.IsGenerated() && orderedTime(r.Time) > q.Time
}

// selectAnchor returns the row that has the highest placement for e.
func (q SpilledQuery) selectAnchor(rows []ObjectRow, e *ObjectEvent) []ObjectRow {
	return highest(selectRows(rows, func(r *ObjectRow) bool {
		_, anchors := placementBehind(r, e)
		return anchors && orderedTime(r.Time) <= q.Time
	}), func(a, b ObjectRow) int {
		p, _ := placementBehind(&a, e)
		q, _ := placementBehind(&b, e)
		return cmp.Or(p.compare(q), CompareObjectRows(a, b))
	})
}

// lastTime returns the time of a query for rows that are not later than t. If t is unknown, the
// query finds no rows.
func lastTime(t time.Time) int64 {
	if t.IsZero() {
		return math.MaxInt64
	}
	return t.UnixMicro()
}

func selectRows(rows []ObjectRow, has func(r *ObjectRow) bool) (selected []ObjectRow) {
	for i := range rows {
		if has(&rows[i]) {
			selected = append(selected, rows[i])
		}
	}
	return selected
}

func highest(rows []ObjectRow, compare func(a, b ObjectRow) int) []ObjectRow {
	if len(rows) == 0 {
		return nil
	}
	return []ObjectRow{slices.MaxFunc(rows, compare)}
}

// A spilledRow is a row below the floor that an update has read or added.
type spilledRow struct {
	row     ObjectRow
	existed bool // it is stored
	changed bool
	removed bool // it is in the object now
}

// spilledRows are the rows below the floor that an update has read or added.
type spilledRows struct {
	answers  SpilledAnswers
	queries  []SpilledQuery // without an answer
	rows     map[ObjectRowID]*spilledRow
	versions map[VersionID]struct{}     // versions whose newest spilled row may have changed
	recent   map[VersionID]SpilledQuery // for versions whose other spilled rows are forgotten: the query for the newest spilled row
	later    SpilledQuery               // of SpilledGenerated, with the earliest time; only rows that answer it move
}

// lookUp returns the rows that answer a query, with the changes of this update. If there is no
// answer yet, it records the query and returns false.
func (s *spilledRows) lookUp(q SpilledQuery) ([]*spilledRow, bool) {
	if _, answered := s.load(q); !answered {
		return nil, false
	}
	present := make([]ObjectRow, 0, len(s.rows))
	for _, known := range s.rows {
		if !known.removed {
			present = append(present, known.row)
		}
	}
	selected := q.Select(present)
	found := make([]*spilledRow, len(selected))
	for i := range selected {
		found[i] = s.rows[selected[i].ID()]
	}
	return found, true
}

// load returns the rows that answer a query as they are stored.
func (s *spilledRows) load(q SpilledQuery) ([]ObjectRow, bool) {
	answer, answered := s.answers[q]
	if !answered {
		if !slices.Contains(s.queries, q) {
			s.queries = append(s.queries, q)
		}
		return nil, false
	}
	if s.rows == nil {
		s.rows = make(map[ObjectRowID]*spilledRow)
	}
	for _, r := range answer {
		if s.rows[r.ID()] == nil {
			s.rows[r.ID()] = &spilledRow{row: r, existed: true}
		}
	}
	return answer, true
}

// put adds a row, or replaces it.
func (s *spilledRows) put(row ObjectRow) {
	if s.rows == nil {
		s.rows = make(map[ObjectRowID]*spilledRow)
	}
	id := row.ID()
	known := s.rows[id]
	if known == nil {
		known = &spilledRow{}
		s.rows[id] = known
	}
	known.row, known.changed, known.removed = row, true, false
}

// remove removes a row that this update knows.
func (s *spilledRows) remove(id ObjectRowID) {
	if known := s.rows[id]; known.existed {
		known.removed = true
	} else {
		delete(s.rows, id)
	}
}

// noteChange records that a spilled row has changed. It does nothing for other rows.
func (s *spilledRows) noteChange(id ObjectRowID) {
	if known := s.rows[id]; known != nil && !known.removed {
		known.changed = true
		s.noteVersion(known.row.Version)
	}
}

// noteVersion records that the newest spilled row of a version may have changed.
func (s *spilledRows) noteVersion(v VersionID) {
	if s.versions == nil {
		s.versions = make(map[VersionID]struct{})
	}
	s.versions[v] = struct{}{}
}

// noteRecent records that only recent rows of a version are left, and the query for the newest
// one.
func (s *spilledRows) noteRecent(v VersionID, q SpilledQuery) {
	if s.recent == nil {
		s.recent = make(map[VersionID]SpilledQuery)
	}
	s.recent[v] = q
	s.noteVersion(v)
}

// addTo adds the changes of spilled rows to those of an update.
func (s *spilledRows) addTo(changes *ObjectChanges) {
	for id, known := range s.rows {
		switch {
		case known.removed:
			changes.Delete = append(changes.Delete, id)
		case known.changed && known.existed:
			changes.Replace = append(changes.Replace, known.row)
		case known.changed:
			changes.Create = append(changes.Create, known.row)
		}
	}
	slices.SortFunc(changes.Create, CompareObjectRows)
	slices.SortFunc(changes.Replace, CompareObjectRows)
	slices.SortFunc(changes.Delete, compareRowIDs)
}

func compareVersions(a, b VersionID) int { return cmp.Compare(a.s, b.s) }

func compareRowIDs(a, b ObjectRowID) int {
	return cmp.Or(
		compareVersions(a.Version, b.Version), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Sequencer, b.Sequencer),
		cmp.Compare(a.Carrier.Message, b.Carrier.Message), cmp.Compare(a.Carrier.Index, b.Carrier.Index),
	)
}

// newestSpilled returns the newest spilled row of a version, or nil.
func (u *ObjectUpdate) newestSpilled(v VersionID) *ObjectRow {
	// If the newest row is no longer spilled, the query finds the rows below it. Rows that may
	// move are known.
	q, areForgotten := u.below.recent[v]
	if !areForgotten {
		q = SpilledQuery{Kind: SpilledHead, Version: v}
	}
	stored, answered := u.below.load(q)
	if !answered {
		return nil
	}
	if len(stored) > 0 && u.below.rows[stored[0].ID()].removed {
		if _, answered := u.below.load(SpilledQuery{Kind: SpilledEarlier, Version: v, Time: u.below.later.Time}); !answered {
			return nil
		}
	}
	found, _ := u.below.lookUp(SpilledQuery{Kind: SpilledHead, Version: v}) // of the rows that are left
	if len(found) == 0 {
		return nil
	}
	return &found[0].row
}
