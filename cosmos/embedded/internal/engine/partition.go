package engine

import (
	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// maxPartitionKey is the longest partition key value, in bytes. The 101 bytes
// that the documentation names for containers without version 2 of the hash
// are not a limit: the tests of azcosmos write longer ones.
const maxPartitionKey = 2048

// A Partition is the value of a partition key in one canonical form: a JSON
// array in which equal values are equal text. {} stands for undefined.
type Partition string

// KeyMismatch is the substatus of a write whose partition key is not that of the
// document.
const KeyMismatch = 1001

// ParsePartition reads the partition key header of an item request, which has
// to have a value for every path of the container.
func (c *Container) ParsePartition(header string) (Partition, error) {
	values, err := parseKey(header)
	if err != nil {
		return "", err
	}
	if len(values) != len(c.keyPaths) {
		return "", badRequest("partition key has %d values, the container has %d paths", len(values), len(c.keyPaths))
	}
	return c.partitionOf(values)
}

// ParseScope reads the partition key header of a query or feed. Of a
// hierarchical key it may have the first parts only; prefix is what the
// partitions in question begin with then.
func (c *Container) ParseScope(header string) (pk, prefix Partition, err error) {
	values, err := parseKey(header)
	if err != nil {
		return "", "", err
	}
	if len(values) > len(c.keyPaths) {
		return "", "", badRequest("partition key has %d values, the container has %d paths", len(values), len(c.keyPaths))
	}
	if pk, err = c.partitionOf(values); err != nil || len(values) == len(c.keyPaths) {
		return pk, "", err
	}
	if len(values) == 0 {
		return "", "", badRequest("partition key has no values")
	}
	return "", pk.keyPrefix(), nil
}

// keyPrefix is what longer keys with the same first values begin with.
func (p Partition) keyPrefix() Partition { return p[:len(p)-1] + "," }

func parseKey(header string) ([]query.Value, error) {
	if header == "" {
		return nil, badRequest("the request has no x-ms-documentdb-partitionkey header; an item operation needs one")
	}
	text, err := rawjson.Compact(nil, []byte(header))
	if err != nil {
		return nil, badRequest("partition key %s: %v", header, err)
	}
	var values []query.Value
	if rawjson.EachElement(text, func(v []byte) bool {
		if string(v) == "{}" {
			v = nil
		}
		values = append(values, query.ParseValue(v))
		return true
	}) != nil {
		return nil, badRequest("partition key %s is not a JSON array", header)
	}
	return values, nil
}

// partitionOf takes the values of the first paths, or of all of them.
func (c *Container) partitionOf(values []query.Value) (Partition, error) {
	pk, size := []byte{'['}, 0
	for i, v := range values {
		if size += len(v.Text); size > maxPartitionKey {
			return "", badRequest("the partition key value has more than %d bytes, which are the most that are allowed", maxPartitionKey)
		}
		if i > 0 {
			pk = append(pk, ',')
		}
		switch v.Kind {
		case query.Array, query.Object:
			return "", badRequest("partition key path %s holds an array or an object", c.keyText[i])
		case query.Undefined:
			pk = append(pk, "{}"...)
		default:
			pk = v.Append(pk)
		}
	}
	pk = append(pk, ']')
	return Partition(pk), nil
}

// partitionIn reads the partition key out of a document.
func (c *Container) partitionIn(doc []byte) (Partition, error) {
	slots := make([][]byte, c.keys.Slots())
	c.keys.Extract(doc, slots)
	values := make([]query.Value, len(slots))
	for i, raw := range slots {
		values[i] = query.ParseValue(raw)
	}
	return c.partitionOf(values)
}
