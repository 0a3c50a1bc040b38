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

// A Market is recipients who share a hub, for a time.
type Market struct {
	Groups     []Group
	Lasts      time.Duration
	Settle     time.Duration // at the beginning, and not counted
	Throughput Throughput
	Seed       uint64 // of when something is sent, to whom, and of its ids

	Issuer *tokens.Issuer // of the tokens that all clients show; nil: actors name themselves, and domains show nothing

	Around         func(policy.Transporter) policy.Transporter // put between the hub and the account; nil: nothing
	Beside         []load.Stream                               // what else is done
	ReportProgress func(done float64)                          // is called from time to time with the progress, from 0 to 1; may be nil
}

// A Group is recipients who are alike.
type Group struct {
	Kind   string        // put before the kinds of what they do, with a blank behind; "" for the ordinary ones
	Size   int           // recipients
	Events float64       // a second, for all of them together
	Batch  int           // events of a Save, all for one recipient
	Period time.Duration // of the Peeks of each
	AtOnce int           // Peeks that one has under way; what is due meanwhile waits. Default 1
}

// A Day is the outcome of a Market.
type Day struct {
	*load.Result
	Groups []Tally
	Used   Usage         // until the load ended
	Took   time.Duration // until then
	Life   Usage         // from the beginning, until all was fetched
}

// A Tally is the outcome of a Group.
type Tally struct {
	Stock                // when all is fetched, with what was sent before the load began
	Events int           // that were saved while there was load
	Oldest time.Duration // for how long the oldest event had waited when the load ended
}

// A Stock is how many events there are.
type Stock struct {
	Sent    int // by Saves
	Saved   int // by those that were answered
	Fetched int // of bundles whose Dequeue was answered
}

// Add adds those of others.
func (s *Stock) Add(other Stock) {
	s.Sent += other.Sent
	s.Saved += other.Saved
	s.Fetched += other.Fetched
}

// Lost is how many were saved and not fetched, once all is fetched.
func (s Stock) Lost() int { return max(0, s.Saved-s.Fetched) }

// Twice is how many were fetched that were never sent: some must have come twice. A
// Save that was not answered may have stored them.
func (s Stock) Twice() int { return max(0, s.Fetched-s.Sent) }

// Hold runs the market for its time, with a hub of its own in a folder and a database of an
// account, and then fetches what is left. Everybody has been sent something before, so no member is
// new to the hub. Folder and database are the caller's to remove.
func (m *Market) Hold(ctx context.Context, a *account.Account, database, folder string) (_ *Day, err error) {
	hub, ways, err := m.startHub(ctx, a, database, folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, hub.Stop()) }()
	caller := newCaller(hub.URL())
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
		if err := c.greetAll(ctx); err != nil {
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

// carryOut carries out a plan and reports its progress.
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
