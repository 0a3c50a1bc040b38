package cosmos

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/survey"
	"github.com/messagehub/messagehub/domain"
	surveys "github.com/messagehub/messagehub/domain/survey"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// surveyResults is the name of the file to which make survey-figures writes the results. If it is empty,
// the tests use few mailboxes.
var surveyResults = os.Getenv("MESSAGEHUB_SURVEY_RESULTS")

// A surveyMeter is a survey with metrics that count its request units.
type surveyMeter struct {
	*survey.Survey
	registry *prometheus.Registry
}

func newSurveyMeter(r *rig, node *Repository, seed uint64) *surveyMeter {
	m := &surveyMeter{registry: prometheus.NewRegistry()}
	m.Survey = survey.New(r.connect(), node.SurveyReader(), survey.Options{Units: 50, Registry: m.registry, Random: seeded(seed)})
	return m
}

// metric returns the sum of all series of a metric.
func (m *surveyMeter) metric(t testing.TB, name string) (sum float64) {
	t.Helper()
	families, err := m.registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, s := range f.GetMetric() {
			sum += s.GetCounter().GetValue() + s.GetGauge().GetValue()
		}
	}
	return sum
}

func (m *surveyMeter) units(t testing.TB) float64 {
	return m.metric(t, "messagehub_cosmos_request_units_total")
}

// surveyFigures are the results of TestSurvey_StaysWithinItsFigures, measured in simulated time.
type surveyFigures struct {
	name                   string
	mailboxes              int
	walkUnits, walkSeconds float64 // request units and seconds of the first walk, for each mailbox
	minutes                []surveyMinutes
}

// surveyMinutes are the results of a measurement in which 1,000 mailboxes change in each minute.
type surveyMinutes struct {
	name      string
	documents int     // number of documents that change in a minute
	units     float64 // request units for each changed document
	perSecond float64 // request units in the most expensive second of the most expensive minute
	behind    time.Duration
}

// A mailboxChange changes a mailbox without an open bundle. It returns the number of documents that it
// has changed in the containers catalog and bundles.
type mailboxChange func(node *Repository, r *rig, actor domain.ActorID) int

func saveOne(t testing.TB) mailboxChange {
	return func(node *Repository, _ *rig, actor domain.ActorID) int {
		_, err := node.Save(context.Background(), actor, repositorytest.Events(1, actor))
		require.NoError(t, err)
		return 1 // head
	}
}

func savePeekAndDequeue(t testing.TB) mailboxChange {
	return func(node *Repository, r *rig, actor domain.ActorID) int {
		n := saveOne(t)(node, r, actor)
		b, err := repositorytest.Peek(context.Background(), r.stores(node), actor, allGroups, domain.BundleID{})
		require.NoError(t, err)
		_, err = node.Acknowledge(context.Background(), actor, b.ID)
		require.NoError(t, err)
		return n + 2 // the Dequeue changes two documents, the gate and the bundle
	}
}

func measureSurvey(t *testing.T, pessimistic bool, mailboxes, perMinute, minutes int) surveyFigures {
	f := surveyFigures{name: "embedded engine", mailboxes: mailboxes}
	if pessimistic {
		f.name = "pessimistic profile"
	}
	r := newRig(t, embedded.Options{Pessimistic: pessimistic})
	node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
	ctx := context.Background()
	actors := make([]domain.ActorID, mailboxes)
	for i := range actors {
		actors[i] = repositorytest.NewActor()
		_, err := node.Save(ctx, actors[i], repositorytest.Events(2, actors[i]))
		require.NoError(t, err)
		if i%4 == 0 {
			continue
		}
		b, err := repositorytest.Peek(ctx, r.stores(node), actors[i], allGroups, domain.BundleID{})
		require.NoError(t, err)
		if i%2 == 0 {
			_, err = node.Acknowledge(ctx, actors[i], b.ID)
			require.NoError(t, err)
		}
	}
	waitInBubble(time.Hour)
	m := newSurveyMeter(r, node, 1)
	began := time.Now()
	runRound(t, m.Survey)
	f.walkUnits, f.walkSeconds = m.units(t)/float64(mailboxes), time.Since(began).Seconds()

	running, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { m.Run(running) })
	defer func() { stop(); done.Wait() }()
	for _, kind := range []struct {
		name string
		do   mailboxChange
	}{{"a Save of one event each", saveOne(t)}, {"Save, Peek and Dequeue each", savePeekAndDequeue(t)}} {
		waitInBubble(5 * time.Minute)
		found := surveyMinutes{name: kind.name}
		before, last, documents := m.units(t), m.units(t), 0
		for minute := range minutes {
			for i := range perMinute {
				documents += kind.do(node, r, actors[(minute*perMinute+i)%mailboxes])
				waitInBubble(time.Minute / time.Duration(perMinute))
				if i%max(perMinute/60, 1) == 0 {
					lines, err := m.Surveyed(ctx)
					require.NoError(t, err)
					found.behind = max(found.behind, time.Since(lines.At()))
				}
			}
			now := m.units(t)
			found.perSecond, last = max(found.perSecond, (now-last)/60), now
		}
		found.documents = documents / minutes
		waitInBubble(time.Minute)
		found.units = (m.units(t) - before) / float64(documents)
		f.minutes = append(f.minutes, found)
	}
	return f
}

// TestSurvey_StaysWithinItsFigures measures the request units and the delay of a survey in simulated
// time.
func TestSurvey_StaysWithinItsFigures(t *testing.T) {
	mailboxes, perMinute, minutes := 400, 200, 2
	if surveyResults != "" {
		mailboxes, perMinute, minutes = 10_000, 1000, 10
	}
	var all []surveyFigures
	for _, pessimistic := range []bool{false, true} {
		inBubble(t, fmt.Sprint("pessimistic ", pessimistic), func(t *testing.T) {
			f := measureSurvey(t, pessimistic, mailboxes, perMinute, minutes)
			t.Logf("%+v", f)
			require.LessOrEqual(t, f.walkUnits, 5.0, "a mailbox of the first walk")
			for _, m := range f.minutes {
				require.LessOrEqual(t, m.units, 1.5, "a changed document: %s", m.name)
				require.LessOrEqual(t, m.behind, time.Minute, m.name)
			}
			all = append(all, f)
		})
	}
	if surveyResults != "" {
		peeks := measurePeeksDuringSurvey(t, 3000)
		writeSurveyResults(t, all, peeks, measureSurveyLists(t, 100_000))
	}
}

// surveyedPeeks are the durations of Peeks in simulated time, without and with a concurrent survey.
type surveyedPeeks struct {
	throughput    string
	alone, beside time.Duration // p99
	units         float64       // request units of the survey per second
}

// measurePeeksDuringSurvey measures Peeks on an account that enforces its provisioned throughput, while a
// survey reads all mailboxes and then their changes.
func measurePeeksDuringSurvey(t *testing.T, peeks int) (all []surveyedPeeks) {
	for _, suggested := range []bool{false, true} {
		inBubble(t, fmt.Sprint("peeks, suggested throughput ", suggested), func(t *testing.T) {
			found := surveyedPeeks{throughput: "400 RU/s"}
			every := 100 * time.Millisecond
			if suggested {
				found.throughput, every = "4,000 RU/s", 10*time.Millisecond
			}
			a := newThrottledAccount(t, suggested)
			actors := make([]domain.ActorID, 500)
			for i := range actors {
				actors[i] = repositorytest.NewActor()
				a.saveEvents(actors[i], 3)
			}
			waitInBubble(time.Hour)
			p99 := func() time.Duration {
				var mu sync.Mutex
				var took []time.Duration
				var running sync.WaitGroup
				for i := range peeks {
					running.Go(func() {
						began := time.Now()
						_, err := repositorytest.Peek(context.Background(), a.stores(a.node), actors[i%len(actors)], allGroups, domain.BundleID{})
						require.NoError(t, err)
						mu.Lock()
						defer mu.Unlock()
						took = append(took, time.Since(began))
					})
					waitInBubble(every)
				}
				running.Wait()
				slices.Sort(took)
				return took[len(took)*99/100]
			}
			p99() // the first Peeks open the bundles
			found.alone = p99()
			m := newSurveyMeter(a.rig, a.node, 1)
			running, stop := context.WithCancel(context.Background())
			var done sync.WaitGroup
			done.Go(func() { m.Run(running) })
			began := time.Now()
			found.beside = p99()
			found.units = m.units(t) / time.Since(began).Seconds()
			stop()
			done.Wait()
			t.Logf("%+v", found)
			all = append(all, found)
		})
	}
	return all
}

func TestSurvey_DelaysAPeekByATenthAtMost(t *testing.T) {
	peeks := 600
	if raced { // with the race detector, this measurement would take too long
		peeks = 60
	}
	for _, p := range measurePeeksDuringSurvey(t, peeks) {
		require.LessOrEqual(t, p.beside, p.alone*11/10, "%+v", p)
	}
}

// surveyedLists are the results of listing many mailboxes, measured in real time.
type surveyedLists struct {
	mailboxes int
	bytes     float64       // memory for each mailbox, in bytes
	load      time.Duration // duration of the first list on a node that does not survey
	list      time.Duration // longest duration of several requests for a page of 100 mailboxes
	stored    float64       // stored bytes for each mailbox
}

// measureSurveyLists measures lists of mailboxes with one cabinet each.
func measureSurveyLists(t *testing.T, mailboxes int) surveyedLists {
	found := surveyedLists{mailboxes: mailboxes}
	r := newRig(t, embedded.Options{})
	now := time.Now()
	node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
	ctx := context.Background()
	c := node.beginCall("test")
	for i := range mailboxes {
		actor := repositorytest.NewActor()
		h := &head{ID: headID, PartitionKey: actor.String(), Reserved: 9, Watermark: 9, Cabinets: map[cabinetName]cabinetState{
			"TimeSeries|measured-data": {Drawer: "d", Fill: i % 9, Ordinal: 1, Sequence: domain.Sequence(i % 9), Total: int64(i % 9), Marks: []mark{{1, now.UnixMilli() - int64(i)}}},
		}}
		_, err := c.Put(ctx, node.db.catalog, actor.String(), headID, "", h)
		require.NoError(t, err)
		g := &gate{ID: "gate.timeseries", Recipient: actor.String(), Kind: gateKind, Generation: 4, At: map[cabinetName]position{
			"TimeSeries|measured-data": {Ordinal: 1, Slot: 2, Sequence: 2, Total: 2, NextSaved: millis(now.UnixMilli())},
		}}
		if i%2 == 0 {
			g.Open, g.Opened, g.First = repositorytest.NewBundleID().String(), now, 3
		}
		_, err = c.Put(ctx, node.db.bundles, actor.String(), g.ID, "", g)
		require.NoError(t, err)
		c = c.renewCall()
	}
	memory := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	owner := surveyOf(r, node, survey.Options{})
	runRound(t, owner)
	clock := now.Add(time.Hour)
	storer := surveyOf(r, node, survey.Options{Exclusive: true, Clock: func() time.Time { return clock }})
	runRound(t, storer)
	clock = clock.Add(time.Hour)
	runRound(t, storer)
	before := memory()
	reader := surveyOf(r, node, survey.Options{})
	began := time.Now()
	lines, err := reader.Surveyed(ctx)
	require.NoError(t, err)
	found.load = time.Since(began)
	found.bytes = (memory() - before) / float64(mailboxes)
	list := surveys.New(reader)
	for _, q := range []surveys.Query{{}, {Order: surveys.ByEvents}, {State: domain.MailboxOpen}, {State: domain.MailboxWaiting, Order: surveys.ByEvents}} {
		for range 5 {
			began := time.Now()
			page, err := list.List(ctx, q)
			found.list = max(found.list, time.Since(began))
			require.NoError(t, err)
			require.NotEmpty(t, page.Mailboxes)
			q.After = page.Next
		}
	}
	n := 0
	for range lines.Summaries() {
		n++
	}
	require.Equal(t, mailboxes, n)
	docs, err := client.All[struct {
		Lines []byte `json:"lines"`
	}](ctx, node.beginCall("test").Query(node.db.cabinets, "|survey", "SELECT c.lines FROM c"))
	require.NoError(t, err)
	for _, d := range docs {
		found.stored += float64(len(d.Lines)) / float64(mailboxes)
	}
	t.Logf("%+v", found)
	return found
}

func TestSurvey_ListsManyMailboxesAtOnce(t *testing.T) {
	mailboxes := 2_000
	if raced {
		mailboxes = 500
	}
	found := measureSurveyLists(t, mailboxes)
	require.Less(t, found.bytes, 700.0, "bytes of a mailbox")
}

func writeSurveyResults(t *testing.T, all []surveyFigures, peeks []surveyedPeeks, lists surveyedLists) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Survey of mailboxes\n")
	line("`make survey-figures` wrote this. %s, %d CPUs, %s. Request units are those of the embedded engine, and of its", time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), runtime.Version())
	line("pessimistic profile, in which a query costs a point read for each document. Everything except the lists is in simulated time.\n")
	line("## The first walk, and 1,000 mailboxes that change in a minute\n")
	line("`survey.units` is 50. Half of the mailboxes have an open bundle, a quarter has none yet.\n")
	line("| account | mailboxes | first walk: RU a mailbox | s | changes | documents that change in a minute | RU for each | RU/s in the minute that took most | behind, at most |")
	line("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, f := range all {
		for i, m := range f.minutes {
			name, n, units, seconds := f.name, fmt.Sprint(f.mailboxes), fmt.Sprintf("%.2f", f.walkUnits), fmt.Sprintf("%.0f", f.walkSeconds)
			if i > 0 {
				name, n, units, seconds = "", "", "", ""
			}
			line("| %s | %s | %s | %s | %s | %d | %.2f | %.1f | %s |", name, n, units, seconds, m.name, m.documents, m.units, m.perSecond, m.behind.Round(time.Second))
		}
	}
	line("\nTargets: 5 RU a mailbox, 1.5 RU for each changed document, 60 s behind.\n")
	line("## Peeks beside it\n")
	line("| throughput of a container | p99 alone | p99 beside a first walk and what follows | ratio | RU/s of the survey |")
	line("| --- | --- | --- | --- | --- |")
	for _, p := range peeks {
		line("| %s | %s | %s | %.2f | %.1f |", p.throughput, p.alone.Round(10*time.Microsecond), p.beside.Round(10*time.Microsecond), float64(p.beside)/float64(max(p.alone, 1)), p.units)
	}
	line("\nTarget: a ratio of 1.1.\n")
	line("## Lists\n")
	line("| mailboxes | longest page of 100 | first list on a node that does not survey | bytes of a mailbox in memory | stored |")
	line("| --- | --- | --- | --- | --- |")
	line("| %d | %s | %s | %.0f | %.0f |", lists.mailboxes, lists.list.Round(100*time.Microsecond), lists.load.Round(time.Millisecond), lists.bytes, lists.stored)
	line("\nTarget: 200 ms for a page.")
	require.NoError(t, os.WriteFile(surveyResults, []byte(b.String()), 0o644))
}
