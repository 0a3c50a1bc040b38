package repositorytest

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain/objecttest"
)

var objectExistsRules = []objectRule{
	{"AResultReportsWhetherTheObjectExists", func(f *objectFixture) {
		for _, table := range slices.Concat(objecttest.NativeTables, objecttest.NullTables) {
			f := f.copyFor(f.T)
			for range 2 { // in the second iteration, all events are duplicates
				for _, events := range objecttest.Calls(table.Script) {
					results, err := f.Ingest(f.ctx, f.toReports(events...))
					require.NoError(f, err)
					current := f.readObject().Current
					for i := range results {
						require.Equal(f, current != nil, results[i].Exists, "%s, event %d", table.Name, i)
					}
				}
			}
		}
	}},
}
