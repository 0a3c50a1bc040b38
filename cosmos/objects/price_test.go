package objects

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// TestEvents_CostUpToTheirLimit measures request units for each event, with keys of 40 characters and the
// facts that S3 reports.
func TestEvents_CostUpToTheirLimit(t *testing.T) {
	a := accounttest.New(t, embedded.Options{}, Containers())
	s := New(a.Connect(), Options{Shards: 1})
	report := func(key, event string) repository.ObjectReport {
		e := objecttest.Calls("[" + event + "]")[0][0]
		size := int64(123_456_789)
		e.ObjectFacts = domain.ObjectFacts{
			Size: &size, ETag: `"0123456789abcdef0123456789abcdef"`, StorageClass: domain.ClassStandard, LastModified: e.Time, Reason: domain.CreatedPut,
		}
		return repository.ObjectReport{Name: must(domain.ParseObjectName("bucket", fmt.Sprintf("%40s", key))), ObjectEvent: e}
	}
	measure := func(what string, limit float64, calls ...[]repository.ObjectReport) {
		t.Helper()
		before, events := a.Engine.RequestUnits(), 0
		for _, call := range calls {
			events += len(call)
			results, err := s.Ingest(t.Context(), call)
			require.NoError(t, err)
			for _, r := range results {
				require.NoError(t, r.Err)
			}
		}
		price := (a.Engine.RequestUnits() - before) / float64(events)
		t.Logf("%s: %.1f RU", what, price)
		require.LessOrEqual(t, price, limit, what)
	}
	batch := func(prefix, event string) (call []repository.ObjectReport) {
		for i := range 32 {
			call = append(call, report(fmt.Sprint(prefix, i), event))
		}
		return call
	}
	_, err := s.Ingest(t.Context(), []repository.ObjectReport{report("first", "C@C1")}) // creates the shards of the bucket
	require.NoError(t, err)

	measure("new", 11, []repository.ObjectReport{report("a", "C@C1")})
	measure("known", 16, []repository.ObjectReport{report("a", "D@D1")})
	measure("duplicate", 16, []repository.ObjectReport{report("a", "D@D1")})
	measure("new, 32 in a call", 8.5, batch("b", "C@C1"))
	measure("known, 32 in a call", 12.5, batch("b", "D@D1"))
	measure("duplicate, 32 in a call", 12.5, batch("b", "D@D1"))
	var hot [][]repository.ObjectReport
	for i := range 200 {
		hot = append(hot, []repository.ObjectReport{report("hot", fmt.Sprintf("%s@%06X", "CD"[i%2:i%2+1], i+1))})
	}
	measure("hot key", 26, hot...)
}

// TestLists_CostUpToTheirLimit measures request units for a page of 100 of 2,000 objects in 16 shards.
func TestLists_CostUpToTheirLimit(t *testing.T) {
	a := accounttest.New(t, embedded.Options{}, Containers())
	s := New(a.Connect(), Options{})
	for from := 0; from < 2000; from += 500 {
		var reports []repository.ObjectReport
		for i := range 500 {
			e := objecttest.Calls("[C@C1]")[0][0]
			e.ETag = fmt.Sprintf(`"%d"`, from+i)
			reports = append(reports, repository.ObjectReport{Name: must(domain.ParseObjectName("bucket", fmt.Sprintf("key%05d", from+i))), ObjectEvent: e})
		}
		_, err := s.Ingest(t.Context(), reports)
		require.NoError(t, err)
	}
	one := repository.ObjectMatch{Field: domain.FieldETag, Values: []string{`"777"`}}
	for _, tc := range []struct {
		name  string
		r     repository.ObjectRange
		want  int
		limit float64
	}{
		{"in order", repository.ObjectRange{}, 100, 65},
		{"in any order", repository.ObjectRange{AnyOrder: true}, 100, 12},
		{"with a prefix", repository.ObjectRange{Prefix: "key01"}, 100, 75},
		{"with one ETag", repository.ObjectRange{OnlyCurrent: true, Matches: []repository.ObjectMatch{one}}, 1, 95},
	} {
		tc.r.Bucket = "bucket"
		before := a.Engine.RequestUnits()
		page, err := s.List(t.Context(), tc.r, 100)
		require.NoError(t, err)
		require.Len(t, page.Objects, tc.want, tc.name)
		price := a.Engine.RequestUnits() - before
		t.Logf("%s: %.1f RU", tc.name, price)
		require.LessOrEqual(t, price, tc.limit, tc.name)
	}
	before := a.Engine.RequestUnits()
	n, err := s.Count(t.Context(), repository.ObjectRange{Bucket: "bucket", OnlyCurrent: true})
	require.NoError(t, err)
	require.EqualValues(t, 2000, n)
	require.LessOrEqual(t, a.Engine.RequestUnits()-before, 65.0, "a count")
}
