package simulate

import (
	"time"

	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// features lists the features that only some simulations have, so that each feature occurs alone and in combinations.
type features struct {
	routes            []route       // route of each sender; nil means that all senders use HTTP
	sendsConflicts    bool          // senders repeat known ids with different content
	sendsPoison       bool          // senders send malformed messages
	requestedOrigin   domain.Origin // origin whose content is produced on request; zero means none
	faultTail         time.Duration // time for which faults continue after all events were sent
	hasOperators      bool
	phases            int    // number of phases; the retention passes between two phases
	stopsAtSweeps     bool   // the wait between two phases ends when a sweep is about to remove documents
	longPolls         bool   // Peeks may wait for events
	clientsGiveUp     bool   // clients may cancel requests
	misconfiguresHubs bool   // some hub processes have wrong settings
	revokesKeys       bool   // the accounts temporarily refuse all requests
	misconfiguresBus  bool   // the queues of a domain are temporarily broken
	hasHotPartition   bool   // one partition is sometimes throttled
	hasSocketErrors   bool   // connection errors have details
	usesReceivers     bool   // hubs reach the accounts through their own HTTP clients
	lockDuration      string // lock duration of the queues
	blobsFailOften    bool   // requests to Blob Storage fail as often as requests to Cosmos DB
	smallBuffers      bool   // hubs process few messages concurrently
	hasLoadBursts     bool   // clients send many concurrent requests, or requests that exceed a limit
	deletesContent    bool   // content is deleted while its bundle is open
	hasCorruptor      bool   // stored documents are damaged after the workload
}

// A route is the path of a sender's events to the hub: HTTP, or a queue of the bus.
type route int

const (
	overHTTP route = iota
	overSessions
	overQueue // a queue without sessions, which does not preserve the order
)

func newFeatures(rng random.Source, p *simulationPlan) (f features) {
	f.sendsConflicts = rng.IntN(3) == 0
	if rng.IntN(2) == 0 {
		f.sendsPoison = rng.IntN(3) == 0
		for range p.senders {
			f.routes = append(f.routes, []route{overHTTP, overSessions, overSessions, overQueue}[rng.IntN(4)])
		}
	}
	if rng.IntN(3) == 0 {
		f.requestedOrigin = p.origins[rng.IntN(len(p.origins))]
		if f.requestedOrigin == p.inline {
			f.requestedOrigin = p.origins[0]
		}
		p.domains = append(p.domains, config.Domain{Name: f.requestedOrigin, Content: domain.Request})
	}
	f.longPolls = rng.IntN(4) == 0
	f.hasOperators = rng.IntN(4) == 0
	f.phases = 1
	if rng.IntN(6) == 0 {
		f.phases, p.retention, p.sweepEvery = 2, 30*time.Minute, 5*time.Minute
	}
	f.faultTail = []time.Duration{0, 20 * time.Second, 2 * time.Minute}[rng.IntN(3)]
	return f
}
