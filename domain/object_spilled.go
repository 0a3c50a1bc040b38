package domain

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A SpilledQuery requests spilled rows of an object. The method Select defines the result.
type SpilledQuery struct {
	Kind    SpilledQueryKind
	ID      ObjectRowID // id of the row, for SpilledByID
	Version VersionID   // version for SpilledHead, SpilledEarlier, SpilledNeighbors, SpilledAnchor and SpilledRecent
	Order   ObjectOrder // order for SpilledNeighbors and SpilledOld
	Limit   int         // maximum number of rows for SpilledLive
	Time    int64       // time in microseconds, for SpilledEarlier, SpilledAnchor, SpilledOver, SpilledGenerated, SpilledOld and SpilledRecent
}

// A SpilledQueryKind determines which rows a query requests.
type SpilledQueryKind int

// The values of SpilledQueryKind.
const (
	SpilledByID      SpilledQueryKind = iota + 1 // the row with ID
	SpilledLive                                  // up to Limit rows: the newest row of each version, if it is live, highest rows first
	SpilledHead                                  // a version's newest row
	SpilledEarlier                               // a version's newest row among those that SpilledGenerated does not return for the same Time
	SpilledNeighbors                             // a version's native rows directly below and above Order
	SpilledAnchor                                // a version's highest row up to Time behind which an event without sequencer can be placed
	SpilledOver                                  // the highest row of any version, up to Time, over which a new row can be placed with OverRow
	SpilledGenerated                             // rows with a generated place and a time after Time
	SpilledOld                                   // the lowest rows above Order whose time is before Time, up to MaxForgotten
	SpilledRecent                                // a version's newest row whose time is unknown, or not before Time
)

// SpilledAnswers contains the results of queries.
type SpilledAnswers map[SpilledQuery][]ObjectRow

// Select returns the query's result. rows are all spilled rows of the object.
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
		return selectHighest(selectRows(rows, func(r *ObjectRow) bool { return r.Version == q.Version }), CompareObjectRows)
	case SpilledEarlier:
		return selectHighest(selectRows(rows, func(r *ObjectRow) bool { return r.Version == q.Version && !q.isGeneratedLater(r) }), CompareObjectRows)
	case SpilledNeighbors:
		natives := func(side int) []ObjectRow {
			return selectRows(rows, func(r *ObjectRow) bool {
				return r.Version == q.Version && !r.IsGenerated() && r.Order().Compare(q.Order) == side
			})
		}
		above := selectHighest(natives(+1), func(a, b ObjectRow) int { return CompareObjectRows(b, a) })
		return append(selectHighest(natives(-1), CompareObjectRows), above...)
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
		return selectHighest(selectRows(rows, func(r *ObjectRow) bool { return r.Version == q.Version && !q.isOld(r) }), CompareObjectRows)
	}
	return nil
}

func (q SpilledQuery) isOld(r *ObjectRow) bool {
	return !r.Time.IsZero() && orderedTime(r.Time) < q.Time
}

func (q SpilledQuery) isGeneratedLater(r *ObjectRow) bool {
	return r.IsGenerated() && orderedTime(r.Time) > q.Time
}

// selectAnchor returns the row behind which e is placed highest.
func (q SpilledQuery) selectAnchor(rows []ObjectRow, e *ObjectEvent) []ObjectRow {
	return selectHighest(selectRows(rows, func(r *ObjectRow) bool {
		_, anchors := placementBehind(r, e)
		return anchors && orderedTime(r.Time) <= q.Time
	}), func(a, b ObjectRow) int {
		p, _ := placementBehind(&a, e)
		q, _ := placementBehind(&b, e)
		return cmp.Or(p.compare(q), CompareObjectRows(a, b))
	})
}

// lastTime returns the value of SpilledQuery.Time for rows up to t. If t is unknown, rows of any
// time match.
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

func selectHighest(rows []ObjectRow, compare func(a, b ObjectRow) int) []ObjectRow {
	if len(rows) == 0 {
		return nil
	}
	return []ObjectRow{slices.MaxFunc(rows, compare)}
}

// A spilledRow is a row at or below Object.Floor that an update has read or added.
type spilledRow struct {
	row     ObjectRow
	existed bool // the store contains the row as a spilled row
	changed bool
	removed bool // the row is no longer spilled
}

// spilledRows contains the rows at or below Object.Floor that an update has read or added.
type spilledRows struct {
	answers  SpilledAnswers
	queries  []SpilledQuery // queries whose results are not known yet
	rows     map[ObjectRowID]*spilledRow
	versions map[VersionID]struct{}     // versions whose newest spilled row may have changed
	recent   map[VersionID]SpilledQuery // queries for the newest row of each version of which only recent spilled rows remain
	later    SpilledQuery               // the SpilledGenerated query with the earliest time; only the rows that it returns can move
}

// lookUp returns a query's result, including the changes of this update. If the result is not known
// yet, lookUp adds the query to s.queries and returns false.
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

// load returns a query's result without the changes of this update. If the result is not known yet,
// load adds the query to s.queries and returns false.
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

// put adds a row, or replaces the row with the same id.
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

// remove removes a row that this update has read or added.
func (s *spilledRows) remove(id ObjectRowID) {
	if known := s.rows[id]; known.existed {
		known.removed = true
	} else {
		delete(s.rows, id)
	}
}

// noteChange records that a spilled row has changed. It does nothing if the row is not spilled.
func (s *spilledRows) noteChange(id ObjectRowID) {
	if known := s.rows[id]; known != nil && !known.removed {
		known.changed = true
		s.noteVersion(known.row.Version)
	}
}

// noteVersion records that the newest spilled row of version v may have changed.
func (s *spilledRows) noteVersion(v VersionID) {
	if s.versions == nil {
		s.versions = make(map[VersionID]struct{})
	}
	s.versions[v] = struct{}{}
}

// noteRecent records that only recent spilled rows of version v remain. q is the query for the
// newest of them.
func (s *spilledRows) noteRecent(v VersionID, q SpilledQuery) {
	if s.recent == nil {
		s.recent = make(map[VersionID]SpilledQuery)
	}
	s.recent[v] = q
	s.noteVersion(v)
}

// addChangesTo adds the changes of spilled rows to an update's changes.
func (s *spilledRows) addChangesTo(changes *ObjectChanges) {
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

// newestSpilled returns the newest spilled row of the given version, or nil.
func (u *ObjectUpdate) newestSpilled(v VersionID) *ObjectRow {
	// If the newest row is no longer spilled, SpilledEarlier returns the newest row below it. Rows
	// that can move are already known: the query in later returned them.
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
	found, _ := u.below.lookUp(SpilledQuery{Kind: SpilledHead, Version: v}) // lookUp does not return removed rows
	if len(found) == 0 {
		return nil
	}
	return &found[0].row
}
