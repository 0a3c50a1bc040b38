package bench

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/messagehub/messagehub/bench/load"
)

// A market is recipients who share a hub, for a time.
type market struct {
	groups []group
	lasts  time.Duration
	settle time.Duration // at the beginning, and not counted
	has    throughput

	around func(policy.Transporter) policy.Transporter // between the hub and the account; nil: nothing
	beside []load.Stream                               // what else is done
}

// A group is recipients who are alike.
type group struct {
	kind   string // what they are told apart by, with a blank behind; "" for the ordinary ones
	size   int
	events float64       // a second, for all of them together
	batch  int           // events of a Save, all for one recipient
	period time.Duration // of the Peeks of each
	atOnce int           // Peeks that one has under way; what is due meanwhile waits. Default 1
}

// A day is what came of a market.
type day struct {
	result *load.Result
	events []int           // of each group that were saved meanwhile
	stocks []stock         // of each group, when all is fetched, from the beginning
	oldest []time.Duration // event of each group that waited when the load ended
	used   usage           // until then
	took   time.Duration   // until then
	life   usage           // from the beginning, until all was fetched
}

// hold lets a market go on for its time on a hub of its own, and then fetches what is
// left. Everybody has been sent something before, so nobody is new to the hub. from and
// to are which part of the scenario it is.
func (r *run) hold(ctx context.Context, m market, step string, from, to float64) (_ *day, err error) {
	hub, err := r.serve(ctx, m.has, m.around)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, hub.end()) }()
	caller := newCaller(hub.url)
	defer caller.close()
	beginning := hub.lines.count()
	plan := load.Plan{Streams: m.beside, Lasts: m.lasts, Settle: m.settle}
	var crowds []*crowd
	for i, g := range m.groups {
		c := newCrowd(caller, r.Seed+uint64(i), g)
		crowds = append(crowds, c)
		plan.Streams = append(plan.Streams, c.streams()...)
		if err := c.greet(ctx); err != nil {
			return nil, err
		}
	}
	d, before, began := new(day), hub.lines.count(), time.Now()
	if d.result, err = r.carryOut(ctx, plan, step, from, to); err != nil {
		return nil, err
	}
	d.used, d.took = hub.lines.count().since(before), time.Since(began)
	for _, c := range crowds {
		stock, oldest := c.now()
		d.events = append(d.events, stock.saved-c.size*c.batch)
		d.oldest = append(d.oldest, oldest)
	}
	for _, c := range crowds {
		if err := c.drain(ctx); err != nil {
			return nil, err
		}
		stock, _ := c.now()
		d.stocks = append(d.stocks, stock)
	}
	d.life = hub.lines.count().since(beginning)
	return d, nil
}
