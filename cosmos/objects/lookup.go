package objects

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A rowLookup reads spilled rows of an object.
type rowLookup struct {
	shard *shard
	call  *client.Call
	doc   *objectDoc
}

// params are the parameters of a query.
type params struct {
	all []azcosmos.QueryParameter
}

// add adds a value and returns the name of its parameter.
func (p *params) add(value any) string {
	name := fmt.Sprint("@p", len(p.all))
	p.all = append(p.all, azcosmos.QueryParameter{Name: name, Value: value})
	return name
}

// list returns the names of all parameters, separated by commas.
func (p *params) list() string {
	names := make([]string, len(p.all))
	for i := range p.all {
		names[i] = p.all[i].Name
	}
	return strings.Join(names, ", ")
}

// answer reads the spilled rows that queries ask for, and adds them to answers. It fails with
// client.ErrStale if the object has changed.
func (l *rowLookup) answer(ctx context.Context, queries []domain.SpilledQuery, answers domain.SpilledAnswers) error {
	p := &params{}
	var ids, parts []string
	for _, q := range queries {
		switch q.Kind {
		case domain.SpilledByID:
			ids = append(ids, p.add(rowID(l.doc.Key, q.ID)))
		case domain.SpilledHead:
			ids = append(ids, p.add(headID(l.doc.Key, q.Version)))
		case domain.SpilledLive:
			part, err := l.liveCondition(ctx, q.Limit, p)
			if err != nil {
				return err
			}
			parts = append(parts, part)
		case domain.SpilledGenerated:
			parts = append(parts, "c.kind = '"+rowDocument.Name+"' AND c.isGenerated = true AND c.micros > "+p.add(float64(q.Time)))
		case domain.SpilledRecent:
			parts = append(parts, "c.kind = '"+rowDocument.Name+"'"+ofVersion(q.Version, p)+" AND (c.micros >= "+p.add(float64(q.Time))+" OR c.micros = "+p.add(micros(time.Time{}))+")")
		default:
			for _, n := range nearestRows(q) {
				part, err := l.nearestCondition(ctx, n, p)
				if err != nil {
					return err
				}
				parts = append(parts, part)
			}
		}
	}
	var where []string
	if len(ids) > 0 {
		where = append(where, "c.id IN ("+strings.Join(ids, ", ")+")")
	}
	if len(parts) > 0 {
		where = append(where, "c.object = "+p.add(l.doc.ID)+" AND ("+strings.Join(parts, " OR ")+")")
	}
	return l.read(ctx, strings.Join(where, " OR "), p, queries, answers)
}

// A nearestQuery selects the first spilled rows of an object that meet a condition, in the order of rows
// or in reverse order.
type nearestQuery struct {
	condition func(p *params) string
	direction string
	limit     int // maximum number of rows
}

// ofVersion returns a condition that selects the rows of a version.
func ofVersion(v domain.VersionID, p *params) string {
	if v == (domain.VersionID{}) {
		return " AND NOT IS_DEFINED(c.version)"
	}
	return " AND c.version = " + p.add(v.String())
}

// nearestRows returns queries whose rows determine the answer to q.
func nearestRows(q domain.SpilledQuery) []nearestQuery {
	const (
		isRow    = "c.kind = 'row'"
		isNative = isRow + " AND NOT IS_DEFINED(c.isGenerated)"
	)
	ofVersion := func(p *params) string { return ofVersion(q.Version, p) }
	inTime := func(p *params) string { return " AND c.micros <= " + p.add(float64(q.Time)) }
	below := func(p *params) string { return " AND c['order'] < " + p.add(orderText(q.Order)) }
	above := func(p *params) string { return " AND c['order'] > " + p.add(orderText(q.Order)) }
	isEarlier := func(p *params) string {
		return " AND (NOT IS_DEFINED(c.isGenerated) OR c.micros <= " + p.add(float64(q.Time)) + ")"
	}
	isOld := func(p *params) string {
		return " AND c.micros < " + p.add(float64(q.Time)) + " AND c.micros > " + p.add(micros(time.Time{}))
	}
	newQuery := func(direction, kind string, conditions ...func(p *params) string) nearestQuery {
		return nearestQuery{direction: direction, limit: 1, condition: func(p *params) string {
			text := kind
			for _, c := range conditions {
				text += c(p)
			}
			return text
		}}
	}
	switch q.Kind {
	case domain.SpilledEarlier:
		return []nearestQuery{newQuery("DESC", isRow, ofVersion, isEarlier)}
	case domain.SpilledNeighbors:
		return []nearestQuery{newQuery("DESC", isNative, ofVersion, below), newQuery("ASC", isNative, ofVersion, above)}
	case domain.SpilledAnchor:
		return []nearestQuery{newQuery("DESC", isRow+" AND c.isAnchor = true", ofVersion, inTime)}
	case domain.SpilledOver:
		return []nearestQuery{newQuery("DESC", isRow+" AND c.isAnchor = true", inTime)}
	case domain.SpilledOld:
		lowest := newQuery("ASC", isRow, isOld, above)
		lowest.limit = domain.MaxForgotten
		return []nearestQuery{lowest}
	default:
		panic("this query asks for no nearest row")
	}
}

// nearestCondition reads the nearest rows, and returns a condition that selects them and all nearer
// rows. The read may be stale, but the nearest rows of the current state meet the condition, too.
func (l *rowLookup) nearestCondition(ctx context.Context, n nearestQuery, p *params) (string, error) {
	first := &params{}
	text := fmt.Sprintf("SELECT TOP %d * FROM c WHERE c.object = %s AND %s ORDER BY c['order'] %s", n.limit, first.add(l.doc.ID), n.condition(first), n.direction)
	found, err := client.All[rowDoc](ctx, l.call.Query(l.shard.store.objects, l.shard.key, text, first.all...))
	if err != nil {
		return "", err
	}
	condition := n.condition(p)
	if len(found) == n.limit {
		reach := map[string]string{"DESC": " >= ", "ASC": " <= "}[n.direction]
		condition += " AND c['order']" + reach + p.add(found[n.limit-1].Order)
	}
	return condition, nil
}

// liveCondition reads the highest live copies, and returns a condition that selects all live copies that
// are at least as high. The read may be stale, but the highest live copies of the current state meet the
// condition, too. The condition also selects all copies of older versions of the hub, in which the member
// live is missing.
func (l *rowLookup) liveCondition(ctx context.Context, limit int, p *params) (string, error) {
	first := &params{}
	text := fmt.Sprintf("SELECT TOP %d * FROM c WHERE c.object = %s AND c.live > '' ORDER BY c.live DESC", limit, first.add(l.doc.ID))
	found, err := client.All[rowDoc](ctx, l.call.Query(l.shard.store.objects, l.shard.key, text, first.all...))
	if err != nil {
		return "", err
	}
	reach := ""
	if len(found) == limit {
		reach, _ = found[limit-1].Live.(string)
	}
	return "c.live > '' AND c.live >= " + p.add(reach) + " OR c.id >= '" + headPrefix + "' AND c.id < '" + behindHeads + "' AND NOT IS_DEFINED(c.live)", nil
}

// read reads the object and the spilled rows that meet a condition, and selects the answers to queries. It
// fails with client.ErrStale if the state of the object differs from that of the lookup.
func (l *rowLookup) read(ctx context.Context, where string, p *params, queries []domain.SpilledQuery, answers domain.SpilledAnswers) error {
	var rows, heads []domain.ObjectRow
	has := make(map[domain.ObjectRowID]bool)
	for below, hasMore := l.doc.ID, true; hasMore; {
		docs, isLast, err := l.readPage(ctx, where, below, *p)
		if err != nil {
			return err
		}
		for _, d := range docs {
			r, err := d.toRow()
			if err != nil {
				return err
			}
			if d.Kind == headDocument.Name {
				heads = append(heads, r)
			}
			if !has[r.ID()] {
				rows, has[r.ID()] = append(rows, r), true
			}
			below = d.ID
		}
		hasMore = !isLast
	}
	for _, q := range queries {
		known := rows
		if q.Kind == domain.SpilledLive { // use only copies: the newest row of a version may not be among rows
			known = heads
		}
		answers[q] = q.Select(known)
	}
	return nil
}

// readPage reads the object and, of the rows that meet a condition and have a lower id than below, those
// with the greatest ids. A different replica may serve each page. So each page is a separate query and
// begins with the object, whose etag shows whether the rows are current.
func (l *rowLookup) readPage(ctx context.Context, where, below string, p params) (docs []*rowDoc, isLast bool, err error) {
	text := "SELECT * FROM c WHERE c.id = " + p.add(l.doc.ID) + " OR c.id < " + p.add(below) + " AND (" + where + ") ORDER BY c.id DESC"
	q := l.call.Query(l.shard.store.objects, l.shard.key, text, p.all...)
	items, err := q.Next(ctx, 1000)
	if err != nil {
		return nil, false, err
	}
	for _, item := range items {
		d := &rowDoc{}
		if err := q.Decode(item, d); err != nil {
			return nil, false, err
		}
		docs = append(docs, d)
	}
	if len(docs) == 0 || docs[0].ID != l.doc.ID || docs[0].ETag != l.doc.ETag || len(docs) == 1 && !q.IsDone() {
		return nil, false, client.ErrStale
	}
	return docs[1:], q.IsDone(), nil
}
