package engine

import (
	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// maxPartitionKey is the maximum size of a partition key value, in bytes. Without hash version 2, the documented limit
// is 101 bytes; it is not enforced, because the tests of azcosmos exceed it.
const maxPartitionKey = 2048

// A Partition is a partition key value in canonical form: a JSON array, with equal text for equal values. {} represents
// undefined.
type Partition string

// KeyMismatch is the substatus of a write whose partition key differs from the key in the document.
const KeyMismatch = 1001

// ParsePartition parses the partition key header of an item request. The header must contain a value for every path of
// the container.
func (c *Container) ParsePartition(header string) (Partition, error) {
	values, err := parseKey(header)
	if err != nil {
		return "", err
	}
	if len(values) != len(c.keyPaths) {
		return "", badRequest("partition key has %d values, the container has %d paths", len(values), len(c.keyPaths))
	}
	return c.encodePartition(values)
}

// ParseScope parses the partition key header of a query or feed. If the header has only the first
// parts of a hierarchical key, ParseScope returns the common prefix of the matching partitions.
func (c *Container) ParseScope(header string) (pk, prefix Partition, err error) {
	values, err := parseKey(header)
	if err != nil {
		return "", "", err
	}
	if len(values) > len(c.keyPaths) {
		return "", "", badRequest("partition key has %d values, the container has %d paths", len(values), len(c.keyPaths))
	}
	if pk, err = c.encodePartition(values); err != nil || len(values) == len(c.keyPaths) {
		return pk, "", err
	}
	if len(values) == 0 {
		return "", "", badRequest("partition key has no values")
	}
	return "", pk.keyPrefix(), nil
}

// keyPrefix returns the common prefix of all longer keys that start with the values of p.
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

// encodePartition encodes the values of all paths, or of the first few, as a Partition.
func (c *Container) encodePartition(values []query.Value) (Partition, error) {
	pk, size := []byte{'['}, 0
	for i, v := range values {
		if size += len(v.Text); size > maxPartitionKey {
			return "", badRequest("the partition key value has more than %d bytes, which is the limit", maxPartitionKey)
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

// extractPartition extracts the partition key from a document.
func (c *Container) extractPartition(doc []byte) (Partition, error) {
	slots := make([][]byte, c.keys.Slots())
	c.keys.Extract(doc, slots)
	values := make([]query.Value, len(slots))
	for i, raw := range slots {
		values[i] = query.ParseValue(raw)
	}
	return c.encodePartition(values)
}
