package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/duration"
)

// Entities are the queues and topics to create. Their JSON has the form of a namespace in the
// config.json of Microsoft's Service Bus emulator:
//
//	{"Queues": [{"Name": "orders", "Properties": {"RequiresSession": true, "LockDuration": "PT30S"}}],
//	 "Topics": [{"Name": "news", "Subscriptions": [{"Name": "all"}]}]}
type Entities struct {
	Name   string
	Queues []QueueSetup
	Topics []TopicSetup
}

// A QueueSetup is a queue, or a subscription of a topic.
type QueueSetup struct {
	Name       string
	Properties struct {
		LockDuration, DefaultMessageTimeToLive, DuplicateDetectionHistoryTimeWindow string // ISO 8601 durations such as PT1M
		RequiresSession, RequiresDuplicateDetection                                 bool
		DeadLetteringOnMessageExpiration, DeadLetteringOnFilterEvaluationExceptions bool
		MaxDeliveryCount                                                            uint32
		MaxSizeInMegabytes, MaxMessageSizeInKilobytes                               int64
		ForwardTo, ForwardDeadLetteredMessagesTo, UserMetadata                      string
	}
	Rules []RuleSetup // rules of a subscription; without rules, all messages match
}

// A TopicSetup is a topic with its subscriptions.
type TopicSetup struct {
	Name       string
	Properties struct {
		DefaultMessageTimeToLive, DuplicateDetectionHistoryTimeWindow string
		RequiresDuplicateDetection                                    bool
		MaxSizeInMegabytes, MaxMessageSizeInKilobytes                 int64
		UserMetadata                                                  string
	}
	Subscriptions []QueueSetup
}

// A RuleSetup is a rule of a subscription. FilterType is Sql, Correlation, True or False.
type RuleSetup struct {
	Name       string
	Properties struct {
		FilterType        string
		SQLFilter         *struct{ SQLExpression string } `json:"SqlFilter"`
		CorrelationFilter *struct {
			ContentType, CorrelationID, Label, MessageID, ReplyTo, ReplyToSessionID, SessionID, To string
			Properties                                                                             map[string]any
		}
		Action *struct{ SQLExpression string }
	}
}

// ReadEntities reads a namespace, or the first namespace of a config.json. If a key is unknown, the error names its
// line and path.
func ReadEntities(r io.Reader) (Entities, error) {
	const largest = 16 << 20
	text, err := io.ReadAll(io.LimitReader(r, largest))
	if err != nil {
		return Entities{}, err
	}
	var file entitiesFile
	if err := validateKeys(text, reflect.TypeFor[entitiesFile]()); err != nil {
		return Entities{}, fmt.Errorf("read entities: %w", err)
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return Entities{}, fmt.Errorf("read entities: %w", err)
	}
	if file.UserConfig == nil {
		return file.Entities, nil
	}
	if len(file.UserConfig.Namespaces) != 1 {
		return Entities{}, fmt.Errorf("read entities: %d namespaces; want one", len(file.UserConfig.Namespaces))
	}
	return file.UserConfig.Namespaces[0], nil
}

const megabyte, kilobyte = 1 << 20, 1 << 10

// declareEntities creates the entities, or updates existing ones.
func (n *Namespace) declareEntities(all Entities) error {
	for _, q := range all.Queues {
		e, err := q.toEntity(q.Name, bus.Queue)
		if err == nil {
			err = n.setEntity(e)
		}
		if err != nil {
			return fmt.Errorf("queue %s: %w", q.Name, err)
		}
	}
	for _, t := range all.Topics {
		if err := n.declareTopic(t); err != nil {
			return fmt.Errorf("topic %s: %w", t.Name, err)
		}
	}
	return nil
}

func (n *Namespace) declareTopic(t TopicSetup) error {
	p := t.Properties
	e := bus.Entity{Path: t.Name, Kind: bus.Topic, MaxBytes: p.MaxSizeInMegabytes * megabyte, MaxMessageBytes: p.MaxMessageSizeInKilobytes * kilobyte, UserMetadata: p.UserMetadata}
	window := ""
	if p.RequiresDuplicateDetection {
		window = orDefault(p.DuplicateDetectionHistoryTimeWindow, defaultWindow)
	}
	err := errors.Join(parseSpan("DefaultMessageTimeToLive", &e.DefaultTTL, p.DefaultMessageTimeToLive), parseSpan("DuplicateDetectionHistoryTimeWindow", &e.DuplicateWindow, window))
	if err == nil {
		err = n.setEntity(e)
	}
	if err != nil {
		return err
	}
	for _, s := range t.Subscriptions {
		e, err := s.toEntity(t.Name+"/Subscriptions/"+s.Name, bus.Subscription)
		if err == nil {
			err = n.setEntity(e)
		}
		if err == nil && len(s.Rules) > 0 {
			err = n.setRules(e.Path, s.Rules)
		}
		if err != nil {
			return fmt.Errorf("subscription %s: %w", s.Name, err)
		}
	}
	return nil
}

const defaultWindow = "PT10M"

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// parseSpan stores the duration in text in to. An empty text changes nothing. An error names the key.
func parseSpan[D ~int64](key string, to *D, text string) error {
	if text == "" || text == duration.Longest {
		return nil
	}
	d, err := duration.Parse(text)
	if err != nil {
		return fmt.Errorf("%s %q: %w", key, text, err)
	}
	*to = D(d)
	return nil
}

func (q *QueueSetup) toEntity(path string, kind bus.Kind) (bus.Entity, error) {
	p := q.Properties
	e := bus.Entity{
		Path: path, Kind: kind, RequiresSession: p.RequiresSession, MaxDeliveryCount: p.MaxDeliveryCount,
		DeadLetterOnExpiry: p.DeadLetteringOnMessageExpiration, DeadLetterOnFilterFail: p.DeadLetteringOnFilterEvaluationExceptions,
		MaxBytes: p.MaxSizeInMegabytes * megabyte, MaxMessageBytes: p.MaxMessageSizeInKilobytes * kilobyte,
		ForwardTo: p.ForwardTo, ForwardDeadLettersTo: p.ForwardDeadLetteredMessagesTo, UserMetadata: p.UserMetadata,
	}
	window := ""
	if p.RequiresDuplicateDetection {
		window = orDefault(p.DuplicateDetectionHistoryTimeWindow, defaultWindow)
	}
	return e, errors.Join(
		parseSpan("LockDuration", &e.LockDuration, p.LockDuration),
		parseSpan("DefaultMessageTimeToLive", &e.DefaultTTL, p.DefaultMessageTimeToLive),
		parseSpan("DuplicateDetectionHistoryTimeWindow", &e.DuplicateWindow, window),
	)
}

// awaitResult waits for an operation of the bus and returns its error.
func awaitResult(operation func(done func(error))) error {
	answer := make(chan error, 1)
	operation(func(err error) { answer <- err })
	return <-answer
}

func (n *Namespace) setEntity(e bus.Entity) error {
	err := awaitResult(func(done func(error)) { n.bus.Create(e, done) })
	if errors.Is(err, bus.ErrExists) {
		err = awaitResult(func(done func(error)) { n.bus.Update(e, done) })
	}
	return err
}

// setRules replaces the rules of a subscription.
func (n *Namespace) setRules(subscription string, rules []RuleSetup) error {
	old, err := n.bus.Rules(subscription)
	if err != nil {
		return err
	}
	for _, r := range old {
		if err := awaitResult(func(done func(error)) { n.bus.DeleteRule(subscription, r.Name, done) }); err != nil {
			return err
		}
	}
	for _, r := range rules {
		rule, err := r.toRule()
		if err == nil {
			err = awaitResult(func(done func(error)) { n.bus.AddRule(subscription, rule, done) })
		}
		if err != nil {
			return fmt.Errorf("rule %s: %w", r.Name, err)
		}
	}
	return nil
}

func (r *RuleSetup) toRule() (bus.Rule, error) {
	p := r.Properties
	rule := bus.Rule{Name: r.Name}
	if p.Action != nil {
		rule.Action = p.Action.SQLExpression
	}
	switch {
	case p.CorrelationFilter != nil:
		c := p.CorrelationFilter
		rule.Filter.Correlation = &bus.Correlation{
			CorrelationID: c.CorrelationID, MessageID: c.MessageID, To: c.To, ReplyTo: c.ReplyTo, Subject: c.Label,
			SessionID: c.SessionID, ReplyToSessionID: c.ReplyToSessionID, ContentType: c.ContentType, Properties: c.Properties,
		}
	case p.SQLFilter != nil:
		rule.Filter.SQL = p.SQLFilter.SQLExpression
	case p.FilterType == "False":
		rule.Filter.False = true
	case p.FilterType != "True" && p.FilterType != "":
		return rule, fmt.Errorf("filter type %q without its filter; want SqlFilter or CorrelationFilter", p.FilterType)
	}
	return rule, nil
}
