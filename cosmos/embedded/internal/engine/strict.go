package engine

import "slices"

// indexesKey reports whether an index confines a query to a logical partition: all parts
// of the partition key are indexed.
func (c *Container) indexesKey() bool {
	for _, path := range c.keyPaths {
		if !c.policy.indexed(path) {
			return false
		}
	}
	return true
}

// chargeScan charges a query in one logical partition the documents of all others in its
// physical partition, which it has to load to see that they are not its own.
func (r *run) chargeScan() {
	own := r.c.epk(r.q.Partition)
	i := slices.IndexFunc(r.c.ranges, func(p Range) bool { return p.has(own) })
	if i < 0 {
		return
	}
	physical, last, isNear := r.c.ranges[i], Partition(""), false
	from := containerPrefix('D', r.c.number)
	r.reader.Scan(from, endOfPrefix(from), func(key, value []byte) bool {
		if r.broken = r.ctx.Err(); r.broken != nil {
			return false
		}
		if pk := partitionOfKey(key); pk != last {
			last, isNear = pk, pk != r.q.Partition && physical.has(r.c.epk(pk))
		}
		if isNear {
			r.page.Scanned++
			r.load(readStored(key, value))
		}
		return true
	})
}
