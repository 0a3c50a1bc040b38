package engine

import (
	"crypto/sha256"
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

const (
	maxUniqueKeys  = 10
	maxUniquePaths = 16
)

// A uniqueKey is a list of paths. Within a logical partition, no two documents may have equal values at
// each of these paths.
type uniqueKey struct {
	text  []string
	paths *rawjson.Extractor
}

type uniquePolicy struct {
	Keys []struct {
		Paths []string `json:"paths"`
	} `json:"uniqueKeys"`
}

func (p *uniquePolicy) parseKeys() ([]uniqueKey, error) {
	if p == nil {
		return nil, nil
	}
	if len(p.Keys) > maxUniqueKeys {
		return nil, badRequest("uniqueKeyPolicy has %d keys; at most %d are allowed", len(p.Keys), maxUniqueKeys)
	}
	var keys []uniqueKey
	for _, k := range p.Keys {
		if len(k.Paths) == 0 || len(k.Paths) > maxUniquePaths {
			return nil, badRequest("a unique key wants 1 to %d paths, found %d", maxUniquePaths, len(k.Paths))
		}
		var paths []rawjson.Path
		for _, text := range k.Paths {
			path, err := splitPath(text)
			if err != nil {
				return nil, err
			}
			if len(path) == 0 {
				return nil, badRequest("unique key path %q names no property", text)
			}
			paths = append(paths, path)
		}
		keys = append(keys, uniqueKey{k.Paths, rawjson.NewExtractor(paths)})
	}
	return keys, nil
}

func hasSameKeys(have []uniqueKey, want *uniquePolicy) bool {
	if want == nil {
		return len(have) == 0
	}
	if len(have) != len(want.Keys) {
		return false
	}
	for i, k := range have {
		if !slices.Equal(k.text, want.Keys[i].Paths) {
			return false
		}
	}
	return true
}

// uniqueEntries returns the keys that reserve the unique values of doc. A missing value counts as null. Long values are
// hashed.
func (c *Container) uniqueEntries(pk Partition, doc []byte) [][]byte {
	var entries [][]byte
	for i, k := range c.unique {
		slots := make([][]byte, k.paths.Slots())
		k.paths.Extract(doc, slots)
		h := sha256.New()
		for _, raw := range slots {
			v := query.ParseValue(raw)
			if v.Kind == query.Undefined {
				v.Kind = query.Null
			}
			_, _ = h.Write(append(v.Append(nil), 0)) // never fails
		}
		entries = append(entries, h.Sum(append(partitionPrefix('U', c.number, pk), byte(i))))
	}
	return entries
}

// isTaken reports whether one of the entries belongs to a document other than seq.
func isTaken(r disk.State, entries [][]byte, seq uint64) bool {
	return slices.ContainsFunc(entries, func(key []byte) bool {
		owner := r.Get(key)
		return owner != nil && decodeNumber(owner) != seq
	})
}
