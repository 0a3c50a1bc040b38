package simulate

import (
	"time"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// Features are what some worlds have and others have not, so that each is met alone
// and together with others.
type features struct {
	routes    []route       // of the senders; nil: all call the hub
	conflicts bool          // ids are sent again with other content
	poison    bool          // and messages that are none
	requested domain.Origin // whose content is made on request; zero: none
	tail      time.Duration // of the weather, after all was sent
	operators bool
	days      int    // the nights between them are longer than the retention
	dawns     bool   // and end when a sweep is about to let go
	waits     bool   // Peeks wait for something to come
	hurry     bool   // clients give up requests
	missets   bool   // some lives of hubs have settings that are wrong
	revokes   bool   // the accounts refuse everybody for a while
	keeper    bool   // somebody gets the queues of domains wrong for a while
	hot       bool   // one partition is throttled now and then
	sockets   bool   // a connection that breaks says how
	receivers bool   // hubs call the accounts by connections of their own
	locks     string // how long the bus locks messages for
	blobs     bool   // what is asked of the blobs goes wrong as often as anything
	narrow    bool   // hubs take few messages in hand
	crowds    bool   // many callers at a time, with what is too much
	deletes   bool   // contents are deleted while their bundles are open
	vandal    bool   // somebody damages what is stored, when all else is over
}

// A route is how the events of a sender come to the hub.
type route int

const (
	overHTTP route = iota
	overSessions
	overQueue // in any order
)

func newFeatures(d dice, p *plan) (f features) {
	f.conflicts = d.n(3) == 0
	if d.n(2) == 0 {
		f.poison = d.n(3) == 0
		for range p.senders {
			f.routes = append(f.routes, []route{overHTTP, overSessions, overSessions, overQueue}[d.n(4)])
		}
	}
	if d.n(3) == 0 {
		f.requested = p.origins[d.n(len(p.origins))]
		if f.requested == p.inline {
			f.requested = p.origins[0]
		}
		p.domains = append(p.domains, config.Domain{Name: f.requested, Content: domain.Request})
	}
	f.waits = d.n(4) == 0
	f.operators = d.n(4) == 0
	f.days = 1
	if d.n(6) == 0 {
		f.days, p.retention, p.sweepEvery = 2, 30*time.Minute, 5*time.Minute
	}
	f.tail = []time.Duration{0, 20 * time.Second, 2 * time.Minute}[d.n(3)]
	return f
}
