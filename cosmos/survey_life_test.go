package cosmos

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/cosmos/survey"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// surveyDocuments returns the ids of the documents that a survey has stored.
func surveyDocuments(t testing.TB, node *Repository) (ids []string) {
	t.Helper()
	docs, err := client.All[struct {
		ID string `json:"id"`
	}](context.Background(), node.beginCall("test").Query(node.db.cabinets, "|survey", "SELECT c.id FROM c"))
	require.NoError(t, err)
	for _, d := range docs {
		ids = append(ids, d.ID)
	}
	return ids
}

// When its log is long, the survey replaces the log with a snapshot and removes the old documents. A node
// that only reads the survey is not disturbed, and a node that starts reads the snapshot.
func TestSurvey_ReplacesItsLogBySnapshots(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		r := newRig(t, embedded.Options{})
		node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
		f := newSurveyedTraffic(t, r, node, 5)
		s, reader := surveyOf(r, node, survey.Options{}), surveyOf(r, node, survey.Options{})
		snapshots := make(map[string]bool)
		most := 0
		for i := range 700 {
			f.step()
			f.step()
			f.step()
			waitInBubble(25 * time.Second)
			runRound(t, s)
			if i%3 == 0 {
				ids := surveyDocuments(t, node)
				most = max(most, len(ids))
				for _, id := range ids {
					if name, ok := strings.CutPrefix(id, "snapshot."); ok {
						snapshots[name] = true
					}
				}
			}
			if i%50 == 0 {
				f.requireLines(s)
			}
			if i%17 == 0 {
				_, err := reader.Surveyed(context.Background())
				require.NoError(t, err)
			}
		}
		require.Greater(t, len(snapshots), 1)
		require.Less(t, most, 600)
		for range 20 {
			waitInBubble(time.Minute)
			runRound(t, s)
		}
		f.requireLines(s, reader, surveyOf(r, node, survey.Options{}))
		require.Less(t, len(surveyDocuments(t, node)), 260, "nothing is left over")
	})
}

// A process dies while it writes a snapshot. The next process removes the incomplete snapshot.
func TestSurvey_RemovesTheSnapshotPartsOfADeadNode(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		r := newRig(t, embedded.Options{})
		node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
		f := newSurveyedTraffic(t, r, node, 5)
		s := surveyOf(r, node, survey.Options{})
		for range 20 {
			f.step()
		}
		settleSurveys(t, s)
		c := node.beginCall("test")
		for _, id := range []string{"snapshot.x.00000", "snapshot.x.00001", "log.000000099999"} {
			_, err := c.Put(context.Background(), node.db.cabinets, "|survey", id, "", map[string]any{"id": id, "partitionKey": "|survey", "lines": ""})
			require.NoError(t, err)
		}
		next := surveyOf(r, node, survey.Options{})
		settleSurveys(t, next)
		for _, id := range surveyDocuments(t, node) {
			require.False(t, strings.HasPrefix(id, "snapshot.x") || strings.Contains(id, "99999"), id)
		}
		f.requireLines(next)
	})
}

// If documents of the survey are lost, the survey starts again and reads all mailboxes.
func TestSurvey_BeginsAgainWhenItsDocumentsAreLost(t *testing.T) {
	for name, lose := range map[string]func(c *client.Call, node *Repository, ids []string) error{
		"the state": func(c *client.Call, node *Repository, _ []string) error {
			return c.DeleteIfExists(context.Background(), node.db.cabinets, "|survey", "state")
		},
		"a part of the log": func(c *client.Call, node *Repository, ids []string) error {
			return c.DeleteIfExists(context.Background(), node.db.cabinets, "|survey", ids[0])
		},
		"a damaged part": func(c *client.Call, node *Repository, ids []string) error {
			if err := c.DeleteIfExists(context.Background(), node.db.cabinets, "|survey", ids[0]); err != nil {
				return err
			}
			_, err := c.Put(context.Background(), node.db.cabinets, "|survey", ids[0], "", map[string]any{"id": ids[0], "partitionKey": "|survey", "lines": "AAAA"})
			return err
		},
		"the position of a feed": func(c *client.Call, node *Repository, _ []string) error {
			ctx := context.Background()
			var doc map[string]any
			etag, err := c.Read(ctx, node.db.cabinets, "|survey", "state", &doc)
			if err != nil {
				return err
			}
			tokens := doc["tokens"].(map[string]any)
			for container, token := range tokens {
				tokens[container] = strings.Replace(token.(string), `"resourceId":"`, `"resourceId":"another`, 1)
			}
			_, err = c.Put(ctx, node.db.cabinets, "|survey", "state", etag, doc)
			return err
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			r := newRig(t, embedded.Options{})
			node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
			f := newSurveyedTraffic(t, r, node, 9)
			for range 30 {
				f.step()
			}
			s := surveyOf(r, node, survey.Options{})
			settleSurveys(t, s)
			waitInBubble(time.Minute)
			settleSurveys(t, s)
			var logs []string
			for _, id := range surveyDocuments(t, node) {
				if strings.HasPrefix(id, "log.") {
					logs = append(logs, id)
				}
			}
			require.NotEmpty(t, logs)
			require.NoError(t, lose(node.beginCall("test").Call, node, logs))
			for range 10 {
				f.step()
			}
			next := surveyOf(r, node, survey.Options{})
			settleSurveys(t, next)
			settleSurveys(t, next)
			f.requireLines(next)
			waitInBubble(time.Minute)
			settleSurveys(t, next)
			f.requireLines(surveyOf(r, node, survey.Options{}))
		})
	}
}

// The containers split into more physical partitions while a node surveys. The survey must not miss any
// change.
func TestSurvey_FollowsContainersThatSplit(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		r := newRig(t, embedded.Options{})
		node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
		f := newSurveyedTraffic(t, r, node, 3)
		s := surveyOf(r, node, survey.Options{})
		for _, throughput := range []int32{4000, 20_000, 50_000} {
			for _, container := range []*azcosmos.ContainerClient{node.db.catalog, node.db.bundles} {
				properties := azcosmos.NewManualThroughputProperties(throughput)
				_, err := container.ReplaceThroughput(context.Background(), properties, nil)
				require.NoError(t, err)
			}
			for range 30 {
				f.step()
			}
			settleSurveys(t, s)
			f.requireLines(s)
		}
		waitInBubble(time.Minute)
		settleSurveys(t, s)
		next := surveyOf(r, node, survey.Options{})
		for range 10 {
			f.step()
		}
		settleSurveys(t, next)
		f.requireLines(next)
	})
}

// The survey stays within its limit of request units per second, even if many documents change.
func TestSurvey_StaysWithinItsBudget(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		r := newRig(t, embedded.Options{Pessimistic: true})
		node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
		ctx := context.Background()
		for range 300 {
			actor := repositorytest.NewActor()
			_, err := node.Save(ctx, actor, repositorytest.Events(2, actor))
			require.NoError(t, err)
		}
		m := newSurveyMeter(r, node, 1) // 50 RU/s
		running, stop := context.WithCancel(ctx)
		var done sync.WaitGroup
		done.Go(func() { m.Run(running) })
		defer func() { stop(); done.Wait() }()
		last := 0.
		for i := range 100 {
			for range 2 {
				actor := repositorytest.NewActor()
				_, err := node.Save(ctx, actor, repositorytest.Events(40, actor))
				require.NoError(t, err)
			}
			waitInBubble(10 * time.Second)
			now := m.units(t)
			require.LessOrEqual(t, (now-last)/10, 70.0, "10 seconds after %d", i) // 70 exceeds the limit, because a page of 50 documents is charged as a whole
			last = now
		}
		require.Positive(t, last)
	})
}

// If two nodes survey at the same time, the writes of one node are refused, and only the other node
// exports metrics.
func TestSurvey_BelongsToOneNodeAtATime(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		r := newRig(t, embedded.Options{})
		node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
		f := newSurveyedTraffic(t, r, node, 4)
		f.step()
		a, b := newSurveyMeter(r, node, 1), newSurveyMeter(r, node, 2)
		age := func(m *surveyMeter) int { return countSeries(t, m, "messagehub_survey_age_seconds") }
		settleSurveys(t, a.Survey)
		isOwner, err := b.Round(context.Background())
		require.NoError(t, err)
		require.False(t, isOwner)
		require.Equal(t, []int{1, 0}, []int{age(a), age(b)})
		waitInBubble(2 * time.Minute) // node a is paused until its lease has expired
		isOwner, err = b.Round(context.Background())
		require.NoError(t, err)
		require.True(t, isOwner)
		f.step()
		waitInBubble(time.Minute)
		isOwner, err = a.Round(context.Background()) // this round must store nothing
		require.NoError(t, err)
		require.False(t, isOwner)
		require.Equal(t, []int{0, 1}, []int{age(a), age(b)})
		require.Equal(t, 6, countSeries(t, b, "messagehub_mailboxes"))

		running, stop := context.WithCancel(context.Background())
		stop()
		b.Run(running) // Run ends and releases the lease
		require.Equal(t, 0, age(b))
		isOwner, err = a.Round(context.Background())
		require.NoError(t, err)
		require.True(t, isOwner)
		f.requireLines(a.Survey, b.Survey)
	})
}

func countSeries(t testing.TB, m *surveyMeter, name string) int {
	t.Helper()
	families, err := m.registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name {
			return len(f.GetMetric())
		}
	}
	return 0
}

// If an account refuses to return changes because a permission is missing, the survey reports the
// refusal, and lists are still served.
func TestSurvey_ReportsAFeedThatIsRefused(t *testing.T) {
	r := newRig(t, embedded.Options{})
	node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
	line := &faulty.Transport{Next: r.engine.Transport()}
	line.Break(func(_ int, req *http.Request) faulty.Fault {
		if req.Header.Get("A-IM") != "" && strings.Contains(req.URL.Path, "/docs") {
			return faulty.Forbidden
		}
		return faulty.None
	})
	s := survey.New(r.account.ConnectBy(line), node.SurveyReader(), survey.Options{Exclusive: true})
	_, err := s.Round(context.Background())
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	require.ErrorContains(t, err, "follow the changes of catalog")
	lines, err := s.Surveyed(context.Background())
	require.NoError(t, err)
	require.Zero(t, lines.At())
}

// A node loses the lease of the survey before it has stored some lines. When it acquires the lease again,
// it stores these lines.
func TestSurvey_StoresTheLinesOfANodeThatLostIt(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		r := newRig(t, embedded.Options{})
		node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
		f := newSurveyedTraffic(t, r, node, 4)
		line := &faulty.Transport{Next: r.engine.Transport()}
		s := survey.New(r.account.ConnectBy(line), node.SurveyReader(), survey.Options{})
		for range 20 {
			f.step()
		}
		settleSurveys(t, s)
		waitInBubble(time.Minute)
		settleSurveys(t, s)
		for range 5 {
			f.step()
		}
		runRound(t, s) // s reads the changes but does not store them yet
		waitInBubble(time.Minute)
		line.Break(func(_ int, req *http.Request) faulty.Fault {
			if req.Header.Get("x-ms-cosmos-is-batch-request") != "" {
				return faulty.ForeignPrecondition
			}
			return faulty.None
		})
		isOwner, err := s.Round(context.Background())
		require.NoError(t, err)
		require.False(t, isOwner)
		line.Break(nil)
		settleSurveys(t, s)
		waitInBubble(time.Minute)
		settleSurveys(t, s)
		f.requireLines(s, surveyOf(r, node, survey.Options{}))
	})
}

// The node that surveys dies at a random moment. Another node has a current list within two minutes.
func TestSurvey_IsFreshAgainTwoMinutesAfterADeath(t *testing.T) {
	longest := time.Duration(0)
	for seed := range uint64(10) {
		inBubble(t, fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := newRig(t, embedded.Options{})
			node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
			f := newSurveyedTraffic(t, r, node, seed)
			line := &faulty.Transport{Next: r.engine.Transport()}
			dying := survey.New(r.account.ConnectBy(line), node.SurveyReader(), survey.Options{Random: seeded(seed)})
			next := survey.New(r.connect(), node.SurveyReader(), survey.Options{Random: seeded(seed + 100)})
			ctx, stop := context.WithCancel(context.Background())
			var running sync.WaitGroup
			defer func() { stop(); running.Wait() }()
			running.Go(func() { dying.Run(ctx) })
			waitInBubble(5 * time.Second)
			running.Go(func() { next.Run(ctx) })
			for range 100 {
				f.step()
			}
			require.True(t, dying.IsOwner())
			waitInBubble(time.Duration(seed) * 7 * time.Second)
			line.Break(func(int, *http.Request) faulty.Fault { return faulty.RequestLost }) // the dead node sends no more requests
			died := time.Now()
			for f.step(); ; waitInBubble(time.Second) {
				lines, err := next.Surveyed(ctx)
				require.NoError(t, err)
				if lines.At().After(died) {
					break
				}
				require.Less(t, time.Since(died), 2*time.Minute)
			}
			longest = max(longest, time.Since(died))
			waitInBubble(20 * time.Second)
			f.requireLines(next)
		})
	}
	t.Logf("the list is fresh again after %s at most", longest.Round(time.Second))
}
