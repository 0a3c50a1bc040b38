package main

import (
	"cmp"
	"slices"
)

// A span is a range of seeds.
type span struct {
	From  uint64 `json:"from"`
	Seeds uint64 `json:"seeds"`
}

func (s span) endSeed() uint64 { return s.From + s.Seeds }

// spans are ranges of seeds in ascending order that neither overlap nor touch.
type spans []span

// withSpan returns s, extended by a range.
func (s spans) withSpan(more span) spans {
	all := append(slices.Clone(s), more)
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.From, b.From) })
	joined := all[:1]
	for _, next := range all[1:] {
		last := &joined[len(joined)-1]
		if next.From > last.endSeed() {
			joined = append(joined, next)
			continue
		}
		last.Seeds = max(last.endSeed(), next.endSeed()) - last.From
	}
	return joined
}

// missingFrom returns the seeds that are in a span and not in s, divided into spans of up to size
// seeds.
func (s spans) missingFrom(of span, size uint64) []span {
	var gaps []span
	cut := func(from, to uint64) {
		for ; from < to; from += size {
			gaps = append(gaps, span{from, min(size, to-from)})
		}
	}
	from := of.From
	for _, have := range s {
		if have.endSeed() <= from || have.From >= of.endSeed() {
			continue
		}
		cut(from, max(have.From, from))
		from = have.endSeed()
	}
	cut(from, max(of.endSeed(), from))
	return gaps
}

// hasAll reports whether s contains every seed of a span.
func (s spans) hasAll(all span) bool { return len(s.missingFrom(all, all.Seeds+1)) == 0 }

// countSeeds returns the number of seeds.
func (s spans) countSeeds() uint64 {
	var n uint64
	for _, each := range s {
		n += each.Seeds
	}
	return n
}
