package history_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/bench/simulate/history"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/memory"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// A historyClients is a set of clients of one mailbox of a correct hub. The store of the hub has one lock.
type historyClients struct {
	history.Recorder
	testing.TB
	hub   *hub.Hub
	actor domain.ActorID
	now   atomic.Int64
	lost  float64 // share of lost answers, from 0 to 1
}

// randomHistory returns a history of concurrent clients, some of whose answers are lost.
func randomHistory(t testing.TB, seed uint64, clients, operations int, lost float64) history.History {
	store := memory.New(memory.Options{DrawerCapacity: 3})
	c := &historyClients{TB: t, hub: hub.New(store, store, store, hub.Options{}), actor: rt.NewActor(), lost: lost}
	var g sync.WaitGroup
	for i := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		g.Go(func() {
			member := &randomClient{historyClients: c, number: i, random: random}
			for range operations / clients {
				member.runRandomly()
			}
		})
	}
	g.Wait()
	return c.History()
}

// requireNoError fails the test from any goroutine.
func (c *historyClients) requireNoError(err error) {
	if err != nil {
		c.Errorf("a correct hub: %v", err)
	}
}

// A randomClient sends, peeks and dequeues at random.
type randomClient struct {
	*historyClients
	number int
	random *rand.Rand
	sent   []domain.Event
	shown  []domain.BundleID
}

func (c *randomClient) runRandomly() {
	switch n := c.random.IntN(10); {
	case n < 4:
		c.sendRandomly()
	case n < 7:
		c.peekRandomly()
	default:
		c.dequeueRandomly()
	}
}

// answeredAs returns the outcome o, or Unknown if the answer is lost.
func (c *randomClient) answeredAs(o history.Outcome) history.Outcome {
	if c.random.Float64() < c.lost {
		return history.Unknown
	}
	return o
}

func (c *randomClient) sendRandomly() {
	var events []domain.Event
	for range 1 + c.random.IntN(4) {
		if len(c.sent) > 0 && c.random.IntN(8) == 0 {
			events = append(events, c.sent[c.random.IntN(len(c.sent))])
			if c.random.IntN(2) == 0 {
				events[len(events)-1].Weight += 100
			}
			continue
		}
		e := rt.Event(c.actor, rt.WithOrigin(rt.AllOrigins[c.random.IntN(len(rt.AllOrigins))]), rt.WithWeight(domain.Weight(1+c.random.IntN(30_000))))
		e.SupportsBundling = c.random.IntN(4) > 0
		events = append(events, e)
	}
	recorded := make([]history.Event, len(events))
	for i, e := range events {
		recorded[i] = c.recordedEvent(&e)
	}
	end := c.SendCounted(c.number, c.now.Add(1), recorded...)
	saved, err := c.hub.Ingest(c.Context(), events)
	at := c.now.Add(1)
	if _, ok := errors.AsType[*hub.RejectionError](err); ok {
		end(at, c.answeredAs(history.Rejected), history.Tally{})
		return
	}
	c.requireNoError(err)
	c.sent = append(c.sent, events...)
	end(at, c.answeredAs(history.Accepted), history.Tally{Accepted: saved.Accepted, Duplicates: saved.Duplicates, Conflicts: len(saved.Conflicts)})
}

func (c *randomClient) recordedEvent(e *domain.Event) history.Event {
	group, err := c.hub.Groups().GroupOf(e.Origin)
	c.requireNoError(err)
	return history.Event{
		ID: e.ID.String(), Cabinet: cabinetOf(e.Cabinet()), Group: group.String(),
		Bundleable: e.SupportsBundling, Weight: int64(e.Weight),
	}
}

func cabinetOf(key domain.CabinetKey) string { return fmt.Sprint(key.Origin, " ", key.ContentType) }

func (c *randomClient) peekRandomly() {
	req := hub.PeekRequest{Actor: c.actor}
	var names []string
	if c.random.IntN(2) == 0 {
		req.Groups = []domain.Group{rt.AllGroups[c.random.IntN(len(rt.AllGroups))]}
		names = append(names, req.Groups[0].String())
	}
	end := c.Peek(c.number, c.now.Add(1), names...)
	peeked, err := c.hub.Peek(c.Context(), req)
	var b history.Bundle
	if err == nil {
		b = c.readBundle(peeked)
	}
	at := c.now.Add(1)
	switch {
	case errors.Is(err, domain.ErrNoData):
		end(at, c.answeredAs(history.None), b)
	case err != nil:
		c.Errorf("peek: %v", err)
	default:
		o := c.answeredAs(history.Returned)
		if o == history.Returned {
			c.shown = append(c.shown, peeked.ID)
		}
		end(at, o, b)
	}
}

// readBundle reads a bundle from its manifest.
func (c *randomClient) readBundle(p *hub.PeekedBundle) history.Bundle {
	b := history.Bundle{ID: p.ID.String(), Group: p.Group.String(), Cabinet: cabinetOf(p.Cabinet)}
	body, err := p.Open(c.Context())
	c.requireNoError(err)
	text, err := io.ReadAll(body)
	c.requireNoError(errors.Join(err, body.Close()))
	var lines []struct{ ID string }
	c.requireNoError(json.Unmarshal(text, &lines))
	for _, l := range lines {
		b.Events = append(b.Events, l.ID)
	}
	b.Body = string(text)
	return b
}

func (c *randomClient) dequeueRandomly() {
	id := rt.NewBundleID()
	if len(c.shown) > 0 {
		id = c.shown[max(len(c.shown)-1-c.random.IntN(3), 0)]
	}
	end := c.Dequeue(c.number, c.now.Add(1), id.String())
	_, err := c.hub.Dequeue(c.Context(), c.actor, id)
	at := c.now.Add(1)
	switch {
	case domain.KindOf(err) == domain.NotFound:
		end(at, c.answeredAs(history.NotFound))
	case err != nil:
		c.Errorf("dequeue: %v", err)
	default:
		end(at, c.answeredAs(history.Done))
	}
}

func TestCheck_AcceptsAnswersOfACorrectHub(t *testing.T) {
	defer goleak.VerifyNone(t)
	for seed := range uint64(300) {
		h := randomHistory(t, seed, 4, 60, float64(seed%3)*0.1).Stretched(rand.New(rand.NewPCG(seed, 0)), int64(seed%4)*2)
		result := h.Check(history.Options{})
		require.Equal(t, legal, result.Verdict, "seed %d: %s\n%s", seed, result, h)
	}
}

// For legal and illegal histories, the fast search with reductions must have the same verdict as the plain search.
func TestCheck_EqualsThePlainSearch(t *testing.T) {
	var verdicts [3]int
	random := rand.New(rand.NewPCG(7, 7))
	for seed := range uint64(300) {
		h := randomHistory(t, seed, 3, 24, 0.2)
		h = h.Stretched(random, int64(seed%4)*2)
		for range seed % 3 {
			h = h.Corrupted(random)
		}
		opts := history.Options{Steps: 10_000, StaleReads: seed%5 == 0, AnyOpen: seed%7 == 0}
		plain := h.CheckPlainly(opts)
		verdicts[plain]++
		if plain == history.GaveUp {
			continue
		}
		quick := h.Check(opts)
		require.Equal(t, plain, quick.Verdict, "seed %d: %s\n%s", seed, quick, h)
	}
	require.Greater(t, verdicts[legal], 50)
	require.Greater(t, verdicts[illegal], 50)
	t.Logf("%d legal, %d illegal, %d not known", verdicts[legal], verdicts[illegal], verdicts[history.GaveUp])
}

func BenchmarkCheck(b *testing.B) {
	for _, lost := range []float64{0, 0.1} {
		b.Run(fmt.Sprintf("60 operations of 4 clients, %.0f %% unanswered", 100*lost), func(b *testing.B) {
			histories := make([]history.History, 100)
			for i := range histories {
				histories[i] = randomHistory(b, uint64(i), 4, 60, lost).Stretched(rand.New(rand.NewPCG(uint64(i), 0)), 6)
			}
			var steps, most int
			n := 0
			for b.Loop() {
				result := histories[n%len(histories)].Check(history.Options{})
				if result.Verdict != history.Legal {
					b.Fatal(result)
				}
				steps += result.Steps
				most = max(most, result.Steps)
				n++
			}
			b.ReportMetric(float64(steps)/float64(n), "steps/op")
			b.ReportMetric(float64(most), "steps-max")
		})
	}
}
