package objects

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// topics distributes calls over the topics of several nodes, round robin.
type topics struct{ *nodes }

func (n topics) Observe(f func(domain.ObjectChange)) {
	for _, s := range n.all {
		s.Topic().Observe(f)
	}
}

func (n topics) Remove(ctx context.Context, changes []domain.ObjectChange) error {
	return n.node().Topic().Remove(ctx, changes)
}

func (n topics) Unpublished(ctx context.Context, before time.Time, limit int) ([]domain.ObjectChange, error) {
	return n.node().Topic().Unpublished(ctx, before, limit)
}

func TestTopicConformance(t *testing.T) {
	for name, opts := range map[string]Options{
		"Plain":           {Retries: 100, Topic: true},
		"ManySpilledRows": {Retries: 100, Topic: true, Shards: 1, Limits: domain.ObjectLimits{Rows: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accounttest.New(t, embedded.Options{}, Containers())
			repositorytest.RunObjectTopic(t, func(*testing.T) (repositorytest.WatchedObjects, repository.ObjectTopic) {
				n := &nodes{all: []*Store{New(a.Connect(), opts), New(a.Connect(), opts)}}
				return n, topics{n}
			})
		})
	}
}

// A topicReader collects the published changes of the topic, by version.
type topicReader map[int64]string

// publish reads and removes all changes in s, as a relay does.
func (r topicReader) publish(ctx context.Context, s *Store) error {
	left, err := s.Topic().Unpublished(ctx, time.Now().Add(time.Minute), 10)
	if err != nil {
		return err
	}
	for _, c := range left {
		r[c.Version] = fmt.Sprint(c.Event, " ", c.Row.Sequencer)
	}
	return s.Topic().Remove(ctx, left)
}

// requireChanges publishes the remaining changes, and requires each change of runTopicScript once.
func (r topicReader) requireChanges(t *testing.T, s *Store, n int) {
	t.Helper()
	require.NoError(t, r.publish(t.Context(), s), "request %d", n)
	var got []string
	for _, version := range slices.Sorted(maps.Keys(r)) {
		got = append(got, r[version])
	}
	require.Equal(t, []string{"created 01", "updated 02", "deleted 02", "created 04", "updated 05"}, got, "request %d", n)
}

// runTopicScript stores events of an object, and publishes the first changes.
func runTopicScript(ctx context.Context, s *Store, r topicReader) error {
	name := must(domain.ParseObjectName("bucket", "key"))
	for i, events := range objecttest.Calls("[C@01] [C@02] [C@02] [D@03] [C@04] [D@00] [C@05, C@01]") {
		var reports []repository.ObjectReport
		for _, e := range events {
			reports = append(reports, repository.ObjectReport{Name: name, ObjectEvent: e})
		}
		results, err := s.Ingest(ctx, reports)
		if err == nil {
			err = results[0].Err
		}
		if err == nil && i == 3 {
			err = r.publish(ctx, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Each request fails once with each fault, and its call repeats the request. Each change for the topic
// is stored once.
func TestEveryRequestBrokenOnce_StoresEachStateChangeOnce(t *testing.T) {
	for _, fault := range faulty.CommonFaults() {
		if fault == faulty.Forbidden {
			continue // a call does not retry a request that is refused with 403
		}
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // in simulated time, so that backoffs take no real time
				for n := 1; ; n++ {
					a := accounttest.New(t, embedded.Options{}, Containers())
					node, reader := New(a.Connect(), Options{Shards: 1, Topic: true}), make(topicReader)
					a.Transport.BreakOne(n, fault)
					require.NoError(t, runTopicScript(t.Context(), node, reader), "request %d", n)
					isBroken := a.Transport.Calls() >= n
					a.Transport.Break(nil)
					reader.requireChanges(t, node, n)
					if !isBroken {
						require.Greater(t, n, 15)
						return
					}
				}
			})
		})
	}
}

// A node crashes before or after one of its requests, and another node repeats all calls. No change for
// the topic is missing, and none is stored twice.
func TestANodeThatEndsAtAnyRequest_LosesNoStateChange(t *testing.T) {
	for _, fault := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for n := 1; ; n++ {
					a := accounttest.New(t, embedded.Options{}, Containers())
					reader := make(topicReader)
					a.Transport.CrashAt(n, fault)
					err := runTopicScript(t.Context(), New(a.Connect(), Options{Shards: 1, Topic: true}), reader)
					hasEnded := a.Transport.Fired() > 0
					a.Transport.Break(nil)
					require.Equal(t, hasEnded, err != nil, "request %d: %v", n, err)
					other := New(a.Connect(), Options{Shards: 1, Topic: true})
					require.NoError(t, runTopicScript(t.Context(), other, reader), "request %d", n)
					reader.requireChanges(t, other, n)
					if !hasEnded {
						require.Greater(t, n, 15)
						return
					}
				}
			})
		})
	}
}

// A change for the topic needs no additional request. TestEvents_CostUpToTheirLimit tests the cost of
// events without a topic.
func TestAChangeForTheTopic_CostsUpToItsLimit(t *testing.T) {
	price := func(hasTopic bool) (units float64, requests int, left []domain.ObjectChange) {
		a := accounttest.New(t, embedded.Options{Pessimistic: true}, Containers())
		s := New(a.Connect(), Options{Shards: 1, Topic: hasTopic})
		store := func(script string) {
			for _, events := range objecttest.Calls(script) {
				results, err := s.Ingest(t.Context(), []repository.ObjectReport{{Name: must(domain.ParseObjectName("bucket", "key")), ObjectEvent: events[0]}})
				require.NoError(t, err)
				require.NoError(t, results[0].Err)
			}
		}
		store("[C@01]") // creates the shards of the bucket
		units, requests = a.Engine.RequestUnits(), a.Transport.Calls()
		store("[C@02] [D@03] [C@04] [C@04] [C@01]")
		units, requests = a.Engine.RequestUnits()-units, a.Transport.Calls()-requests
		if hasTopic {
			var err error
			left, err = s.Topic().Unpublished(t.Context(), time.Now().Add(time.Minute), 100)
			require.NoError(t, err)
			before := a.Engine.RequestUnits()
			require.NoError(t, s.Topic().Remove(t.Context(), left))
			t.Logf("%.1f RU to remove each of %d changes", (a.Engine.RequestUnits()-before)/float64(len(left)), len(left))
			require.LessOrEqual(t, a.Engine.RequestUnits()-before, 6.0*float64(len(left)))
		}
		return units, requests, left
	}
	without, requests, _ := price(false)
	with, calls, changes := price(true)
	require.Equal(t, requests, calls, "the changes are in the batches of the object")
	require.Len(t, changes, 4)
	t.Logf("%.1f RU a change", (with-without)/3)
	require.LessOrEqual(t, (with-without)/3, 8.0)
}

// If a call has more objects than fit into one batch, each object is read only once.
func TestACallWithManyNewObjects_FitsItsBatches(t *testing.T) {
	a := accounttest.New(t, embedded.Options{}, Containers())
	s := New(a.Connect(), Options{Shards: 1, Topic: true})
	var reports []repository.ObjectReport
	for i := range 1 + 2*s.names {
		reports = append(reports, repository.ObjectReport{Name: must(domain.ParseObjectName("bucket", fmt.Sprint("key-", i))), ObjectEvent: objecttest.Calls("[C@01]")[0][0]})
	}
	_, err := s.Ingest(t.Context(), reports[:1]) // creates the shards of the bucket
	require.NoError(t, err)
	before := a.Transport.Calls()
	_, err = s.Ingest(t.Context(), reports[1:])
	require.NoError(t, err)
	require.Equal(t, 4, a.Transport.Calls()-before, "a query and a batch for each half")
}

// When the document of an object is deleted, the last version of its changes is lost. When the object is
// created again, its changes must have greater versions, because the stream remembers the old versions for
// a day or longer.
func TestForgottenObject_HasGreaterVersionsWhenCreatedAgain(t *testing.T) {
	a := accounttest.New(t, embedded.Options{}, Containers())
	now := objecttest.FirstMoment
	s := New(a.Connect(), Options{Shards: 1, Topic: true, Retention: domain.ObjectRetention(testRetention), Clock: func() time.Time { return now }})
	name := must(domain.ParseObjectName("bucket", "key"))
	reader := make(topicReader)
	store := func(script string) {
		for _, events := range objecttest.Calls(script) {
			results, err := s.Ingest(t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: events[0]}})
			require.NoError(t, err)
			require.Equal(t, domain.ObjectStored, results[0].Outcome)
		}
		now = now.Add(time.Minute)
		require.NoError(t, reader.publish(t.Context(), s))
	}
	store("[C@01] [D@02]")
	now = now.Add(domain.MinDeadRetention + 2*time.Hour)
	require.NoError(t, sweepAll(t.Context(), s))
	_, err := s.Object(t.Context(), name)
	require.Equal(t, domain.NotFound, domain.KindOf(err))
	again := objecttest.Calls("[C@03]")[0]
	again[0].Time = now
	_, err = s.Ingest(t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: again[0]}})
	require.NoError(t, err)
	require.NoError(t, reader.publish(t.Context(), s))
	require.Len(t, reader, 3, "a version came again")
}
