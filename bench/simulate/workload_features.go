package simulate

import (
	"time"

	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// Features are what some worlds have and others have not, so that each is met alone
// and together with others.
type features struct {
	routes            []route       // of the senders; nil: all call the hub
	sendsConflicts    bool          // ids are sent again with other content
	sendsPoison       bool          // and messages that are none
	requestedOrigin   domain.Origin // whose content is made on request; zero: none
	faultTail         time.Duration // of the weather, after all was sent
	hasOperators      bool
	phases            int    // the nights between them are longer than the retention
	stopsAtSweeps     bool   // and end when a sweep is about to let go
	longPolls         bool   // Peeks wait for something to come
	clientsGiveUp     bool   // clients give up requests
	misconfiguresHubs bool   // some lives of hubs have settings that are wrong
	revokesKeys       bool   // the accounts refuse everybody for a while
	misconfiguresBus  bool   // somebody gets the queues of domains wrong for a while
	hasHotPartition   bool   // one partition is throttled now and then
	hasSocketErrors   bool   // a connection that breaks says how
	usesReceivers     bool   // hubs call the accounts by connections of their own
	lockDuration      string // how long the bus locks messages for
	blobsFailOften    bool   // what is asked of the blobs goes wrong as often as anything
	smallBuffers      bool   // hubs take few messages in hand
	hasLoadBursts     bool   // many callers at a time, with what is too much
	deletesContent    bool   // contents are deleted while their bundles are open
	hasCorruptor      bool   // somebody damages what is stored, when all else is over
}

// A route is how the events of a sender come to the hub.
type route int

const (
	overHTTP route = iota
	overSessions
	overQueue // in any order
)

func newFeatures(rng random.Source, p *plan) (f features) {
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
