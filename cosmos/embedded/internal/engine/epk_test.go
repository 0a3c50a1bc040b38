package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func newKeyedContainer(t testing.TB, version int, paths string, ranges int) *Container {
	t.Helper()
	r := resourceRecord{
		Number: 1, Parent: 1, JSON: fmt.Appendf(nil, `{"id":"c","partitionKey":{"paths":%s,"kind":"MultiHash","version":%d}}`, paths, version),
		Ranges: firstRanges(ranges, version, 1), NextRange: ranges,
	}
	c, err := (&Engine{}).newContainer("db", r)
	require.NoError(t, err)
	return c
}

// The test vectors are from Azure's clients. In their hashes of version 2, the two highest bits are not yet cleared.
func TestEffectiveKey_IsThatOfTheClients(t *testing.T) {
	for _, tc := range []struct{ pk, v1, v2 string }{
		{`[""]`, "0000000000000000000000003CCCB0FF", "32E9366E637A71B4E710384B2F4970A0"},
		{`["asdf"]`, "000000000000000000000000B02BABC2", "208BF1D598F5B63AD5520F04FE58C5E8"},
		{`["/path1"]`, "000000000000000000000000A6C6298A", "3499FD5198AE0F1EB6B77F6E428D2FF0"},
		{`[0]`, "0000000000000000000000001EDA80A6", "155B95BEDAC4B1E9EC1CDC9BB0DDDE58"},
		{`[1]`, "000000000000000000000000E1655A93", "20CD98B339BA78A5D0CF6953B87070B0"},
		{`[-1]`, "000000000000000000000000452BDBE7", "19938E7A936C1C5B9E3AE842BBC16839"},
		{`[{}]`, "000000000000000000000000514E28B7", "11622DAA78F835834610ABE56EFF5CB5"},
		{`[null]`, "000000000000000000000000E45AD1AB", "378867E4430E67857ACE5C908374FE16"},
		{`[true]`, "0000000000000000000000005E2A8076", "0E711127C5B5A8E4726AC6DD306A3E59"},
		{`[false]`, "0000000000000000000000006C27D09F", "2FE1BE91E90A3439635E0E9E37361EF2"},
	} {
		require.Equal(t, tc.v1, newKeyedContainer(t, 1, `["/pk"]`, 1).effectiveKey(Partition(tc.pk)), tc.pk)
		require.Equal(t, tc.v2, newKeyedContainer(t, 2, `["/pk"]`, 1).effectiveKey(Partition(tc.pk)), tc.pk)
	}
	require.Equal(t, "3499FD5198AE0F1EB6B77F6E428D2FF0"+"27A1848BD1102A3B65AFF266874D0FF5"+"2CA5ABC953544CF9BD94776DA5E6EA52",
		newKeyedContainer(t, 2, `["/a","/b","/c"]`, 1).effectiveKey(`["/path1","/path2","/path3"]`))
}

// TestSplitRanges_CoverTheKeySpace splits ranges repeatedly. Every key must be in exactly one range, and no id may be
// reused.
func TestSplitRanges_CoverTheKeySpace(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		version := rapid.IntRange(1, 2).Draw(r, "version")
		c := newKeyedContainer(t, version, `["/pk"]`, rapid.IntRange(1, 7).Draw(r, "first"))
		seen := map[string]bool{}
		for _, p := range c.ranges {
			seen[p.ID] = true
		}
		for _, n := range rapid.SliceOfN(rapid.IntRange(1, 40), 0, 4).Draw(r, "counts") {
			before := c.ranges
			c.ranges, c.nextRange = splitRanges(c.ranges, n, c.nextRange, version, uint64(n))
			require.Len(t, c.ranges, max(n, len(before)))
			for _, p := range c.ranges {
				if _, err := (&Container{ranges: before}).Range(p.ID); err != nil {
					require.False(t, seen[p.ID], "id %s is used again", p.ID)
					require.NotEmpty(t, p.Parents)
				}
				seen[p.ID] = true
			}
		}
		require.Equal(t, "", c.ranges[0].Min)
		require.Equal(t, "FF", c.ranges[len(c.ranges)-1].Max)
		for i := range c.ranges[1:] {
			require.Equal(t, c.ranges[i].Max, c.ranges[i+1].Min)
			require.Negative(t, compareEPK(c.ranges[i].Min, c.ranges[i].Max))
		}
		epk := c.effectiveKey(Partition(fmt.Sprintf("[%q]", rapid.StringMatching("[a-z]{0,9}").Draw(r, "key"))))
		owners := 0
		for _, p := range c.ranges {
			if p.hasKey(epk) {
				owners++
			}
		}
		require.Equal(t, 1, owners, epk)
	})
}
