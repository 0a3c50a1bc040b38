package push

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/delivery/deliverytest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// addToOneShard adds receivers until three of them are in the same shard, and returns these three
// receivers.
func addToOneShard(w *deliverytest.World) []*deliverytest.Receiver {
	shards := make(map[int][]*deliverytest.Receiver)
	for {
		r := w.Add(&deliverytest.Receiver{Policy: domain.DefaultPolicy()})
		shard := repository.ShardOf(r.ID)
		if shards[shard] = append(shards[shard], r); len(shards[shard]) == 3 {
			return shards[shard]
		}
	}
}

// gaugeOf returns the value of a gauge without labels.
func gaugeOf(t *testing.T, metrics *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := metrics.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	require.Fail(t, "there is no metric "+name)
	return 0
}

func TestDocumentsOfANewerFormat_StopOnlyTheirCursors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *Store
		var logged logBuffer
		metrics := prometheus.NewRegistry()
		w := deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores {
			r := newRig(t, embedded.Options{Clock: clock.Now})
			s = r.node(Options{Clock: clock.Now, Logger: logged.logger(), Registerer: metrics})
			return r.stores(s)
		})
		three := addToOneShard(w)
		entry, cursor, other := three[0].ID, three[1].ID, three[2]
		shard := shardKey(repository.ShardOf(entry))
		s.overwrite(t, shard, entry.String(), map[string]any{"v": entryDocument.Format + 1, "stream": 7})
		s.overwrite(t, cursor.String(), cursorID, map[string]any{"v": cursorDocument.Format + 1, "at": "the end"})

		n := w.Start(delivery.Options{Logger: logged.logger()})
		for range 5 {
			w.Publish(n, 1)
			<-time.After(time.Minute)
		}
		require.Len(t, other.Taken(), 5)
		require.Empty(t, three[0].Calls())
		require.Empty(t, three[1].Calls())
		require.Equal(t, 2, logged.count("written by a newer version"), "one line each, however often they are read")
		require.Equal(t, 1, logged.count(`document="`+entry.String()+" of "+shard))
		require.Equal(t, 1, logged.count(`document="cursor of `+cursor.String()))
		require.InDelta(t, 2, gaugeOf(t, metrics, "messagehub_push_newer_format_documents"), 0)

		s.overwrite(t, shard, entry.String(), map[string]any{"kind": "entry", "stream": w.Stream.String()}) // restore the entry
		<-time.After(time.Minute)
		require.Len(t, three[0].Taken(), 5)
		require.InDelta(t, 1, gaugeOf(t, metrics, "messagehub_push_newer_format_documents"), 0)
		n.Stop()
	})
}
