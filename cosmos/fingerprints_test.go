package cosmos

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/domain"
)

// filterOf returns the filter of a drawer that holds hashes.
func filterOf(ordinal int, hashes []uint64) *fingerprintSet {
	at := drawerSegment(ordinal)
	keys := make([]fingerprintKey, len(hashes))
	for i, hash := range hashes {
		keys[i] = at.keyOf(hash, 0)
	}
	return newFingerprintSet(at, keys)
}

// mergedTree returns all segments of a block, merged from the filters of its drawers.
func mergedTree(b block, drawers [][]uint64) []*fingerprintSet {
	if b.level == 0 {
		if b.number >= len(drawers) || drawers[b.number] == nil {
			return nil
		}
		return []*fingerprintSet{filterOf(b.firstOrdinal(), drawers[b.number])}
	}
	var children [fanOut][]*fingerprintSet
	for i := range fanOut {
		children[i] = mergedTree(b.child(i), drawers)
	}
	var all []*fingerprintSet
	for segment := range b.child(0).segmentCount() {
		var sets [fanOut]*fingerprintSet
		none := true
		for i := range fanOut {
			if children[i] != nil {
				sets[i], none = children[i][segment], false
			}
		}
		if none {
			return nil
		}
		all = append(all, mergeSets(b, &sets)...)
	}
	return all
}

func TestMergedFilters_HoldEveryEventOfEveryDrawer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.IntRange(0, 3).Draw(t, "level")
		b := block{level, rapid.IntRange(0, 3).Draw(t, "number")}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		drawers := make([][]uint64, b.endOrdinal()-1)
		for i := b.firstOrdinal() - 1; i < len(drawers); i++ {
			switch rng.IntN(5) {
			case 0: // gone
			case 1:
				drawers[i] = []uint64{}
			default:
				for range rng.IntN(200) {
					drawers[i] = append(drawers[i], rng.Uint64())
				}
			}
		}
		sets := mergedTree(b, drawers)
		for i := b.firstOrdinal() - 1; i < len(drawers); i++ {
			for _, hash := range drawers[i] {
				at := b.segmentOf(hash)
				set := sets[at.segment]
				require.Equal(t, at, set.blockSegment)
				require.Contains(t, set.appendOrdinals(hash, nil), i+1)
				decoded, err := decodeFingerprints(at, set.encode())
				require.NoError(t, err)
				require.Contains(t, decoded.appendOrdinals(hash, nil), i+1)
			}
		}
	})
}

func TestBlocksBetween_CoverEachDrawerOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		floor := rapid.IntRange(1, 3000).Draw(t, "floor")
		last := rapid.IntRange(floor-1, 5000).Draw(t, "last")
		next, ofLevel := 0, make(map[int]int)
		for _, b := range blocksBetween(floor, last) {
			if next == 0 {
				require.LessOrEqual(t, b.firstOrdinal(), floor)
				next = b.firstOrdinal()
			}
			require.Equal(t, next, b.firstOrdinal())
			next = b.endOrdinal()
			require.Greater(t, next, floor)
			ofLevel[b.level]++
			require.Less(t, ofLevel[b.level], fanOut)
		}
		if floor <= last {
			require.Equal(t, last+1, next)
		}
	})
	assert.Len(t, blocksBetween(1, 9_999), 12, "of a hundred million events")
}

func TestAFilterTakesFourBytesAnIDAtEachLevel(t *testing.T) {
	const perDrawer = 10_000
	rng := rand.New(rand.NewPCG(1, 2))
	for level := range 4 {
		b := block{level: level}
		drawers := make([][]uint64, b.endOrdinal()-1)
		for i := range drawers {
			for range perDrawer {
				drawers[i] = append(drawers[i], rng.Uint64())
			}
		}
		bytes, ids, wrong := 0, 0, 0
		sets := mergedTree(b, drawers)
		for _, set := range sets {
			bytes, ids = bytes+len(set.encode()), ids+set.len()
		}
		require.Equal(t, perDrawer*len(drawers), ids)
		assert.InDelta(t, 4.1, float64(bytes)/float64(ids), 0.05)
		for range 1_000_000 {
			hash := rng.Uint64()
			if len(sets[b.segmentOf(hash).segment].appendOrdinals(hash, nil)) > 0 {
				wrong++
			}
		}
		assert.LessOrEqual(t, wrong, 2, "of a million foreign ids")
	}
}

func TestADamagedFilterIsNotDecoded(t *testing.T) {
	ids := make(map[domain.EventID]domain.Digest)
	for i := range 100 {
		ids[domain.EventID{byte(i)}] = domain.Digest{}
	}
	sound := newFingerprintSet(drawerSegment(7), keysOf(ids)).encode()
	_, err := decodeFingerprints(drawerSegment(7), sound)
	require.NoError(t, err)
	_, err = decodeFingerprints(drawerSegment(8), sound)
	require.ErrorIs(t, err, errFingerprints, "it is of another drawer")
	for i := range sound {
		damaged := append([]byte(nil), sound...)
		damaged[i] ^= 4
		_, err := decodeFingerprints(drawerSegment(7), damaged)
		require.ErrorIs(t, err, errFingerprints, "byte %d", i)
		_, err = decodeFingerprints(drawerSegment(7), sound[:i])
		require.ErrorIs(t, err, errFingerprints)
	}
}
