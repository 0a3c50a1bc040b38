package node

import "github.com/messagehub/messagehub/domain/find"

// findService returns the use case that finds the events, bundles and
// deliveries with an id.
func (n *Node) findService() *find.Service {
	ports := find.Ports{Finder: n.store, Admin: n.store, Outbox: n.store}
	if n.push.deliveries != nil {
		ports.Deliveries, ports.Streams, ports.Definitions = n.push.deliveries, n.push.streams, n.push.definitions
	}
	return find.New(ports, find.Options{})
}
