package console

import (
	"context"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/journal"
)

// subscriptionSubject returns the subject of the records of a subscription.
func subscriptionSubject(id domain.SubscriptionID) journal.Subject {
	return journal.SubjectOf("subscription", id.String())
}

// pauseSubscription shows the form that pauses a subscription. If the form was submitted, it pauses
// the subscription.
func (v *visit) pauseSubscription() error {
	return v.orderSubscription("pause", true, &confirmation{
		title: "Pause subscription", button: "Pause the subscription",
		effect: "The receiver is not called until the subscription is resumed, by an operator or by its owner. Messages wait until then, or until their retention has passed.",
	})
}

// resumeSubscription shows the form that resumes a subscription. If the form was submitted, it
// resumes the subscription.
func (v *visit) resumeSubscription() error {
	return v.orderSubscription("resume", false, &confirmation{
		title: "Resume subscription", button: "Resume the subscription",
		effect: "The receiver is called again immediately, even if it was paused because of failures, by 410 Gone or by Retry-After.",
	})
}

func (v *visit) orderSubscription(what string, isPaused bool, c *confirmation) error {
	owner, id, err := v.subscriptionOf()
	if err != nil {
		return err
	}
	s, err := v.opts.Subscriptions.Get(v.ctx(), owner, id)
	if err != nil {
		return err
	}
	paused := "not paused by its owner or an operator"
	if s.IsPaused {
		paused = "paused by its owner or an operator"
	}
	c.about, c.typed, c.typedLabel = id.String(), owner.String(), "Owner"
	c.state = []fact{textFact("Owner", owner.String()), textFact("Topic", s.Topic), textFact("Subscription", paused), textFact("Version", s.Version)}
	c.after = withQuery(link("subscriptions", owner.String(), id.String(), "records"), "done", "1")
	c.carryOut = func(by hub.AdminAction) error {
		return v.opts.Journal.CarryOut(v.ctx(), subscriptionSubject(id), what, "", by, func(ctx context.Context) error {
			_, err := v.opts.Subscriptions.SetPaused(ctx, owner, id, isPaused)
			return err
		})
	}
	return v.confirm(c)
}

// replayDelivery shows the form that repeats a delivery. If the form was submitted, it requests the
// replay.
func (v *visit) replayDelivery() error {
	owner, id, err := v.deliveryOf()
	if err != nil {
		return err
	}
	x, err := v.opts.Deliveries.Explain(v.ctx(), operatorReader, id)
	if err != nil {
		return err
	}
	return v.confirm(&confirmation{
		title: "Make again delivery", about: id.String(), button: "Make the delivery again",
		effect: "The receiver is called with the message again, with all attempts. A receiver that has already processed it receives it twice.",
		typed:  owner.String(), typedLabel: "Owner",
		state: []fact{textFact("Owner", owner.String()), textFact("Delivery", id.String()), textFact("State", string(x.State))},
		carryOut: func(by hub.AdminAction) error {
			return v.opts.Journal.CarryOut(v.ctx(), subscriptionSubject(id.Subscription), "replay", id.String(), by, func(ctx context.Context) error {
				return v.opts.Replays.ReplayOne(ctx, owner, id)
			})
		},
		after: withQuery(link("subscriptions", owner.String(), id.Subscription.String(), "records"), "done", "1"),
	})
}

// subscriptionRecords shows the records of orders that concern a subscription.
func (v *visit) subscriptionRecords() error {
	owner, id, err := v.subscriptionOf()
	if err != nil {
		return err
	}
	return v.showRecords("Records of subscription", id.String(), subscriptionSubject(id), link("subscriptions", owner.String(), id.String()))
}
