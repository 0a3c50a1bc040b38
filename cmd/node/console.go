package node

import (
	"cmp"

	"github.com/messagehub/messagehub/api/console"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain/hub"
)

// newConsole returns the pages for operators.
func (n *Node) newConsole(cfg *config.Config, operator *hub.Operator, token config.Secret) *console.Console {
	return console.New(console.Options{
		Version:    cmp.Or(n.opts.Version, "unknown"),
		Operator:   operator,
		Check:      n.store.check,
		Gatherer:   n.registry,
		SessionKey: token.Reveal(),
		IsSecure:   cfg.TLS.IsOn(),
		Clock:      n.opts.Clock,
	})
}
