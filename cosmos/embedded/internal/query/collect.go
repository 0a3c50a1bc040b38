package query

import "slices"

// A Collector computes results that depend on more than one document, for DISTINCT, GROUP BY, aggregates, and ORDER BY
// with JOIN.
type Collector struct {
	query  *Query
	want   int
	seen   seenResults
	groups *groups
	found  []collectedResult
}

type collectedResult struct {
	key    []Value
	result []byte
}

// Derive returns the first want results of q over source, the results of a subquery. If want is NoLimit, it returns
// all. The returned Slots include the work in from.
func (q *Query) Derive(source [][]byte, want int, from *Slots) ([][]byte, *Slots) {
	slots := q.NewSlots(from.ctx, from.limits)
	slots.earlier, slots.held, slots.failure = from.earlier+int64(from.steps), from.held, from.failure
	c := q.Collect(want)
	for _, raw := range source {
		q.Extract(raw, slots)
		slots.RefuseIfExhausted()
		if slots.failure != nil || q.Holds(slots) && !c.Add(raw, slots) {
			break
		}
	}
	return c.Results(slots), slots
}

// Collect returns a Collector for the first want results of q. If want is NoLimit, it collects all.
func (q *Query) Collect(want int) *Collector {
	if q.maximum != NoLimit && (want == NoLimit || want > q.maximum) {
		want = q.maximum
	}
	if want != NoLimit {
		want += q.skipped
	}
	c := &Collector{query: q, want: want, seen: newSeenResults(q.distinct)}
	if q.group != nil {
		c.groups = q.group.newGroups()
	}
	return c
}

// Add adds a document that meets the condition. It returns false if no further document can change the results.
func (c *Collector) Add(doc []byte, slots *Slots) bool {
	if c.groups != nil && len(c.query.sources)+len(c.query.where) == 0 { // without JOIN and further conditions, a document is a single row
		c.groups.addRow(slots)
		return true
	}
	c.query.eachRow(slots, func() bool {
		if c.groups != nil {
			c.groups.addRow(slots)
			return true
		}
		result := c.query.writeResult(doc, slots)
		if result == nil || len(c.query.orders) == 0 && !c.seen.addIfNew(result) {
			return true
		}
		var key []Value
		for _, v := range c.query.SortKey(nil, slots) {
			key = append(key, v.Clone())
		}
		this := collectedResult{key, result}
		if c.found = append(c.found, this); !slots.Hold(this.estimateSize()) {
			return false
		}
		if key != nil && c.want != NoLimit && len(c.found) >= 2*c.want+64 {
			c.sortResults()
			kept := c.found[:min(c.want, len(c.found))]
			for _, dropped := range c.found[len(kept):] {
				slots.Hold(-dropped.estimateSize())
			}
			clear(c.found[len(kept):])
			c.found = kept
		}
		return !c.isFull()
	})
	return slots.Failure() == nil && !c.isFull()
}

// estimateSize estimates the size of a result in bytes. DISTINCT stores the text a second time.
func (c collectedResult) estimateSize() int {
	const fields = 96
	n := fields + 2*len(c.result)
	for _, v := range c.key {
		n += fields + len(v.Text)
	}
	return n
}

// sortResults sorts the results, and then applies DISTINCT, because equal results may have different sort keys.
func (c *Collector) sortResults() {
	slices.SortStableFunc(c.found, func(a, b collectedResult) int { return c.query.CompareKeys(a.key, b.key) })
	once := newSeenResults(c.query.distinct)
	c.found = slices.DeleteFunc(c.found, func(f collectedResult) bool { return !once.addIfNew(f.result) })
}

// isFull reports whether no further document is needed. With ORDER BY or groups it returns false, because any later
// document can change the results.
func (c *Collector) isFull() bool {
	return c.want != NoLimit && len(c.found) >= c.want && c.groups == nil && len(c.query.orders) == 0
}

// Results returns the results after OFFSET and LIMIT, in order. slots must be those passed to Add. It may be called
// only once.
func (c *Collector) Results(slots *Slots) [][]byte {
	if c.groups != nil {
		c.groups.eachGroup(slots, func() bool {
			slots.nextDocument()
			slots.RefuseIfExhausted()
			if result := c.query.writeResult(nil, slots); result != nil && c.seen.addIfNew(result) {
				this := collectedResult{result: result}
				c.found = append(c.found, this)
				slots.Hold(this.estimateSize())
			}
			return slots.Failure() == nil
		})
	}
	if len(c.query.orders) > 0 {
		c.sortResults()
	}
	end := len(c.found)
	if c.want != NoLimit {
		end = min(end, c.want)
	}
	var results [][]byte
	for i := c.query.skipped; i < end; i++ {
		results = append(results, c.found[i].result)
	}
	return results
}
