package push

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/watch"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// In each period, a node reads its shards once, and then unloads its cursors.
const period = 10 * time.Minute

// A watchedNode serves the watches of one document. It is the only node, and its calls to receivers send
// no request to the store.
type watchedNode struct {
	*Store
	rig      *rig
	service  *watch.Service
	resource *repository.Resource
	metrics  *prometheus.Registry
	change   float64 // request units of a change of a document that is not watched
	calls    atomic.Int64
}

// Receiver implements [delivery.Receivers].
func (n *watchedNode) Receiver(ctx context.Context, cursor domain.CursorID, isCurrent bool) (delivery.Receiver, error) {
	found, err := n.service.WatchOf(ctx, cursor, isCurrent)
	if err != nil {
		return delivery.Receiver{}, err
	}
	return delivery.Receiver{Policy: domain.WatchPolicy(time.Hour, 5), Target: found.CallbackURL}, nil
}

// Call implements [delivery.Caller].
func (n *watchedNode) Call(context.Context, delivery.Call) domain.Answer {
	n.calls.Add(1)
	return domain.Answer{Status: http.StatusOK}
}

// startWatchedNode starts a node with one document that has the given number of watches.
func startWatchedNode(t *testing.T, consistency string, watches int) *watchedNode {
	r := newRig(t, embedded.Options{Pessimistic: true, Consistency: consistency})
	metrics := prometheus.NewRegistry()
	n := &watchedNode{Store: r.node(Options{Registerer: metrics}), rig: r, metrics: metrics}
	engine := delivery.New(delivery.Ports{Streams: n, Cursors: n, Shards: n, Receivers: n, Caller: n}, delivery.Options{CheckInterval: period})
	relay := watch.NewRelay(n, n, engine.Published, watch.RelayOptions{SearchInterval: func(bool) time.Duration { return period }})
	base, err := domain.ParseResourceBase("http://hub.example.org")
	require.NoError(t, err)
	n.service = watch.New(watch.Ports{Watches: n, Resources: n, Changes: n, Cursors: n, Streams: n}, watch.Options{
		Base: base, Created: engine.Created, Changed: engine.Changed,
	})
	kept, err := domain.Kept(repositorytest.NewActor().String())
	require.NoError(t, err)
	n.resource = &repository.Resource{Resource: kept, Body: []byte(`{"state":0}`)}
	n.changeDocument(t)
	before := r.engine.RequestUnits()
	n.changeDocument(t)
	n.change = r.engine.RequestUnits() - before
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = engine.Run(ctx) })
	running.Go(func() { _ = relay.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	for i := range watches {
		_, err := n.service.Create(t.Context(), repositorytest.NewActor(), watch.Draft{
			Resource: base.URI(kept), CallbackURL: fmt.Sprintf("https://example.org/hook/%d", i),
		})
		require.NoError(t, err)
	}
	<-time.After(2*period + period/4) // after this time, the node is in the middle of a period
	return n
}

// changeDocument replaces the document with an equal one.
func (n *watchedNode) changeDocument(t *testing.T) {
	t.Helper()
	version, err := n.PutResource(t.Context(), n.resource)
	require.NoError(t, err)
	n.resource.Version = version
}

// payForPeriod calls f and returns the request units of f and the following period.
func (n *watchedNode) payForPeriod(t *testing.T, f func()) float64 {
	before := n.rig.engine.RequestUnits()
	f()
	<-time.After(period)
	return n.rig.engine.RequestUnits() - before
}

// unitsByOperation returns the total request units of each operation.
func (n *watchedNode) unitsByOperation(t *testing.T) map[string]float64 {
	families, err := n.metrics.Gather()
	require.NoError(t, err)
	units := make(map[string]float64)
	for _, f := range families {
		if f.GetName() != "messagehub_cosmos_request_units_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "operation" {
					units[l.GetValue()] += m.GetCounter().GetValue()
				}
			}
		}
	}
	return units
}

// payForExpiry deletes the entries of the stream and returns the request units, because an expiry costs
// as much as a deletion.
func (n *watchedNode) payForExpiry(t *testing.T) float64 {
	c := n.client.Begin("test")
	key := segmentKey(n.resource.Resource.Stream(), 0)
	all, err := client.All[struct {
		ID string `json:"id"`
	}](t.Context(), c.Query(n.streams, key, "SELECT c.id FROM c WHERE IS_DEFINED(c.ttl)"))
	require.NoError(t, err)
	before := n.rig.engine.RequestUnits()
	for _, d := range all {
		require.NoError(t, c.DeleteIfExists(t.Context(), n.streams, key, d.ID))
	}
	return n.rig.engine.RequestUnits() - before
}

func TestAWatch_CostsUpToItsLimit(t *testing.T) {
	for _, tc := range []struct {
		consistency string
		watches     int
		rounds      int
		limitRU     float64 // limit for the request units per notification, excluding the change itself
	}{
		{"Strong", 1, 20, 45},
		{"Session", 1, 20, 55},
		{"Strong", 1500, 2, 15},
		{"Session", 1500, 2, 25},
	} {
		t.Run(fmt.Sprintf("%s/%d watches", tc.consistency, tc.watches), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := startWatchedNode(t, tc.consistency, tc.watches)
				n.changeDocument(t)
				<-time.After(period)
				idle := n.payForPeriod(t, func() {})
				price, before := -float64(tc.rounds)*n.change, n.unitsByOperation(t)
				for range tc.rounds {
					price += n.payForPeriod(t, func() { n.changeDocument(t) }) - idle
				}
				for operation, units := range n.unitsByOperation(t) {
					if units -= before[operation]; units > 0 {
						t.Logf("%8.2f RU %s", units/float64(tc.rounds*tc.watches), operation)
					}
				}
				price += n.payForExpiry(t)
				require.EqualValues(t, (tc.rounds+1)*tc.watches, n.calls.Load())
				each := price / float64(tc.rounds*tc.watches)
				t.Logf("%.2f RU for a notification; %.2f RU in a period without a change", each, idle)
				require.LessOrEqual(t, each, tc.limitRU)
			})
		})
	}
}

// A change of a document that is not watched sends one write.
func TestAChangeThatIsNotWatched_CostsNothingForWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startWatchedNode(t, "Strong", 0)
		require.LessOrEqual(t, n.change, 13.0)
		idle := n.payForPeriod(t, func() {})
		require.InDelta(t, idle+n.change, n.payForPeriod(t, func() { n.changeDocument(t) }), 0.1)
	})
}
