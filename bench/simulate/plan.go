package simulate

import (
	"time"

	busembedded "github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/ingest"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// The containers in the account of blobs.
const (
	content_  = "messagehub-content"
	exchange_ = "messagehub-exchange"
)

// deliveries is how often a message is delivered before it becomes a dead letter: hubs
// die more often than anywhere.
const deliveries = 1000

// A plan is what a world is like, apart from its weather.
type plan struct {
	consistency string
	rangeBytes  int64 // of a physical partition, before it splits
	capacity    int   // of a drawer
	ordering    domain.Ordering
	retention   time.Duration
	sweepEvery  time.Duration
	domains     config.Domains

	origins []domain.Origin // that are sent
	groups  []string        // that are peeked
	inline  domain.Origin   // whose payloads are the content; zero: none

	recipients int
	clients    int // of each actor
	senders    int
	batches    int // of each sender

	features
}

// newPlan makes a plan. What came later is drawn from more, so that a seed keeps the
// world that it had.
func newPlan(d, more, later, latest dice) plan {
	p := plan{
		consistency: []string{"Strong", "Session", "Session"}[d.n(3)],
		capacity:    []int{2, 3, 3, 7, 50}[d.n(5)],
		ordering:    []domain.Ordering{domain.ByCabinet, domain.ByCabinet, domain.ByRecipient}[d.n(3)],
		sweepEvery:  -1,
		recipients:  1 + d.n(2),
		clients:     1 + d.n(2),
		senders:     1 + d.n(3),
		batches:     1 + d.n(4),
	}
	if d.n(4) == 0 {
		p.rangeBytes = int64(2000 + d.n(20_000))
	}
	p.origins = []domain.Origin{domain.TimeSeries, domain.Charges, domain.MarketRoles}[:1+d.n(3)]
	p.groups = []string{"timeseries", "masterdata"}
	if d.n(3) == 0 {
		p.inline = domain.Charges
		p.domains = config.Domains{{Name: domain.Charges, Content: domain.Inline}}
	}
	p.features = newFeatures(more, &p)
	p.vandal = later.n(5) == 0
	p.hurry = p.vandal || later.n(3) == 0
	p.missets, p.revokes = p.vandal || later.n(4) == 0, later.n(4) == 0
	if p.vandal && p.requested == (domain.Origin{}) && latest.n(2) == 0 {
		p.requested = domain.TimeSeries
		p.domains = append(p.domains, config.Domain{Name: p.requested, Content: domain.Request})
	}
	p.keeper = latest.n(3) == 0 && p.requested != (domain.Origin{})
	p.missets = p.missets || p.keeper
	p.locks = []string{"PT15S", "PT15S", "PT5S"}[latest.n(3)]
	p.crowds = latest.n(4) == 0
	p.narrow = latest.n(3) == 0
	p.blobs = latest.n(2) == 0
	return p
}

// Of ten worlds nine are small, so that many are tried: most races need few parties. The
// first seeds keep the worlds that they had, which may have everything: those that ever
// found something are among them.
const everything = 10_000

func isSmall(seed uint64) bool { return seed >= everything && newDice(seed, 8).n(10) != 0 }

// shrinks leaves out what needs much time, and what the histories of mailboxes do not know.
func (p *plan) shrinks() {
	p.vandal, p.crowds, p.keeper, p.operators, p.conflicts = false, false, false, false, false
	p.days, p.retention, p.sweepEvery, p.tail = 1, 0, -1, 0
}

// wakesUpEarly has a small world sleep some nights, each until a sweep is about to let
// something go, so that Saves meet it.
func (p *plan) wakesUpEarly() {
	p.dawns, p.days, p.retention, p.sweepEvery = true, 4, 8*time.Minute, 2*time.Minute
}

// ingestion is how much a hub has in hand of the bus.
func (p *plan) ingestion() ingest.Limits {
	if !p.narrow {
		return ingest.Limits{}
	}
	return ingest.Limits{ReceiverMessages: 5, ReceiverBytes: 4000, Messages: 5, Bytes: 1000, Saves: 1}
}

// entities are those of the namespace.
func (p *plan) entities() (e busembedded.Entities) {
	queue := func(name string, sessions bool) {
		q := busembedded.QueueSetup{Name: name}
		q.Properties.RequiresSession = sessions
		q.Properties.LockDuration = p.locks
		q.Properties.MaxDeliveryCount = deliveries
		e.Queues = append(e.Queues, q)
	}
	cfg := config.Default()
	cfg.Domains = p.domains
	queue(cfg.ServiceBus.FIFO, true)
	queue(cfg.ServiceBus.Plain, false)
	queues := cfg.Queues()
	for _, origin := range cfg.Groups().Origins() {
		queue(queues[origin].Request, true)
		queue(queues[origin].Reply, true)
		queue(queues[origin].Dequeue, false)
	}
	return e
}

// isRequesting reports whether the content of an origin is made on request.
func (p *plan) isRequesting() bool { return p.requested != (domain.Origin{}) }
