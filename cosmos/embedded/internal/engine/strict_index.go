package engine

import "slices"

// isKeyIndexed reports whether all partition key paths are indexed, so that an index can restrict a query to a logical
// partition.
func (c *Container) isKeyIndexed() bool {
	for _, path := range c.keyPaths {
		if !c.policy.isIndexed(path) {
			return false
		}
	}
	return true
}

// chargeScan charges a query in one logical partition for the rest of the physical partition, because without an index
// Cosmos DB loads these documents to compare their keys.
func (r *pageBuilder) chargeScan() {
	own := r.c.effectiveKey(r.q.Partition)
	i := slices.IndexFunc(r.c.ranges, func(p Range) bool { return p.hasKey(own) })
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
			last, isNear = pk, pk != r.q.Partition && physical.hasKey(r.c.effectiveKey(pk))
		}
		if isNear {
			r.page.Scanned++
			r.countLoaded(readStored(key, value))
		}
		return true
	})
}
