package node

import (
	"github.com/messagehub/messagehub/api/console"
	"github.com/messagehub/messagehub/domain/journal"
)

// addReceivers adds the use cases of receivers and objects to the options of
// the operators' web pages.
func (n *Node) addReceivers(opts *console.Options) {
	opts.Journal = journal.New(n.store, n.opts.Logger)
	if p := n.push; p != nil && p.receivers != nil {
		opts.Receivers, opts.Subscriptions, opts.Deliveries = p.receivers, p.subscriptions, p.deliveries
		opts.Replays, opts.Broker, opts.Watches = p.replays, p.broker, p.watches.useCases()
	}
	if n.objects != nil && n.objects.ledger != nil {
		opts.Objects = n.objects.ledger
	}
}
