package objects

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// Each request of Amend fails once with each fault. Afterwards the object, the document of the spilled
// row and the copy of this row contain the change exactly once.
func TestEveryRequestOfAnAmendmentBrokenOnce_ChangesTheRowOnce(t *testing.T) {
	for _, fault := range faulty.CommonFaults() {
		t.Run(fault.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // in simulated time, so that backoffs take no real time
				for n := 1; ; n++ {
					a := accounttest.New(t, embedded.Options{}, Containers())
					node := New(a.Connect(), Options{Shards: 1, Limits: domain.ObjectLimits{Rows: 1}})
					name := must(domain.ParseObjectName("bucket", "key"))
					for _, call := range objecttest.Calls("[C@0001/old] [C@0002/v] [D@0003/v] [C@0004/w] [D@0005/w]") {
						_, err := node.Ingest(t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: call[0]}})
						require.NoError(t, err)
					}
					a.Transport.BreakOne(n, fault)
					_, err := node.Amend(t.Context(), name, domain.ObjectRowID{}, func(facts domain.ObjectFacts) (domain.ObjectFacts, error) {
						facts.Attributes += "x"
						return facts, nil
					})
					require.NoError(t, err, "request %d", n)
					broken := a.Transport.Calls() >= n
					a.Transport.Break(nil)
					o, err := node.Object(t.Context(), name)
					require.NoError(t, err)
					require.EqualValues(t, 4, o.Spilled)
					require.Equal(t, "x", o.Current.Attributes, "request %d", n)
					row, err := node.Row(t.Context(), name, o.Current.ID())
					require.NoError(t, err)
					require.Equal(t, "x", row.Attributes, "request %d", n)
					heads, err := node.Ingest(t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: objecttest.Calls("[D@0006/z]")[0][0]}})
					require.NoError(t, err)
					require.NoError(t, heads[0].Err)
					o, err = node.Object(t.Context(), name) // Object reads the current row from its copy
					require.NoError(t, err)
					require.Equal(t, "x", o.Current.Attributes, "request %d", n)
					if !broken {
						require.Greater(t, n, 3)
						return
					}
				}
			})
		})
	}
}
