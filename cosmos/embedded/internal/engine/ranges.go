package engine

import (
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const (
	// throughputPerRange is the maximum throughput of one physical partition.
	throughputPerRange = 10_000
	// maxRangeBytes is the maximum number of bytes in one physical partition.
	maxRangeBytes = 50 << 30
)

// A Range is a physical partition. It contains the effective partition keys with Min <= key < Max.
type Range struct {
	ID      string   `json:"id"`
	Min     string   `json:"min"`
	Max     string   `json:"max"`
	Parents []string `json:"parents,omitempty"` // ids of the ranges that were split to create this one, oldest first
	Version uint64   `json:"version"`           // number of the write that created this range
}

func (r Range) hasKey(epk string) bool {
	return compareEPK(r.Min, epk) <= 0 && (r.Max == "FF" || compareEPK(epk, r.Max) < 0)
}

// isAll reports whether the range contains the whole key space.
func (r Range) isAll() bool { return r.Min == "" && r.Max == "FF" }

// Part returns the part of a range with low <= key < high.
func (r Range) Part(low, high string) *Range {
	if compareEPK(low, r.Min) > 0 {
		r.Min = low
	}
	if high != "FF" && (r.Max == "FF" || compareEPK(high, r.Max) < 0) {
		r.Max = high
	}
	return &r
}

// compareEPK compares effective partition keys as if the shorter one ended in zeros, because ranges of hierarchical
// keys have bounds of different lengths.
func compareEPK(a, b string) int {
	n := max(len(a), len(b))
	return strings.Compare(a+strings.Repeat("0", n-len(a)), b+strings.Repeat("0", n-len(b)))
}

// keySpace returns the number of effective partition keys. Version 2 uses 126 bits, version 1 uses 32.
func keySpace(version int) *big.Int {
	if version == 2 {
		return new(big.Int).Lsh(big.NewInt(1), 126)
	}
	return new(big.Int).Lsh(big.NewInt(1), 32)
}

func formatBound(n, space *big.Int) string {
	switch {
	case n.Sign() == 0:
		return ""
	case n.Cmp(space) == 0:
		return "FF"
	}
	return fmt.Sprintf("%032X", n)
}

// firstRanges divides the key space into n equal ranges.
func firstRanges(n, keyVersion int, version uint64) []Range {
	space := keySpace(keyVersion)
	at := func(i int) string {
		part := new(big.Int).Mul(space, big.NewInt(int64(i)))
		return formatBound(part.Div(part, big.NewInt(int64(n))), space)
	}
	ranges := make([]Range, n)
	for i := range ranges {
		ranges[i] = Range{ID: strconv.Itoa(i), Min: at(i), Max: at(i + 1), Version: version}
	}
	return ranges
}

// splitRanges splits the widest range in half until there are n ranges. It returns the ranges and the next free id. Ids
// of split ranges are never reused.
func splitRanges(ranges []Range, n, next, keyVersion int, version uint64) ([]Range, int) {
	space := keySpace(keyVersion)
	ranges = slices.Clone(ranges)
	for len(ranges) < n {
		widest, width := 0, new(big.Int)
		for i, r := range ranges {
			low, high := r.parseBounds(space)
			if high.Sub(high, low).Cmp(width) > 0 {
				widest, width = i, high
			}
		}
		r := ranges[widest]
		low, high := r.parseBounds(space)
		middle := formatBound(high.Rsh(high.Add(high, low), 1), space)
		parents := append(slices.Clone(r.Parents), r.ID)
		ranges = slices.Replace(ranges, widest, widest+1,
			Range{ID: strconv.Itoa(next), Min: r.Min, Max: middle, Parents: parents, Version: version},
			Range{ID: strconv.Itoa(next + 1), Min: middle, Max: r.Max, Parents: parents, Version: version})
		next += 2
	}
	return ranges, next
}

func (r Range) parseBounds(space *big.Int) (low, high *big.Int) {
	low, high = new(big.Int), new(big.Int).Set(space)
	low.SetString(r.Min, 16)
	if r.Max != "FF" {
		high.SetString(r.Max, 16)
	}
	return low, high
}

// Ranges returns the physical partitions in key order. The caller must not change them.
func (c *Container) Ranges() []Range { return c.ranges }

// RangesVersion returns a number that increases whenever a range splits.
func (c *Container) RangesVersion() (newest uint64) {
	for _, r := range c.ranges {
		newest = max(newest, r.Version)
	}
	return newest
}

// Range returns the range with this id. If none exists, for example because it was split, the error makes the client
// read the ranges again.
func (c *Container) Range(id string) (*Range, error) {
	for i := range c.ranges {
		if c.ranges[i].ID == id {
			return &c.ranges[i], nil
		}
	}
	return nil, &Error{Status: http.StatusGone, SubStatus: 1002, Message: "partition key range " + id + " is gone; read the ranges again"}
}

// RangeOf returns the range that contains a logical partition.
func (c *Container) RangeOf(pk Partition) *Range {
	if len(c.ranges) > 1 {
		epk := c.effectiveKey(pk)
		for i := range c.ranges {
			if c.ranges[i].hasKey(epk) {
				return &c.ranges[i]
			}
		}
	}
	return &c.ranges[0]
}

// countRangesFor returns how many physical partitions are needed for a throughput and a size.
func countRangesFor(throughput int, bytes, limit int64) int {
	n := max((throughput+throughputPerRange-1)/throughputPerRange, int((bytes+limit-1)/limit))
	return max(1, n)
}
