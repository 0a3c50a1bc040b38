package objects

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A late event is stored even if it moves more spilled rows than fit in a batch of 100 operations.
func TestALateEventMovesAnyNumberOfSpilledRows(t *testing.T) {
	const rows = 150
	for name, version := range map[string]func(i int) string{
		"one version":        func(int) string { return "" },
		"a version each row": func(i int) string { return fmt.Sprint("/v", i) },
	} {
		t.Run(name, func(t *testing.T) {
			a := accounttest.New(t, embedded.Options{}, Containers())
			stores := []repository.Objects{memory.NewObjects(), New(a.Connect(), Options{Shards: 1})}
			object := must(domain.ParseObjectName("bucket", "key"))
			report := func(event string, after time.Duration) repository.ObjectReport {
				e := objecttest.Calls("[" + event + "]")[0][0]
				e.Time = e.Time.Add(after)
				e.Carrier.Message = fmt.Sprint("crawl at ", after)
				return repository.ObjectReport{Name: object, ObjectEvent: e}
			}
			calls := [][]repository.ObjectReport{{report("C@01", 0)}}
			for i := range rows {
				calls = append(calls, []repository.ObjectReport{report("L@-"+version(i), time.Duration(1+i)*time.Hour)})
			}
			calls = append(calls, []repository.ObjectReport{report("C@05", time.Minute), report("D@06", 2*time.Minute)})
			var histories []string
			for _, s := range stores {
				for _, call := range calls {
					results, err := s.Ingest(t.Context(), call)
					require.NoError(t, err)
					for _, r := range results {
						require.NoError(t, r.Err)
						require.Equal(t, domain.ObjectStored, r.Outcome)
					}
				}
				o, err := s.Object(t.Context(), object)
				require.NoError(t, err)
				all, err := s.History(t.Context(), object, domain.ObjectOrder{}, 1000)
				require.NoError(t, err)
				slices.Reverse(all)
				histories = append(histories, objecttest.Describe(all, o.Current))
			}
			require.Equal(t, histories[0], histories[1])
		})
	}
}
