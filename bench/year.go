package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/layout"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/domain"
)

// retentionDays is the default retention of the hub for acknowledged events.
const retentionDays = 7

// measureYear saves single events for a recipient for a year of simulated time. The recipient
// fetches and confirms each event immediately, and the hub sweeps every hour. The storage at the
// end, the cost of a day and the size of the head must not grow during the year.
func measureYear(ctx context.Context, r *scenarioRun) error {
	modelled := *r
	modelled.Endpoint = "" // a real account cannot simulate time
	days := pickSize(r, 365, 30)
	for i, every := range []time.Duration{6 * time.Hour, time.Hour} {
		what := fmt.Sprintf("%d days of one event every %d h", days, every/time.Hour)
		y := &simulatedYear{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), every: every, days: days}
		err := y.runYear(ctx, &modelled, what, func(done float64) { r.reportProgress((float64(i)+done)/2, "%s", what) })
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// A simulatedYear is the simulated clock, and the size of the load.
type simulatedYear struct {
	every time.Duration // interval between two events
	days  int

	mu  sync.Mutex
	now time.Time
}

func (y *simulatedYear) clock() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.now
}

func (y *simulatedYear) advance(d time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.now = y.now.Add(d)
}

func (y *simulatedYear) runYear(ctx context.Context, r *scenarioRun, what string, progress func(done float64)) (err error) {
	a, err := account.Open(ctx, account.Options{Clock: y.clock})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if err := hub.Provision(ctx, a, perContainer); err != nil {
		return err
	}
	line := a.Line()
	repository, stop, err := openHub(ctx, a, line, cosmos.Options{Clock: y.clock})
	if err != nil {
		return err
	}
	defer stop()
	s := &layout.Store{DataAvailable: repository, Bundles: repository, Settle: repository.AwaitHints}

	src := eventSource{seed: r.Seed}
	actor := src.newActor()
	var delivery, sweeping account.Count
	for hour := range 24 * y.days {
		if hour%24 == 0 {
			progress(float64(hour) / float64(24*y.days))
		}
		before := line.Count()
		if time.Duration(hour)*time.Hour%y.every == 0 {
			if err := deliverOne(ctx, s, actor, &src); err != nil {
				return err
			}
		}
		delivered := line.Count()
		if _, err := repository.Sweep(ctx); err != nil {
			return err
		}
		delivery = sumCounts(delivery, delivered.Since(before))
		sweeping = sumCounts(sweeping, line.Count().Since(delivered))
		y.advance(time.Hour)
	}

	found, err := repository.Check(ctx, cosmos.CheckOptions{})
	if err != nil {
		return err
	}
	stored, err := readStorage(ctx, a, hub.Name, "catalog", "cabinet", "bundles")
	if err != nil {
		return err
	}
	catalog, err := readStorage(ctx, a, hub.Name, "catalog")
	if err != nil {
		return err
	}
	wanted := float64(retentionDays*24) / y.every.Hours()
	days := float64(y.days)
	r.reportFigure(hub.Name, what+", events kept", float64(found.Events), "events", figure.AtMost(2*wanted))
	r.reportFigure(hub.Name, what+", documents", float64(stored.documents), "documents", nil)
	r.reportFigure(hub.Name, what+", stored", float64(stored.bytes)/1024, "KB", nil)
	r.reportFigure(hub.Name, what+", head", float64(catalog.largest)/1024, "KB", nil)
	r.reportFigure(hub.Name, what+", delivery", delivery.Units/days, "RU/day", nil)
	r.reportFigure(hub.Name, what+", sweeping", sweeping.Units/days, "RU/day", nil)
	return nil
}

func sumCounts(a, b account.Count) account.Count {
	return account.Count{
		Requests: a.Requests + b.Requests, Refused: a.Refused + b.Refused, Units: a.Units + b.Units,
		Sent: a.Sent + b.Sent, Received: a.Received + b.Received,
	}
}

// deliverOne saves one event, and fetches and confirms it.
func deliverOne(ctx context.Context, s *layout.Store, actor domain.ActorID, src *eventSource) error {
	if err := saveAll(ctx, s, actor, src.newEvents(1, actor, 1)); err != nil {
		return err
	}
	bundle, err := openBundle(ctx, s, actor, src.newID())
	if err == nil {
		_, err = s.Acknowledge(ctx, actor, bundle.ID)
	}
	s.Settle(ctx, actor)
	return err
}
