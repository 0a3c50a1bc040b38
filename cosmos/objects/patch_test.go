package objects

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

func applyPatch(document, operations []byte) ([]byte, error) {
	p, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return nil, err
	}
	return p.Apply(document)
}

// patchRows runs a job that adds an element to a list in the attributes of each row, and returns its
// counts.
func patchRows(t *testing.T, node *Store) domain.JobCounts {
	t.Helper()
	service := ledger.New(ledger.Ports{Objects: node, Jobs: node}, ledger.Options{JSONPatch: applyPatch})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		service.RunJobs(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	job, err := service.StartPatch(ctx, map[string][]string{"bucket": {"bucket"}, "currentState": {"false"}}, []byte(`[{"op": "add", "path": "/list/-", "value": 1}]`))
	require.NoError(t, err)
	job, err = service.WaitForJob(ctx, job)
	require.NoError(t, err)
	require.Equal(t, domain.JobCompleted, job.State, job.Report)
	return job.Counts
}

// Each request of a patch job fails once with each fault. The job patches each row once, in the document
// of its object or in the document of the spilled row.
func TestEveryRequestOfAPatchJobBrokenOnce_PatchesEachRowOnce(t *testing.T) {
	const objects = 3
	for _, fault := range faulty.CommonFaults() {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for n := 1; ; n++ {
					a := accounttest.New(t, embedded.Options{}, Containers())
					node := New(a.Connect(), Options{Shards: 2, Limits: domain.ObjectLimits{Rows: 2}})
					rows := 0
					for i := range objects {
						for _, call := range objecttest.Calls("[C@0001] [C@0002] [C@0003] [D@0004]") {
							e := call[0]
							e.Attributes = `{"list":[]}`
							_, err := node.Ingest(t.Context(), []repository.ObjectReport{{Name: must(domain.ParseObjectName("bucket", fmt.Sprint("key", i))), ObjectEvent: e}})
							require.NoError(t, err)
							rows++
						}
					}
					a.Transport.BreakOne(n, fault)
					counts := patchRows(t, node)
					broken := a.Transport.Calls() >= n
					a.Transport.Break(nil)
					require.EqualValues(t, rows, counts.Changed, "request %d", n)
					for i := range objects {
						all, err := node.History(t.Context(), must(domain.ParseObjectName("bucket", fmt.Sprint("key", i))), domain.ObjectOrder{}, 10)
						require.NoError(t, err)
						for _, r := range all {
							require.Equal(t, `{"list":[1]}`, r.Attributes, "request %d", n)
						}
					}
					if !broken {
						require.Greater(t, n, 20)
						return
					}
				}
			})
		})
	}
}
