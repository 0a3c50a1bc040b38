package simulate

import (
	"time"

	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// features are what only some simulations have, so that each feature occurs alone and combined with others.
type features struct {
	routes            []route       // route of each sender; nil: all send by HTTP
	sendsConflicts    bool          // known ids are sent again with other content
	sendsPoison       bool          // malformed messages are sent
	requestedOrigin   domain.Origin // the origin whose content is produced on request; zero: none
	faultTail         time.Duration // how long faults continue after all events were sent
	hasOperators      bool
	phases            int    // number of phases; between them the retention passes
	stopsAtSweeps     bool   // a wait between phases ends when a sweep is about to remove something
	longPolls         bool   // Peeks may wait for events
	clientsGiveUp     bool   // clients may cancel requests
	misconfiguresHubs bool   // some hub processes have wrong settings
	revokesKeys       bool   // the accounts refuse all requests for a while
	misconfiguresBus  bool   // queues of domains are broken for a while
	hasHotPartition   bool   // one partition is throttled sometimes
	hasSocketErrors   bool   // connection errors have details
	usesReceivers     bool   // hubs reach the accounts through their own HTTP clients
	lockDuration      string // lock duration of the queues
	blobsFailOften    bool   // requests to Blob Storage fail as often as others
	smallBuffers      bool   // hubs accept few messages at a time
	hasLoadBursts     bool   // many requests at a time, or too large ones
	deletesContent    bool   // content is deleted while its bundle is open
	hasCorruptor      bool   // stored documents are damaged after the workload
}

// A route is how a sender's events reach the hub.
type route int

const (
	overHTTP route = iota
	overSessions
	overQueue // not in order
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
