package node

import "github.com/messagehub/messagehub/domain/find"

// finder returns the use case that finds ids.
func (n *Node) finder() *find.Service {
	ports := find.Ports{Finder: n.store, Operations: n.store, Outbox: n.store}
	if n.push.deliveries != nil {
		ports.Deliveries = n.push.deliveries
	}
	return find.New(ports, find.Options{})
}
