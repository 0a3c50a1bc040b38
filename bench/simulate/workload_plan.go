package simulate

import (
	"time"

	busembedded "github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/ingest"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// The containers in the account of blobs.
const (
	contentContainer  = "messagehub-content"
	exchangeContainer = "messagehub-exchange"
)

// maxDeliveries is how often a message is delivered before it becomes a dead letter: hubs
// die more often than anywhere.
const maxDeliveries = 1000

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
func newPlan(rng, more, later, latest random.Source) plan {
	p := plan{
		consistency: []string{"Strong", "Session", "Session"}[rng.IntN(3)],
		capacity:    []int{2, 3, 3, 7, 50}[rng.IntN(5)],
		ordering:    []domain.Ordering{domain.ByCabinet, domain.ByCabinet, domain.ByRecipient}[rng.IntN(3)],
		sweepEvery:  -1,
		recipients:  1 + rng.IntN(2),
		clients:     1 + rng.IntN(2),
		senders:     1 + rng.IntN(3),
		batches:     1 + rng.IntN(4),
	}
	if rng.IntN(4) == 0 {
		p.rangeBytes = int64(2000 + rng.IntN(20_000))
	}
	p.origins = []domain.Origin{domain.TimeSeries, domain.Charges, domain.MarketRoles}[:1+rng.IntN(3)]
	p.groups = []string{"timeseries", "masterdata"}
	if rng.IntN(3) == 0 {
		p.inline = domain.Charges
		p.domains = config.Domains{{Name: domain.Charges, Content: domain.Inline}}
	}
	p.features = newFeatures(more, &p)
	p.hasCorruptor = later.IntN(5) == 0
	p.clientsGiveUp = p.hasCorruptor || later.IntN(3) == 0
	p.misconfiguresHubs, p.revokesKeys = p.hasCorruptor || later.IntN(4) == 0, later.IntN(4) == 0
	if p.hasCorruptor && p.requestedOrigin == (domain.Origin{}) && latest.IntN(2) == 0 {
		p.requestedOrigin = domain.TimeSeries
		p.domains = append(p.domains, config.Domain{Name: p.requestedOrigin, Content: domain.Request})
	}
	p.misconfiguresBus = latest.IntN(3) == 0 && p.requestedOrigin != (domain.Origin{})
	p.misconfiguresHubs = p.misconfiguresHubs || p.misconfiguresBus
	p.lockDuration = []string{"PT15S", "PT15S", "PT5S"}[latest.IntN(3)]
	p.hasLoadBursts = latest.IntN(4) == 0
	p.smallBuffers = latest.IntN(3) == 0
	p.blobsFailOften = latest.IntN(2) == 0
	return p
}

// Of ten worlds nine are small, so that many are tried: most races need few parties. The
// first seeds keep the worlds that they had, which may have everything: those that ever
// found something are among them.
const firstSmallSeed = 10_000

func isSmall(seed uint64) bool {
	return seed >= firstSmallSeed && random.NewSource(seed, 8).IntN(10) != 0
}

// shrink leaves out what needs much time, and what the histories of mailboxes do not know.
func (p *plan) shrink() {
	p.hasCorruptor, p.hasLoadBursts, p.misconfiguresBus, p.hasOperators, p.sendsConflicts = false, false, false, false, false
	p.phases, p.retention, p.sweepEvery, p.faultTail = 1, 0, -1, 0
}

// endWaitsAtSweeps has a small world sleep some nights, each until a sweep is about to let
// something go, so that Saves meet it.
func (p *plan) endWaitsAtSweeps() {
	p.stopsAtSweeps, p.phases, p.retention, p.sweepEvery = true, 4, 8*time.Minute, 2*time.Minute
}

// ingestLimits is how much a hub has in hand of the bus.
func (p *plan) ingestLimits() ingest.Limits {
	if !p.smallBuffers {
		return ingest.Limits{}
	}
	return ingest.Limits{ReceiverMessages: 5, ReceiverBytes: 4000, Messages: 5, Bytes: 1000, Saves: 1}
}

// busEntities are those of the namespace.
func (p *plan) busEntities() (e busembedded.Entities) {
	queue := func(name string, sessions bool) {
		q := busembedded.QueueSetup{Name: name}
		q.Properties.RequiresSession = sessions
		q.Properties.LockDuration = p.lockDuration
		q.Properties.MaxDeliveryCount = maxDeliveries
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

// hasRequestedContent reports whether the content of an origin is made on request.
func (p *plan) hasRequestedContent() bool { return p.requestedOrigin != (domain.Origin{}) }
