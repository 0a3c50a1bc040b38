package node

import (
	"context"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/publish"
)

// A notifier delivers notices to domains over the bus, and to subscribers and
// watchers through streams.
type notifier struct {
	domains     hub.Notifier
	subscribers *publish.Service // subscribers is nil if the node does not call receivers
	watchers    *watches         // watchers is nil if the node does not call receivers
}

// Notify implements [hub.Notifier].
func (n *notifier) Notify(ctx context.Context, notice domain.Notice) error {
	if notice.Audience == domain.ForDomain {
		return n.domains.Notify(ctx, notice)
	}
	if n.subscribers == nil {
		return domain.Errorf(domain.Unavailable, "this node publishes no events; notices for subscribers wait for one that does")
	}
	if notice.Audience == domain.ForWatchers || notice.Audience == domain.ForWatchersOfRemoval {
		return n.watchers.relay.Notify(ctx, notice)
	}
	return n.subscribers.Notify(ctx, notice)
}
