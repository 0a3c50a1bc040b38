package api_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/repository"
)

func TestOverdueJobsAreListedInPages(t *testing.T) {
	now := time.Now()
	f := serve(t, withBroker(t, func(_ *broker.Ports, o *broker.Options) {
		o.Clock = func() time.Time { return now }
		o.Orphaned = func() (all []int) {
			for shard := range repository.ShardCount {
				all = append(all, shard)
			}
			return all
		}
	}))
	f.putShop()
	for i := range 150 {
		f.put(fmt.Sprintf("/channel/prices/consumer/other-%d", i), "token", "x", "callbackUrl", "https://other.example/").wants(201)
	}
	path := f.broadcast("x")
	now = now.Add(time.Hour)
	list := func(path string) (jobs []any, next string) {
		shown := f.show(path, asOperator)
		next, _ = shown["next"].(string)
		return shown["jobs"].([]any), next
	}
	jobs, next := list("/broker/overdue?delay=10h")
	require.Empty(t, jobs)
	jobs, next = list(next) // the first page covers 100 of the 151 consumers
	require.Empty(t, jobs)
	require.Empty(t, next)

	listed := make(map[string]bool)
	for next = "/broker/overdue?delay=1m"; next != ""; {
		jobs, next = list(next)
		for _, j := range jobs {
			job := j.(map[string]any)
			require.Equal(t, "In-flight", job["status"])
			require.Equal(t, "prices", job["channel"])
			require.Equal(t, path, job["messageUrl"])
			listed[job["retriggerUrl"].(string)] = true
			f.do("POST", job["retriggerUrl"].(string), "", asOperator...).wants(202)
		}
	}
	require.Greater(t, len(listed), repository.ShardCount/2)
	require.LessOrEqual(t, len(listed), repository.ShardCount)
}
