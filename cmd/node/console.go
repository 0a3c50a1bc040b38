package node

import (
	"cmp"
	"context"
	"fmt"

	"github.com/messagehub/messagehub/api/console"
	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/deadletters"
	"github.com/messagehub/messagehub/domain/find"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/survey"
)

// newConsole returns the handler of the operators' web pages.
func (n *Node) newConsole(cfg *config.Config, operator *hub.Operator, mailboxes *survey.Service, finder *find.Service, letters *deadletters.Service, check hub.Checker, token config.Secret) *console.Console {
	opts := console.Options{
		Version:     cmp.Or(n.opts.Version, "unknown"),
		Operator:    operator,
		Mailboxes:   mailboxes,
		Find:        finder,
		DeadLetters: letters,
		Check:       check,
		Nodes:       n.listNodes,
		Settings:    shownSettings(cfg),
		Gatherer:    n.registry,
		Registerer:  n.registry,
		SessionKey:  sessionKey(cfg, token).Reveal(),
		IsSecure:    cfg.TLS.IsOn(),
		Clock:       n.opts.Clock,
	}
	n.addReceivers(&opts)
	if cfg.Console.ClientID != "" {
		opts.SignIn = identity.NewCodeFlow(identity.CodeFlowOptions{
			Issuer: cfg.OIDC.Issuers[0], ClientID: cfg.Console.ClientID, ClientSecret: cfg.Console.ClientSecret.Reveal(),
			Tenants: cfg.OIDC.Tenants, RolesClaim: cfg.OIDC.RolesClaim,
			Client: n.opts.network.issuers, Clock: n.opts.Clock, Logger: n.opts.Logger,
		})
	}
	if cfg.Embedded() && !cfg.Production {
		opts.SendSample = n.sendSample
	}
	return console.New(opts)
}

// sessionKey returns the secret with which the console signs sessions, or ""
// for a random secret of this process. A token that is short enough to guess is
// not used, because every visitor has a session cookie, with which guesses can
// be verified offline.
func sessionKey(cfg *config.Config, token config.Secret) config.Secret {
	switch {
	case cfg.Console.SessionKey != "":
		return cfg.Console.SessionKey
	case len(token) >= config.MinSessionKey:
		return token
	}
	return ""
}

// shownSettings returns the settings in a form that operators may see.
func shownSettings(cfg *config.Config) []console.Setting {
	var shown []console.Setting
	for _, s := range cfg.Settings() {
		shown = append(shown, console.Setting{
			Name: s.Name, Value: s.Value, Origin: string(s.Origin), From: s.From, Usage: s.Usage, IsDefault: s.Origin == config.ByDefault,
		})
	}
	return shown
}

// listNodes returns the nodes that use the store, and the level of the store. A
// data folder has only this node.
func (n *Node) listNodes(ctx context.Context) (nodes []console.Node, level int, err error) {
	status := n.level.currentStatus()
	if n.level.member == nil {
		return []console.Node{{ID: "this node", Version: cmp.Or(n.opts.Version, "unknown"), Level: status.Highest, IsThis: true}}, status.Level, nil
	}
	if status, err = n.store.level.Status(ctx); err != nil {
		return nil, 0, err
	}
	for _, member := range status.Nodes {
		nodes = append(nodes, console.Node{ID: member.ID, Host: member.Host, Version: member.Version, Level: member.Level, IsThis: n.level.member.ID() == member.ID})
	}
	return nodes, status.Level, nil
}

// sampleEvents is the number of events that sendSample stores.
const sampleEvents = 5

// sendSample stores sampleEvents events for an actor that is reserved for
// samples.
func (n *Node) sendSample(ctx context.Context) (actor domain.ActorID, stored int, err error) {
	if actor, err = domain.ParseActorID(console.SampleActor); err != nil {
		return actor, 0, err
	}
	contentType, err := domain.ParseContentType("measured-data")
	if err != nil {
		return actor, 0, err
	}
	documentType, err := domain.ParseDocumentType("NotifyValidatedMeasureData")
	if err != nil {
		return actor, 0, err
	}
	events := make([]domain.Event, sampleEvents)
	for i := range events {
		id, err := domain.ParseEventID(n.opts.newID())
		if err != nil {
			return actor, 0, err
		}
		events[i] = domain.Event{
			ID: id, Recipient: actor, Origin: domain.TimeSeries, ContentType: contentType, DocumentType: documentType,
			SupportsBundling: true, Weight: 1, Payload: fmt.Appendf(nil, `{"sample":%d,"kwh":1.5}`, i+1),
		}
	}
	ingested, err := n.hub.Ingest(ctx, events)
	return actor, ingested.Accepted, err
}
