package objects

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// The spilled rows of an object fill several result pages, one of which comes from a stale replica. The
// store detects this, and no spilled row is missing.
func TestAStaleResultPageHidesNoSpilledRow(t *testing.T) {
	const versions, reads = 1100, 3 // versions do not fit into a result page of 1,000 documents; reads is the number of reads by the last event
	var staleRead atomic.Int64      // number of reads before the stale read
	staleRead.Store(-1)
	a := accounttest.New(t, embedded.Options{Consistency: "Session", Stale: func() int {
		if staleRead.Add(-1) == -1 {
			return 1
		}
		return 0
	}}, Containers())
	s := New(a.Connect(), Options{Shards: 1, Limits: domain.ObjectLimits{Rows: 1}})
	name := must(domain.ParseObjectName("bucket", "key"))
	ingest := func(events ...string) {
		t.Helper()
		var reports []repository.ObjectReport
		for _, e := range events {
			reports = append(reports, repository.ObjectReport{Name: name, ObjectEvent: objecttest.Calls("[" + e + "]")[0][0]})
		}
		results, err := s.Ingest(t.Context(), reports)
		require.NoError(t, err)
		for _, r := range results {
			require.NoError(t, r.Err)
		}
	}
	var all []string
	for i := range versions {
		all = append(all, fmt.Sprintf("C@%04X/v%d", i, i))
	}
	ingest(all...)

	next := 0
	lastOfPages := func() string { // returns a version whose copy has one of the lowest ids
		for {
			next++
			version := fmt.Sprint("w", next)
			if strings.HasPrefix(headID(name.Key(), must(domain.ParseVersionID(version))), headPrefix+"00") {
				return version
			}
		}
	}
	for n := range reads {
		expected, top := lastOfPages(), fmt.Sprint("x", n)
		ingest(fmt.Sprintf("C@%04X/%s", 0xA000+3*n, expected), fmt.Sprintf("C@%04X/%s", 0xA001+3*n, top))
		staleRead.Store(int64(n))
		ingest(fmt.Sprintf("D@%04X/%s", 0xA002+3*n, top))
		require.Negative(t, staleRead.Swap(-1), "the event has fewer reads")
		o, err := s.Object(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, expected, o.Current.Version.String(), "read %d is stale", n)
	}
}
