package cosmos

import (
	"context"
	"encoding/binary"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A filterDoc is the filter of a sealed drawer, stored beside its pages by an older version. This version
// reads filterDocs, and writes block filters instead; see block_filter.go.
type filterDoc struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"` // the id of the drawer
	Count        int    `json:"count"`
	Filter       []byte `json:"filter"`
	client.Document
}

const filterID = "filter"

// A filter reports whether a sealed drawer may hold an event: "no" is certain, "yes" is wrong less than
// once in ten million times. It is a Bloom filter in blocks of 512 bits, with 64 bits for each event.
type filter []byte

const (
	filterBlock  = 64 // bytes
	filterProbes = 12
	bitsPerEvent = 64
)

func newFilter(events int) filter {
	blocks := max(1, (events*bitsPerEvent+filterBlock*8-1)/(filterBlock*8))
	return make(filter, blocks*filterBlock)
}

func (f filter) add(id domain.EventID) { f.addHash(hashOf(id)) }

func (f filter) addHash(hash uint64) {
	block, h := f.pickBlock(hash)
	for range filterProbes {
		bit := h >> 55
		block[bit/8] |= 1 << (bit % 8)
		h = nextHash(h)
	}
}

func (f filter) mayHold(id domain.EventID) bool { return f.mayHoldHash(hashOf(id)) }

// mayHoldHash is mayHold with the hash of the id, for callers that query many filters for one id.
func (f filter) mayHoldHash(hash uint64) bool {
	if len(f) == 0 {
		return false
	}
	block, h := f.pickBlock(hash)
	for range filterProbes {
		bit := h >> 55
		if block[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
		h = nextHash(h)
	}
	return true
}

func hashOf(id domain.EventID) uint64 {
	return mixBits(mixBits(binary.LittleEndian.Uint64(id[:8])) ^ binary.LittleEndian.Uint64(id[8:]))
}

// pickBlock returns the block of an id with hash h, and the first of the hashes that nextHash continues.
// The upper nine bits of each hash select one bit of the id in the block.
func (f filter) pickBlock(h uint64) ([]byte, uint64) {
	at := h % uint64(len(f)/filterBlock) * filterBlock
	return f[at : at+filterBlock], mixBits(h + 0x9E3779B97F4A7C15)
}

// nextHash makes a step of a linear congruential generator, whose upper bits are well distributed.
func nextHash(h uint64) uint64 { return h*0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019 }

// mixBits is the finalizer of SplitMix64. It spreads sequential UUIDs as well as random ones.
func mixBits(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// readOlderFilter returns the filter that an older version has stored for a sealed drawer, or nil if no
// such filter exists.
func (c *call) readOlderFilter(ctx context.Context, e extent) (filter, error) {
	var doc filterDoc
	_, err := c.Read(ctx, c.r.db.cabinets, e.drawer, filterID, &doc)
	switch {
	case client.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case doc.Count != e.limit || len(doc.Filter) != len(newFilter(e.limit)):
		return nil, nil
	}
	return doc.Filter, nil
}
