package simulate

// Features are what some worlds have and others have not, so that each is met alone
// and together with others.
type features struct {
	routes    []route // of the senders; nil: all call the hub
	conflicts bool    // ids are sent again with other content
	poison    bool    // and messages that are none
	hurry     bool    // clients give up requests
	missets   bool    // some lives of hubs have settings that are wrong
	revokes   bool    // the accounts refuse everybody for a while
	vandal    bool    // somebody damages what is stored, when all else is over
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
	return f
}
