package node

import (
	"cmp"
	"context"

	"github.com/messagehub/messagehub/api/broker/failsafe"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// openFailSafe gives the node the worker of the broker's fail-safe, if the configuration wants one.
// token is that of the operators.
func (n *Node) openFailSafe(cfg *config.Config, token config.Secret) {
	if cfg.Broker.FailSafe != config.FailSafeWorker || n.push.broker == nil {
		return
	}
	if token == "" {
		n.opts.Logger.Warn("the worker of broker.fail-safe does not run, because the hub has no token for its operators; set admin.token (MESSAGEHUB_ADMIN_TOKEN) at all nodes")
		return
	}
	base := cmp.Or(cfg.Broker.RetriggerURL, n.URL())
	n.failSafe = failsafe.New(failsafe.NewClient(base, token.Reveal(), n.opts.network.hubs.Do), failsafe.Options{
		Delay: cfg.Broker.RationalDelay, Clock: n.opts.Clock, Random: n.opts.Random, Logger: n.opts.Logger,
	})
}

// runFailSafe re-triggers overdue jobs until ctx ends.
func (n *Node) runFailSafe(ctx context.Context) {
	if n.failSafe != nil {
		n.failSafe.Run(ctx)
	}
}
