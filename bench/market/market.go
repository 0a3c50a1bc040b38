package market

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/load"
	"github.com/messagehub/messagehub/bench/tokens"
)

// A Market is a load of recipients that share a hub.
type Market struct {
	Groups     []Group
	Lasts      time.Duration
	Settle     time.Duration // duration of the initial part whose operations are not counted
	Throughput Throughput
	Seed       uint64 // seed of due times, recipients and ids

	Issuer *tokens.Issuer // issuer of the tokens of all clients; if nil, actors use the header X-Actor-Id, and domains send no credentials

	Around         func(policy.Transporter) policy.Transporter // wraps the transport from the hub to the account; may be nil
	Beside         []load.Stream                               // other operations during the market
	ReportProgress func(done float64)                          // called occasionally with the progress, from 0 to 1; may be nil
}

// A Group is a set of recipients with the same load.
type Group struct {
	Kind   string        // prefix of the kinds of their operations, followed by a blank; "" for ordinary recipients
	Size   int           // number of recipients
	Events float64       // events per second for all recipients of the group together
	Batch  int           // events per Save, all for one recipient
	Period time.Duration // time between the Peeks of a recipient
	AtOnce int           // limit for concurrent Peeks of a recipient; further Peeks wait. Default: 1
}

// A Day is the outcome of a Market.
type Day struct {
	*load.Result
	Groups []Tally
	Used   Usage         // use of the account until the load ended
	Took   time.Duration // time until the load ended
	Life   Usage         // use of the account from the start until all events were fetched
}

// A Tally is the result of a Group.
type Tally struct {
	Stock                // numbers of events after the remaining events were fetched, including events that were sent before the load
	Events int           // events that were saved during the load
	Oldest time.Duration // age of the oldest unfetched event when the load ended
}

// A Stock holds numbers of events.
type Stock struct {
	Sent    int // number of events in all Saves
	Saved   int // number of events in Saves that were acknowledged
	Fetched int // number of events in bundles whose Dequeue was acknowledged
}

// Add adds the numbers of other.
func (s *Stock) Add(other Stock) {
	s.Sent += other.Sent
	s.Saved += other.Saved
	s.Fetched += other.Fetched
}

// Lost returns the number of saved events that were not fetched. It is called after all remaining
// events were fetched.
func (s Stock) Lost() int { return max(0, s.Saved-s.Fetched) }

// Duplicates returns the number of fetched events beyond those that were sent, so that some must have
// been received twice. It compares with the sent events, because a Save without a response may have
// stored its events.
func (s Stock) Duplicates() int { return max(0, s.Fetched-s.Sent) }

// Hold runs the market for its duration, and then fetches the remaining events. The hub uses a
// database of account a, and a folder. Every member has received events before, so the hub knows
// all of them. The caller removes the folder and the database.
func (m *Market) Hold(ctx context.Context, a *account.Account, database, folder string) (_ *Day, err error) {
	hub, ways, err := m.startHub(ctx, a, database, folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, hub.Stop()) }()
	caller := newMarketClient(hub.URL())
	defer caller.close()
	beginning := ways.readUsage()
	plan := load.Plan{Streams: m.Beside, Lasts: m.Lasts, Settle: m.Settle}
	var crowds []*recipientCrowd
	for i, g := range m.Groups {
		c := newCrowd(caller, m.Seed+uint64(i), g)
		crowds = append(crowds, c)
		if err := caller.signTokens(m.Issuer, c); err != nil {
			return nil, err
		}
		plan.Streams = append(plan.Streams, c.loadStreams()...)
		if err := c.sendFirstBatches(ctx); err != nil {
			return nil, err
		}
	}
	d, before, began := new(Day), ways.readUsage(), time.Now()
	if d.Result, err = m.carryOut(ctx, plan); err != nil {
		return nil, err
	}
	d.Used, d.Took = ways.readUsage().usageSince(before), time.Since(began)
	for _, c := range crowds {
		stock, oldest := c.currentStock()
		d.Groups = append(d.Groups, Tally{Events: stock.Saved - c.Size*c.Batch, Oldest: oldest})
	}
	for i, c := range crowds {
		if err := c.drainAll(ctx); err != nil {
			return nil, err
		}
		d.Groups[i].Stock, _ = c.currentStock()
	}
	d.Life = ways.readUsage().usageSince(beginning)
	return d, nil
}

// carryOut runs a plan and reports its progress.
func (m *Market) carryOut(ctx context.Context, p load.Plan) (*load.Result, error) {
	var watching sync.WaitGroup
	over := make(chan struct{})
	watching.Go(func() {
		began, tick := time.Now(), time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			if m.ReportProgress != nil {
				m.ReportProgress(min(1, float64(time.Since(began))/float64(cmp.Or(p.Lasts, 1))))
			}
			select {
			case <-tick.C:
			case <-over:
				return
			}
		}
	})
	result, err := load.Run(ctx, p)
	close(over)
	watching.Wait()
	return result, err
}
