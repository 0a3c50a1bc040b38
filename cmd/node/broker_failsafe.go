package node

import (
	"cmp"
	"context"
	"fmt"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
	"github.com/messagehub/messagehub/api/broker/failsafe"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// openFailSafe creates the broker's fail-safe worker if the setting
// broker.fail-safe is "worker". The worker authenticates its calls with the
// operator's token.
func (n *Node) openFailSafe(cfg *config.Config, token config.Secret) error {
	if cfg.Broker.FailSafe != config.FailSafeWorker || n.push.broker == nil {
		return nil
	}
	if token == "" {
		n.opts.Logger.Warn("the worker of broker.fail-safe does not run, because the hub has no token for its operators; set admin.token (MESSAGEHUB_ADMIN_TOKEN) at all nodes")
		return nil
	}
	client, err := brokerclient.New(brokerclient.Options{
		URL: cmp.Or(cfg.Broker.RetriggerURL, n.URL()), Credentials: brokerclient.Credentials{AdminToken: token.Reveal()},
		HTTP: n.opts.network.hubs, Budget: -1,
	})
	if err != nil {
		return fmt.Errorf("broker.retrigger-url: %w", err)
	}
	n.failSafe = failsafe.New(failsafe.NewClient(client), failsafe.Options{
		Delay: cfg.Broker.RationalDelay, Clock: n.opts.Clock, Random: n.opts.Random, Logger: n.opts.Logger,
	})
	return nil
}

// runFailSafe re-triggers overdue jobs until ctx ends.
func (n *Node) runFailSafe(ctx context.Context) {
	if n.failSafe != nil {
		n.failSafe.Run(ctx)
	}
}
