package repositorytest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// ingestMany ingests an event for each key, with the facts that fill sets, in calls of 20 events.
func (f *objectFixture) ingestMany(keys []string, fill func(i int, e *domain.ObjectEvent)) {
	f.Helper()
	var reports []repository.ObjectReport
	for i, key := range keys {
		e := objecttest.Calls("[C@C1]")[0][0]
		fill(i, &e)
		reports = append(reports, reportsOf(f.objectName(key), e)...)
	}
	for call := range slices.Chunk(reports, 20) {
		f.ingestReports(call...)
	}
}

// countRange counts a range of the case's bucket.
func (f *objectFixture) countRange(r repository.ObjectRange) int64 {
	f.Helper()
	r.Bucket = f.bucket
	n, err := f.Count(f.ctx, r)
	require.NoError(f, err)
	return n
}

var rangeRules = []objectRule{
	{"AListInAnyOrderHasEachObjectOnce_AndKeepsItsOrder", func(f *objectFixture) {
		var keys []string
		for i := range 60 {
			keys = append(keys, fmt.Sprintf("key%02d", i))
		}
		f.ingestMany(keys, func(int, *domain.ObjectEvent) {})
		all := f.listKeys(repository.ObjectRange{AnyOrder: true}, 1000)
		require.ElementsMatch(f, keys, all)
		for _, limit := range []int{1, 7, 59, 60, 61} {
			require.Equal(f, all, f.listKeys(repository.ObjectRange{AnyOrder: true}, limit))
			require.ElementsMatch(f, keys[10:20], f.listKeys(repository.ObjectRange{AnyOrder: true, Prefix: "key1"}, limit))
		}
	}},
	{"APageInOrderHasAllThatOneShardHas", func(f *objectFixture) {
		var keys []string
		for i := range 200 {
			keys = append(keys, fmt.Sprintf("key%03d", i))
		}
		f.ingestMany(keys, func(int, *domain.ObjectEvent) {})
		for _, limit := range []int{3, 50, 64, 199, 200, 201} {
			require.Equal(f, keys, f.listKeys(repository.ObjectRange{}, limit))
		}
	}},
	{"ObjectsAreFoundByTheFactsOfTheirCurrentRow", func(f *objectFixture) {
		keys := []string{"a", "b", "c", "d"}
		f.ingestMany(keys, func(i int, e *domain.ObjectEvent) {
			size := []int64{0, math.MaxInt64, 1<<53 + 1, 0}[i]
			version, err := domain.ParseVersionID([]string{"", "v", "v", "w"}[i])
			require.NoError(f, err)
			e.Version = version
			e.ObjectFacts = domain.ObjectFacts{
				Size: &size, ETag: `"` + keys[i] + `"`, SHA256: "sha" + keys[i], StorageClass: domain.ClassStandard, Reason: domain.CreatedPut, IngestID: "id " + keys[i],
			}
			if i == 3 {
				e.Size, e.StorageClass, e.ArchiveStatus, e.Reason = nil, domain.ClassIntelligentTiering, "ARCHIVE_ACCESS", domain.Crawl
			}
		})
		f.name = f.objectName("e")
		f.ingestScript("[C@C1] [D@D1]")
		match := func(field domain.ObjectField, values ...string) repository.ObjectMatch {
			return repository.ObjectMatch{Field: field, Values: values}
		}
		for _, tc := range []struct {
			want    string
			matches []repository.ObjectMatch
		}{
			{"a", []repository.ObjectMatch{match(domain.FieldETag, `"a"`)}},
			{"a c", []repository.ObjectMatch{match(domain.FieldETag, `"a"`, `"c"`, `"x"`)}},
			{"", []repository.ObjectMatch{match(domain.FieldETag, `a`)}},
			{"b", []repository.ObjectMatch{match(domain.FieldSHA256, "shab")}},
			{"a b c", []repository.ObjectMatch{match(domain.FieldStorageClass, domain.ClassStandard)}},
			{"d", []repository.ObjectMatch{match(domain.FieldArchiveStatus, "ARCHIVE_ACCESS")}},
			{"d", []repository.ObjectMatch{match(domain.FieldReason, "Crawl")}},
			{"c", []repository.ObjectMatch{match(domain.FieldIngestID, "id c")}},
			{"b", []repository.ObjectMatch{match(domain.FieldSize, "9223372036854775807")}},
			{"c", []repository.ObjectMatch{match(domain.FieldSize, "9007199254740993")}},
			{"", []repository.ObjectMatch{match(domain.FieldSize, "9007199254740992")}},
			{"a", []repository.ObjectMatch{match(domain.FieldSize, "0")}},
			{"a", []repository.ObjectMatch{match(domain.FieldVersion, "null")}},
			{"a d", []repository.ObjectMatch{match(domain.FieldVersion, "null", "w")}},
			{"b c", []repository.ObjectMatch{match(domain.FieldVersion, "v")}},
			{"b", []repository.ObjectMatch{match(domain.FieldVersion, "v"), match(domain.FieldETag, `"a"`, `"b"`)}},
			{"", []repository.ObjectMatch{match(domain.FieldVersion, "v"), match(domain.FieldETag, `"a"`)}},
		} {
			r := repository.ObjectRange{OnlyCurrent: true, Matches: tc.matches}
			require.Equal(f, tc.want, strings.Join(f.listKeys(r, 1), " "), "%+v", tc.matches)
			require.EqualValues(f, len(strings.Fields(tc.want)), f.countRange(r), "%+v", tc.matches)
		}
	}},
	{"ObjectsAreCounted", func(f *objectFixture) {
		require.Zero(f, f.countRange(repository.ObjectRange{}))
		long := strings.Repeat("l", 700)
		f.ingestMany([]string{"a", "a/1", "a/2", "b", long + "1", long + "2", long[1:] + "3"}, func(int, *domain.ObjectEvent) {})
		f.name = f.objectName("a/3")
		f.ingestScript("[C@C1] [D@D1]")
		require.EqualValues(f, 8, f.countRange(repository.ObjectRange{}))
		require.EqualValues(f, 8, f.countRange(repository.ObjectRange{After: "b"}))
		require.EqualValues(f, 7, f.countRange(repository.ObjectRange{OnlyCurrent: true}))
		require.EqualValues(f, 3, f.countRange(repository.ObjectRange{Prefix: "a/"}))
		require.EqualValues(f, 2, f.countRange(repository.ObjectRange{Prefix: "a/", OnlyCurrent: true}))
		require.EqualValues(f, 2, f.countRange(repository.ObjectRange{Prefix: long}))
	}},
	{"ABucketIsKnownFromItsFirstEvent", func(f *objectFixture) {
		before, err := f.Buckets(f.ctx)
		require.NoError(f, err)
		require.NotContains(f, before, f.bucket)
		f.ingestScript("[D@D1]")
		buckets, err := f.Buckets(f.ctx)
		require.NoError(f, err)
		require.Contains(f, buckets, f.bucket)
		require.True(f, slices.IsSorted(buckets))
	}},
}
