package engine

import (
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
)

// Reach returns the ranges of the key space that a query reads. alone reports whether the query reads a single logical
// partition.
func (c *Container) Reach(q QueryRequest) (list []Range, alone bool, err error) {
	if err := c.Scope(&q); err != nil {
		return nil, false, err
	}
	switch {
	case q.Scoped:
		epk := c.effectiveKey(q.Partition)
		return []Range{{Min: epk, Max: epk}}, true, nil
	case q.Prefix != "":
		epk := c.firstKey(q.Prefix)
		return []Range{{Min: epk, Max: epk + "FF"}}, false, nil
	}
	return []Range{{Min: "", Max: "FF"}}, false, nil
}

// firstKey returns the lowest effective partition key with a prefix, which may be empty.
func (c *Container) firstKey(prefix Partition) string {
	if prefix == "" {
		return ""
	}
	return c.effectiveKey(prefix[:len(prefix)-1] + "]")
}

// maxPartitions is how many partitions a condition can name. With more, the query visits all partitions.
const maxPartitions = 10_000

// findNamedPartitions returns the partitions that the indexed part of a condition allows, or nil. Documents of the
// remaining partitions are not charged.
func (c *Container) findNamedPartitions(plan query.Plan) []Partition {
	tuples := [][]query.Value{{}}
	for _, path := range c.keyPaths {
		i := slices.IndexFunc(plan.Confines, func(p query.Predicate) bool { return p.In != nil && slices.Equal(p.Path, path) })
		if i < 0 || len(tuples)*len(plan.Confines[i].In) > maxPartitions {
			return nil
		}
		var longer [][]query.Value
		for _, t := range tuples {
			for _, v := range plan.Confines[i].In {
				longer = append(longer, append(slices.Clone(t), v))
			}
		}
		tuples = longer
	}
	list := []Partition{}
	for _, t := range tuples {
		if pk, err := c.encodePartition(t); err == nil { // skip invalid keys, because no document has one
			list = append(list, pk)
		}
	}
	return list
}

// Scope restricts a query to the partition that its condition requires, or to the partitions with the prefix that it
// requires.
func (c *Container) Scope(q *QueryRequest) error {
	for n := len(c.keyPaths); n > 0 && !q.Scoped && q.Prefix == ""; n-- {
		values, ok := q.Query.Base().Equalities(c.keyPaths[:n])
		if !ok {
			continue
		}
		pk, err := c.encodePartition(values)
		if err != nil {
			return err
		}
		if n == len(c.keyPaths) {
			q.Partition, q.Scoped = pk, true
		} else {
			q.Prefix = pk.keyPrefix()
		}
	}
	return nil
}
