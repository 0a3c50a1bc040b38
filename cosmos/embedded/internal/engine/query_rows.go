package engine

import (
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// addRows adds the results of one document to the page; a JOIN can have several. If there is no room for a result, it
// returns false, and the next page continues within the document.
func (r *pageBuilder) addRows(seq uint64, s storedDocument, doc []byte) bool {
	if r.q.Query.Streams() {
		if !r.testCondition(s, doc) {
			return true
		}
		if r.skip > 0 {
			r.skip--
			return true
		}
		return r.addDocument(s, doc)
	}
	if !r.testCondition(s, doc) {
		return true
	}
	row, skip, fits := 0, 0, true
	if seq == r.at.partial {
		skip = r.at.row
	}
	count := r.page.Count
	r.q.Query.Results(doc, r.slots, func(result []byte) bool {
		switch {
		case row < skip:
		case r.skip > 0:
			r.skip--
		case r.remainingResults() == 0:
			return false
		default:
			if fits = r.addResult(result); !fits {
				r.partial, r.row = seq, row
				return false
			}
		}
		row++
		return true
	})
	if r.plan.IndexOnly() && r.page.Count > count {
		r.countLoaded(s)
	}
	return fits
}

// addResult adds a result to the page. It returns false if there is no room.
func (r *pageBuilder) addResult(result []byte) bool {
	if r.isPageFull() || r.page.Count > 0 && len(r.page.JSON)+1+len(result) > maxPage {
		return false
	}
	if r.page.Count > 0 {
		r.page.JSON = append(r.page.JSON, ',')
	}
	if need := len(r.page.JSON) + len(result); need > cap(r.page.JSON) {
		r.page.JSON = slices.Grow(r.page.JSON, min(4*need, maxPage))
	}
	r.page.JSON = append(r.page.JSON, result...)
	r.page.Count++
	return true
}

// fillJoined adds the JOIN results of one partition's documents, in the order of insertion.
func (r *pageBuilder) fillJoined() {
	if !r.resumed {
		r.skip = r.q.Query.Offset()
	}
	last := r.at.seq
	r.scanPartition(r.q.Partition, last, func(seq uint64, s storedDocument, doc []byte) bool {
		if r.remainingResults() == 0 {
			return false
		}
		before := r.page
		if r.endPage(last, r.skip) {
			return false
		}
		if !r.addRows(seq, s, doc) {
			if r.page.Count == before.Count { // the document only tells that another page follows
				r.page.Charge, r.page.Loaded = before.Charge, before.Loaded
			}
			r.continueAfter(pagePosition{seq: last})
			return false
		}
		last = seq
		return true
	})
}

// fillCollected adds results that depend on several documents or on none. Each page computes all results again, because
// the engine stores nothing between pages. The token contains the number of results already returned.
func (r *pageBuilder) fillCollected() {
	want := query.NoLimit
	if r.q.MaxItems >= 0 {
		want = r.at.given + r.q.MaxItems + 1 // one more result tells whether another page follows
	}
	if r.isElsewhere { // here the outermost query has an empty source
		var results [][]byte
		results, r.slots = r.derived[0].Derive(nil, want, r.slots)
		r.addRest(results)
		return
	}
	wantOfDocuments := want
	if len(r.derived) > 0 {
		wantOfDocuments = query.NoLimit
	}
	c := r.q.Query.Collect(wantOfDocuments)
	if r.q.Query.Constant() {
		if r.plan.Loads(r.slots) && r.plan.Keeps(r.slots) {
			c.Add(nil, r.slots)
		}
	} else {
		r.scanAll(func(_ uint64, s storedDocument, doc []byte) bool {
			if !r.testCondition(s, doc) {
				r.slots.RefuseIfExhausted()
				return true
			}
			if r.plan.IndexOnly() && !r.q.Query.Counts() {
				r.countLoaded(s)
			}
			r.slots.RefuseIfExhausted()
			return c.Add(doc, r.slots)
		})
	}
	results := c.Results(r.slots)
	for i, q := range slices.Backward(r.derived) {
		n := query.NoLimit
		if i == 0 {
			n = want
		}
		results, r.slots = q.Derive(results, n, r.slots)
	}
	r.addRest(results)
}

// addRest adds the results that earlier pages have not returned. results must contain all results of the query.
func (r *pageBuilder) addRest(results [][]byte) {
	for i := r.at.given; i < len(results); i++ {
		if !r.addResult(results[i]) {
			orders := len(r.q.Query.Orders())
			r.continueAfter(pagePosition{ordered: orders > 0, keys: make([]query.Value, orders)})
			return
		}
	}
}

// planQuery splits the condition of q into an indexed part and a rest. If orderOnlyIndexed is true, an ORDER BY path
// that the policy includes only by a parent (/*) excludes documents without the path. A path that the policy names, or
// that is in a composite index, does not.
func (p *policy) planQuery(q *query.Query, orderOnlyIndexed bool) query.Plan {
	plan := q.Plan(p.isIndexed)
	if orders := q.Orders(); orderOnlyIndexed && len(orders) == 1 && !p.hasPath(orders[0].Path) {
		return q.OnlySorted(plan)
	}
	return plan
}

// hasPath reports whether the policy names path itself, not only a parent.
func (p *policy) hasPath(path rawjson.Path) bool {
	at := p.root
	for _, step := range path {
		name := step.Name
		if step.Array {
			name = "[]"
		}
		if at = at.next[name]; at == nil {
			return false
		}
	}
	return at.here == included || at.below == included
}
