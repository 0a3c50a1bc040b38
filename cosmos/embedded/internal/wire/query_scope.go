package wire

import (
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
)

// parseScope parses what a query or feed reads: a logical partition, all partitions with a prefix of a hierarchical
// key, a physical partition, or the whole container.
func parseScope(r *serverRequest, c *engine.Container) (pk, prefix engine.Partition, at *engine.Range, err error) {
	if header := r.Header.Get("x-ms-documentdb-partitionkey"); header != "" {
		if pk, prefix, err = c.ParseScope(header); err != nil {
			return "", "", nil, err
		}
	}
	if id := r.Header.Get("x-ms-documentdb-partitionkeyrangeid"); id != "" {
		_, id, found := strings.Cut(id, ",") // some clients send the container id and a comma before the range id
		if !found {
			id = r.Header.Get("x-ms-documentdb-partitionkeyrangeid")
		}
		if at, err = c.Range(id); err != nil {
			return "", "", nil, err
		}
	}
	at, err = narrowRange(r, at)
	return pk, prefix, at, err
}

// narrowRange narrows a physical partition to the key range in the request, because clients may request a part of a
// partition after a split.
func narrowRange(r *serverRequest, at *engine.Range) (*engine.Range, error) {
	kind, low, high := r.Header.Get("x-ms-read-key-type"), r.Header.Get("x-ms-start-epk"), r.Header.Get("x-ms-end-epk")
	switch {
	case kind == "" && low == "" && high == "":
		return at, nil
	case kind != "EffectivePartitionKeyRange" || at == nil:
		return nil, unsupportedError("x-ms-read-key-type %q without a partition key range", kind)
	case !isHash(low) || !isHash(high) || high == "":
		return nil, badRequest("x-ms-start-epk %q and x-ms-end-epk %q: want hashes of partition keys", low, high)
	}
	return at.Part(low, high), nil
}

func isHash(text string) bool { return strings.Trim(text, "0123456789ABCDEF") == "" }
