package find

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// addPublished adds an event of a topic to a, and its deliveries to subscriptions of an actor.
func (s *Service) addPublished(ctx context.Context, a *Answer, q *Query) error {
	topic := cmp.Or(q.Topic, domain.DefaultTopic)
	stream, err := domain.ParseTopic(topic)
	if err != nil {
		return err
	}
	if s.ports.Streams == nil {
		a.note("This hub has no store for published events.")
		return nil
	}
	at, err := s.ports.Streams.Find(ctx, stream, q.MessageID)
	if domain.KindOf(err) == domain.NotFound {
		a.note(fmt.Sprintf("An event of a topic can be found by its id for %d hours after it was published, at least.", int(repository.IDRetention.Hours())))
		return nil
	}
	if err != nil {
		return err
	}
	entries, err := s.ports.Streams.Read(ctx, stream, at, 1)
	if err != nil {
		return err
	}
	r := Result{Kind: Published, State: StatePublished, Title: "Event of topic " + topic}
	step := Step{What: StepPublished, Text: fmt.Sprintf("The event was published to topic %s.", topic), Details: []Detail{
		{"priority", strconv.Itoa(at.Priority)}, {"number", strconv.FormatInt(at.Number, 10)},
	}}
	if len(entries.Entries) > 0 && entries.Entries[0].Position.EntryID == at.EntryID {
		e := &entries.Entries[0]
		step.At = e.Published
		step.Details = append(step.Details, Detail{"type", e.Attributes["type"]}, Detail{"source", e.Attributes["source"]})
	} else {
		r.Notes = append(r.Notes, "The event is no longer stored: its retention has passed.")
	}
	r.Steps = []Step{step}
	a.add(r)
	if q.Actor.IsZero() {
		a.note("Name the actor of a subscription to see the delivery to it.")
		return nil
	}
	return s.addDeliveries(ctx, a, q.Actor, stream, at.EntryID)
}

// addDeliveries adds the deliveries of a stream entry to subscriptions of an actor.
func (s *Service) addDeliveries(ctx context.Context, a *Answer, owner domain.ActorID, stream domain.StreamName, entry domain.EntryID) error {
	definitions, err := s.ports.Definitions.Subscriptions(ctx, owner)
	if err != nil {
		return err
	}
	for _, d := range definitions {
		if of, err := d.Stream(); err != nil || of != stream {
			continue
		}
		if err := s.addDelivery(ctx, a, domain.DeliveryID{Subscription: d.ID, Entry: entry}); err != nil {
			return err
		}
	}
	return nil
}
