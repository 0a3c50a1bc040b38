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
	now = now.Add(time.Minute)
	require.Empty(t, f.show("/broker/overdue?delay=2m", asOperator)["jobs"])

	shards := make(map[string]bool)
	pages := 0
	for next := "/broker/overdue?delay=59s"; next != ""; pages++ {
		shown := f.show(next, asOperator)
		for _, j := range shown["jobs"].([]any) {
			job := j.(map[string]any)
			require.Equal(t, "In-flight", job["status"])
			require.Equal(t, path, job["messageUrl"])
			require.False(t, shards[job["retriggerUrl"].(string)])
			shards[job["retriggerUrl"].(string)] = true
			f.do("POST", job["retriggerUrl"].(string), "", asOperator...).wants(202)
		}
		next, _ = shown["next"].(string)
	}
	require.Greater(t, len(shards), repository.ShardCount/2)
	require.LessOrEqual(t, len(shards), repository.ShardCount)
}
