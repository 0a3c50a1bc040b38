package simulate

import (
	"time"

	busembedded "github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/ingest"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// The containers of the Blob account.
const (
	contentContainer  = "messagehub-content"
	exchangeContainer = "messagehub-exchange"
)

// maxDeliveries is the delivery limit of the queues. It is high because hubs die more often than in production.
const maxDeliveries = 1000

// A simulationPlan describes a simulation apart from its fault profile.
type simulationPlan struct {
	consistency string
	rangeBytes  int64 // size at which a physical partition splits; 0 means that it does not split
	capacity    int   // capacity of a drawer
	ordering    domain.Ordering
	retention   time.Duration
	sweepEvery  time.Duration
	domains     config.Domains

	origins []domain.Origin // origins of sent events
	groups  []string        // groups for which actors peek
	inline  domain.Origin   // origin whose payloads are the content of its bundles; zero means none

	recipients int
	clients    int // number of clients of each actor
	senders    int
	batches    int // number of batches of each sender

	features
}

// newPlan returns a random plan. The sources more, later and latest decide about newer features, so that the plans of
// older seeds do not change.
func newPlan(rng, more, later, latest random.Source) simulationPlan {
	p := simulationPlan{
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

// firstSmallSeed is the first seed that may be small. From this seed on, nine in ten simulations are small, because
// most races need few clients and small simulations are fast. Lower seeds may have every feature, so that the
// simulations of earlier saved seeds do not change.
const firstSmallSeed = 10_000

func isSmall(seed uint64) bool {
	return seed >= firstSmallSeed && random.New(seed, 8).IntN(10) != 0
}

// shrink removes the features that are slow or that histories do not model.
func (p *simulationPlan) shrink() {
	p.hasCorruptor, p.hasLoadBursts, p.misconfiguresBus, p.hasOperators, p.sendsConflicts = false, false, false, false, false
	p.phases, p.retention, p.sweepEvery, p.faultTail = 1, 0, -1, 0
}

// endWaitsAtSweeps gives a small simulation several phases. Each later phase begins when a sweep is about to remove
// documents, so that Saves and sweeps run concurrently.
func (p *simulationPlan) endWaitsAtSweeps() {
	p.stopsAtSweeps, p.phases, p.retention, p.sweepEvery = true, 4, 8*time.Minute, 2*time.Minute
}

// ingestLimits returns the limits for the messages that a hub processes concurrently.
func (p *simulationPlan) ingestLimits() ingest.Limits {
	if !p.smallBuffers {
		return ingest.Limits{}
	}
	return ingest.Limits{ReceiverMessages: 5, ReceiverBytes: 4000, Messages: 5, Bytes: 1000, Saves: 1}
}

// busEntities returns the entities of the namespace.
func (p *simulationPlan) busEntities() (e busembedded.Entities) {
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

// hasRequestedContent reports whether an origin's content is produced on request.
func (p *simulationPlan) hasRequestedContent() bool { return p.requestedOrigin != (domain.Origin{}) }
