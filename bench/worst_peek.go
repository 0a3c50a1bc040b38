package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/layout"
	"github.com/messagehub/messagehub/bench/limit"
	"github.com/messagehub/messagehub/domain"
)

// worstEvents is the number of events in the largest bundle: a full bundle of the smallest events.
const worstEvents = domain.MaxBundleWeight

// perContainer is the throughput of each container of a layout, in request units per
// second: six physical partitions, for the six drawers of the largest bundle.
const perContainer = 60_000

// measureWorstPeek opens and confirms a bundle of 51,200 events of one cabinet, which are in six
// drawers. First it does so in rounds, each with all layouts in turn, and compares the hub's
// Peek with its bare requests. Then it peeks over HTTP, with a domain that produces the content.
// If the account is embedded, it finally counts the request units of the standard profile, on an
// account that simulates no latency and no throughput limits.
func measureWorstPeek(ctx context.Context, r *scenarioRun) error {
	return r.runInNewSite(ctx, func(p testSite) error { return worstPeekAt(ctx, r, p.Account) })
}

func worstPeekAt(ctx context.Context, r *scenarioRun, a *account.Account) error {
	rounds := pickSize(r, 5, 1)
	src := eventSource{seed: r.Seed}
	found := worstCosts{peeks: map[string][]cost{}, dequeues: map[string][]cost{}}
	if err := r.provisionAll(ctx, a); err != nil {
		return err
	}
	for round := range rounds {
		err := found.measureRound(ctx, r.measuredLayouts(), a, &src, func(done float64, name string) {
			r.reportProgress(0.9*(float64(round)+done)/float64(rounds), "round %d of %d: %s", round+1, rounds, name)
		})
		if err != nil {
			return err
		}
	}
	found.reportCosts(r)
	if err := measureWholePeek(ctx, r, a, &src); err != nil {
		return err
	}
	if r.Endpoint != "" {
		return nil // the charges of a real account are not known in advance
	}
	return measureStandardPeek(ctx, r, src)
}

// worstCosts holds the costs of Peek and Dequeue of the largest bundle, by layout. The costs of the
// bare requests for a Peek have the layout name "limit".
type worstCosts struct{ peeks, dequeues map[string][]cost }

// measureRound peeks and dequeues the same events with each layout.
func (w worstCosts) measureRound(ctx context.Context, layouts []layout.Layout, a *account.Account, src *eventSource, progress func(done float64, name string)) error {
	actor := src.newActor()
	events := src.newEvents(int(worstEvents), actor, 1)
	for i, l := range layouts {
		progress(float64(i)/float64(len(layouts)), l.Name)
		if err := fillStore(ctx, l, a, actor, events); err != nil {
			return err
		}
		peeked, dequeued, err := fetchBundle(ctx, l, a, actor, src.newID(), len(events), func() error {
			if l.Name != hub.Name {
				return nil
			}
			took, err := measureLimitPeek(ctx, a, events[0].Cabinet())
			w.peeks["limit"] = append(w.peeks["limit"], took)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		w.peeks[l.Name] = append(w.peeks[l.Name], peeked)
		w.dequeues[l.Name] = append(w.dequeues[l.Name], dequeued)
	}
	return nil
}

// reportCosts reports the cost of each operation with each layout, and the ratio of each additional
// layout to the hub.
func (w worstCosts) reportCosts(r *scenarioRun) {
	ours := w.peeks[hub.Name]
	for _, name := range r.reportedLayouts() {
		found := w.peeks[name]
		if found == nil {
			continue
		}
		r.reportFigure(name, "peek", median(found, seconds), "s", nil)
		r.reportFigure(name, "peek, request units", median(found, units), "RU", nil)
		r.reportFigure(name, "peek, requests", median(found, requests), "requests", nil)
		switch name {
		case "limit":
		case hub.Name:
			r.reportFigure(name, "peek, ratio to the limit", median(found, seconds)/median(w.peeks["limit"], seconds), "times", figure.AtMost(1.25))
		default:
			r.reportFigure(name, "peek, ratio to the hub", median(found, seconds)/median(ours, seconds), "times", figure.AtLeast(5))
			r.reportFigure(name, "peek, request units, ratio to the hub", median(found, units)/median(ours, units), "times", figure.AtLeast(20))
		}
		if dequeued := w.dequeues[name]; dequeued != nil {
			r.reportFigure(name, "dequeue", median(dequeued, milliseconds), "ms", nil)
			r.reportFigure(name, "dequeue, request units", median(dequeued, units), "RU", nil)
		}
	}
}

// reportedLayouts returns the names in the order of the report: the limit first, then the
// layouts.
func (r *scenarioRun) reportedLayouts() []string {
	names := []string{"limit"}
	for _, l := range r.measuredLayouts() {
		names = append(names, l.Name)
	}
	return names
}

// fetchBundle peeks and dequeues over a new line, through a store with warm caches, and
// calls between after the Peek. Requests in the background are counted, but not timed.
func fetchBundle(ctx context.Context, l layout.Layout, a *account.Account, actor domain.ActorID, id domain.BundleID, want int, between func() error) (peeked, dequeued cost, err error) {
	line := a.Line()
	s, err := l.Open(ctx, a, line)
	if err != nil {
		return cost{}, cost{}, err
	}
	defer s.Close()
	next, err := s.NextUnacknowledged(ctx, actor, allGroups)
	if err == nil {
		_, err = composeBundle(ctx, id, next.Run) // warms the caches, and does not open the bundle
	}
	if err != nil {
		return cost{}, cost{}, err
	}
	peeked, err = measureCost(line, func() error {
		bundle, err := openBundle(ctx, s, actor, id)
		if err == nil && bundle.Count != want {
			err = fmt.Errorf("the bundle has %d events, want %d", bundle.Count, want)
		}
		return err
	})
	if err == nil {
		err = between()
	}
	if err != nil {
		return cost{}, cost{}, err
	}
	before := line.Count()
	dequeued, err = measureCost(line, func() error {
		_, err := s.Acknowledge(ctx, actor, id)
		return err
	})
	s.Settle(ctx, actor)
	dequeued.Count = line.Count().Since(before)
	return peeked, dequeued, err
}

// measureStandardPeek compares the request units of the standard profile.
func measureStandardPeek(ctx context.Context, r *scenarioRun, src eventSource) (err error) {
	r.reportProgress(0.95, "the standard profile")
	a, err := account.Open(ctx, account.Options{Standard: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if err := r.provisionAll(ctx, a); err != nil {
		return err
	}
	found := worstCosts{peeks: map[string][]cost{}, dequeues: map[string][]cost{}}
	if err := found.measureRound(ctx, r.measuredLayouts(), a, &src, func(float64, string) {}); err != nil {
		return err
	}
	for _, name := range r.reportedLayouts() {
		peeks := found.peeks[name]
		if peeks == nil {
			continue
		}
		r.reportFigure(name, "peek, standard request units", units(peeks[0]), "RU", nil)
		if name != "limit" && name != hub.Name {
			r.reportFigure(name, "peek, standard request units, ratio to the hub", units(peeks[0])/units(found.peeks[hub.Name][0]), "times", figure.AtLeast(10))
		}
	}
	return nil
}

// measureLimitPeek sends the bare requests for the bundle that the hub has just
// peeked.
func measureLimitPeek(ctx context.Context, a *account.Account, cabinet domain.CabinetKey) (cost, error) {
	stored, err := readStored(ctx, a, cabinet)
	if err != nil {
		return cost{}, err
	}
	line := a.Line()
	l, stop, err := openLimit(a, line)
	if err != nil {
		return cost{}, err
	}
	defer stop()
	if _, err := l.Read(ctx, cabinet); err != nil { // a request before the measurement, because the hub's client has also sent requests before
		return cost{}, err
	}
	return measureCost(line, func() error { return l.Peek(ctx, stored) })
}

// openLimit returns a limit that sends its requests over l to the database of
// the hub.
func openLimit(a *account.Account, l *account.Line) (*limit.Limit, func(), error) {
	client, err := a.Client(l)
	if err != nil {
		return nil, nil, err
	}
	bare, err := limit.New(client, hub.Name)
	return bare, client.Close, err
}

// readStored reads the documents that the hub has stored for a cabinet, over an unmetered line.
func readStored(ctx context.Context, a *account.Account, cabinet domain.CabinetKey) (*limit.Stored, error) {
	l, stop, err := openLimit(a, a.Unmetered())
	if err != nil {
		return nil, err
	}
	defer stop()
	return l.Read(ctx, cabinet)
}
