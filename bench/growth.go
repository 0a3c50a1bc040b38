package bench

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/layout"
	"github.com/messagehub/messagehub/domain"
)

// growthBundle is the number of events in each measured Save, Peek and Dequeue.
const growthBundle = 128

// measureGrowth repeats the same few operations on queues of a thousand events, of ten
// thousand, and so on. The cost of an operation must not depend on the number of stored
// events.
func measureGrowth(ctx context.Context, r *scenarioRun) error {
	return r.runInNewSite(ctx, func(p testSite) error { return growthAt(ctx, r, p.Account) })
}

func growthAt(ctx context.Context, r *scenarioRun, a *account.Account) error {
	if err := hub.Provision(ctx, a, perContainer); err != nil {
		return err
	}
	sizes := pickSize(r, []int{1_000, 10_000, 100_000, 1_000_000}, []int{1_000, 10_000, 100_000})
	times := pickSize(r, 60, 20)
	g := &growingQueue{account: a, src: eventSource{seed: r.Seed}, line: a.Line()}
	g.actor = g.src.newActor()
	var err error
	if g.store, err = hub.Open(ctx, a, g.line); err != nil {
		return err
	}
	defer g.store.Close()
	for i, size := range sizes {
		r.reportProgress(float64(i)/float64(len(sizes)), "fill up to %d events", size)
		if err := g.fillTo(ctx, size); err != nil {
			return err
		}
		r.reportProgress((float64(i)+0.5)/float64(len(sizes)), "measure with %d events", size)
		if err := g.measureSize(ctx, size, times); err != nil {
			return err
		}
	}
	for _, operation := range growthOperations {
		g.reportOperation(r, operation)
	}
	return nil
}

var growthOperations = []string{"save", "peek", "dequeue"}

// A growingQueue is the queue of one recipient, and the measured costs at its sizes.
type growingQueue struct {
	account *account.Account
	src     eventSource
	line    *account.Line
	store   *layout.Store
	actor   domain.ActorID
	waiting int // number of waiting events
	found   []growthCost
}

// A growthCost is the cost of an operation at one size of the queue.
type growthCost struct {
	operation string
	size      int
	costs     []cost
}

// growthWeight is the weight of an event: growthBundle events of this weight fill a bundle.
const growthWeight = domain.MaxBundleWeight / growthBundle

// fillTo saves events until size events are waiting in the queue. Simulated latency and throughput
// limits do not apply to its Saves. They are as large as the measured Saves, so that the pages have
// the same size: the cost of a Peek depends on the size of a page.
func (g *growingQueue) fillTo(ctx context.Context, size int) error {
	s, err := hub.Open(ctx, g.account, g.account.Unmetered())
	if err != nil {
		return err
	}
	defer s.Close()
	for ; g.waiting < size; g.waiting += growthBundle {
		if err := saveAll(ctx, s, g.actor, g.src.newEvents(growthBundle, g.actor, growthWeight)); err != nil {
			return fmt.Errorf("fill %s: %w", hub.Name, err)
		}
	}
	s.Settle(ctx, g.actor)
	return nil
}

// measureSize measures each operation; times is the number of repetitions. The store first reads
// the queue once at its new size, so that its caches are warm.
func (g *growingQueue) measureSize(ctx context.Context, size, times int) error {
	costs := map[string][]cost{}
	for i := range times + 1 {
		id := g.src.newID()
		events := g.src.newEvents(growthBundle, g.actor, growthWeight)
		for _, operation := range growthOperations {
			took, err := g.measureOnce(ctx, operation, id, events)
			if err != nil {
				return fmt.Errorf("%s with %d events: %w", operation, size, err)
			}
			if i > 0 {
				costs[operation] = append(costs[operation], took)
			}
		}
	}
	for _, operation := range growthOperations {
		g.found = append(g.found, growthCost{operation, size, costs[operation]})
	}
	return nil
}

func (g *growingQueue) measureOnce(ctx context.Context, operation string, id domain.BundleID, events []domain.Event) (cost, error) {
	before := g.line.Count()
	took, err := measureCost(g.line, func() error {
		switch operation {
		case "save":
			return saveAll(ctx, g.store, g.actor, events)
		case "peek":
			bundle, err := openBundle(ctx, g.store, g.actor, id)
			if err == nil && bundle.Count != growthBundle {
				err = fmt.Errorf("the bundle has %d events, want %d", bundle.Count, growthBundle)
			}
			return err
		case "dequeue":
			_, err := g.store.Acknowledge(ctx, g.actor, id)
			return err
		default:
			return errors.New("no such operation")
		}
	})
	g.store.Settle(ctx, g.actor)
	took.Count = g.line.Count().Since(before)
	return took, err
}

// reportOperation reports the cost of an operation at each size, and the growth of the cost.
func (g *growingQueue) reportOperation(r *scenarioRun, operation string) {
	var sizes, took, charged, sent []float64
	var time, price []figure.Point
	for _, f := range g.found {
		if f.operation != operation {
			continue
		}
		x, ms, ru := float64(f.size), median(f.costs, milliseconds), median(f.costs, units)
		sizes, took, charged, sent = append(sizes, x), append(took, ms), append(charged, ru), append(sent, median(f.costs, requests))
		time, price = append(time, figure.Point{X: x, Y: ms}), append(price, figure.Point{X: x, Y: ru})
		r.reportFigure("hub", fmt.Sprintf("%s with %d events stored", operation, f.size), ms, "ms", nil)
	}
	last := len(sizes) - 1
	r.reportFigure("hub", operation+", slope of the time", slope(sizes, took), "log/log", figure.AtMost(0.1))
	r.reportFigure("hub", operation+", request units, maximum to minimum", charged[last]/charged[0], "times", figure.AtMost(1.05))
	r.reportFigure("hub", operation+", requests, maximum to minimum", sent[last]/sent[0], "times", figure.AtMost(1))
	r.reportCurve(figure.Growth, "hub "+operation, "ms", time...)
	r.reportCurve(figure.Growth, "hub "+operation, "RU", price...)
}

// slope returns the slope of the best-fitting straight line through the
// logarithms of x and y.
func slope(x, y []float64) float64 {
	var sx, sy, sxx, sxy float64
	for i := range x {
		lx, ly := math.Log(x[i]), math.Log(y[i])
		sx, sy, sxx, sxy = sx+lx, sy+ly, sxx+lx*lx, sxy+lx*ly
	}
	n := float64(len(x))
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
