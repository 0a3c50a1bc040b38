package engine

// Reach is the part of the key space that a query looks into, and whether
// that is one logical partition.
func (c *Container) Reach(q QueryRequest) (list []Range, alone bool, err error) {
	if err := c.Scope(&q); err != nil {
		return nil, false, err
	}
	switch {
	case q.Scoped:
		epk := c.epk(q.Partition)
		return []Range{{Min: epk, Max: epk}}, true, nil
	case q.Prefix != "":
		epk := c.epk(q.Prefix[:len(q.Prefix)-1] + "]")
		return []Range{{Min: epk, Max: epk + "FF"}}, false, nil
	}
	return []Range{{Min: "", Max: "FF"}}, false, nil
}

// Scope narrows a query to the partition that its condition names, or to
// those that begin with the first parts of a hierarchical key.
func (c *Container) Scope(q *QueryRequest) error {
	for n := len(c.keyPaths); n > 0 && !q.Scoped && q.Prefix == ""; n-- {
		values, ok := q.Query.Equalities(c.keyPaths[:n])
		if !ok {
			continue
		}
		pk, err := c.partitionOf(values)
		if err != nil {
			return err
		}
		if n == len(c.keyPaths) {
			q.Partition, q.Scoped = pk, true
		} else {
			q.Prefix = pk.prefix()
		}
	}
	return nil
}
