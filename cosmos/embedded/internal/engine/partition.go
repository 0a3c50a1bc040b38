package engine

import (
	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// maxPartitionKey is the longest partition key value, in bytes.
const maxPartitionKey = 2048

// A Partition is the value of a partition key in one canonical form: a JSON
// array in which equal values are equal text. {} stands for undefined.
type Partition string

// ParsePartition reads the partition key header of an item request, which has
// to have a value for every path of the container.
func (c *Container) ParsePartition(header string) (Partition, error) {
	if header == "" {
		return "", badRequest("the request has no x-ms-documentdb-partitionkey header; an item operation needs one")
	}
	text, err := rawjson.Compact(nil, []byte(header))
	if err != nil {
		return "", badRequest("partition key %s: %v", header, err)
	}
	var values []query.Value
	if rawjson.EachElement(text, func(v []byte) bool {
		if string(v) == "{}" {
			v = nil
		}
		values = append(values, query.ParseValue(v))
		return true
	}) != nil {
		return "", badRequest("partition key %s is not a JSON array", header)
	}
	return c.partitionOf(values)
}

func (c *Container) partitionOf(values []query.Value) (Partition, error) {
	if len(values) != len(c.keyPaths) {
		return "", badRequest("partition key has %d values, the container has %d paths", len(values), len(c.keyPaths))
	}
	pk := []byte{'['}
	for i, v := range values {
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
	if len(pk) > maxPartitionKey+2*len(values)+2 {
		return "", badRequest("the partition key value is longer than %d bytes", maxPartitionKey)
	}
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
