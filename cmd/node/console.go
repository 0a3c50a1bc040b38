package node

import (
	"cmp"
	"context"
	"fmt"

	"github.com/messagehub/messagehub/api/console"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/survey"
)

// newConsole returns the pages for operators.
func (n *Node) newConsole(cfg *config.Config, operator *hub.Operator, mailboxes *survey.Service, check hub.Checker, token config.Secret) *console.Console {
	opts := console.Options{
		Version:    cmp.Or(n.opts.Version, "unknown"),
		Operator:   operator,
		Mailboxes:  mailboxes,
		Check:      check,
		Nodes:      n.listNodes,
		Settings:   shownSettings(cfg),
		Gatherer:   n.registry,
		SessionKey: sessionKey(token.Reveal()),
		IsSecure:   cfg.TLS.IsOn(),
		Clock:      n.opts.Clock,
	}
	if cfg.Embedded() && !cfg.Production {
		opts.SendSample = n.sendSample
	}
	return console.New(opts)
}

// minSessionKey is the length in characters from which a token of operators cannot be guessed, such as those
// that nodes generate.
const minSessionKey = 26

// sessionKey returns the secret of sessions that nodes with the same token of operators share. It is empty if
// the token is short: a cookie that is sealed with it, which each visitor gets, would let its owner try
// tokens without the hub, and without the limit of failed logins.
func sessionKey(token string) string {
	if len(token) < minSessionKey {
		return ""
	}
	return token
}

// shownSettings returns the settings as operators may see them.
func shownSettings(cfg *config.Config) []console.Setting {
	var shown []console.Setting
	for _, s := range cfg.Settings() {
		shown = append(shown, console.Setting{
			Name: s.Name, Value: s.Value, Origin: string(s.Origin), From: s.From, Usage: s.Usage, IsDefault: s.Origin == config.ByDefault,
		})
	}
	return shown
}

// listNodes returns the nodes that work on the store. A data folder has this one alone.
func (n *Node) listNodes(ctx context.Context) (nodes []console.Node, level int, err error) {
	status := n.level.now()
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

// sampleEvents is the number of events of sample traffic.
const sampleEvents = 5

// sendSample stores a few events for an actor that no real one has.
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
