package find

import (
	"context"
	"fmt"
	"strings"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/inspect"
)

// addDelivery adds a delivery with the explanation of its state to a. If the delivery does not exist, it adds nothing.
func (s *Service) addDelivery(ctx context.Context, a *Answer, id domain.DeliveryID) error {
	if s.ports.Deliveries == nil {
		a.note("This hub has no store for deliveries.")
		return nil
	}
	x, err := s.ports.Deliveries.Explain(ctx, inspect.Reader{IsOperator: true}, id)
	switch {
	case domain.KindOf(err) == domain.NotFound:
		return nil
	case isDamage(err):
		a.addUnread(Unread{Reason: err.Error()})
		return nil
	case err != nil:
		return err
	}
	a.add(deliveryResult(x))
	return nil
}

func deliveryResult(x *inspect.Explanation) Result {
	r := Result{Kind: Delivery, State: State(x.State), Title: "Delivery to subscription " + x.ID.Subscription.String()}
	published := Step{What: StepPublished, At: x.Published, Text: "The message was published."}
	if e := x.Event; e != nil {
		published.Details = []Detail{{"id", e.ID}, {"type", e.Type}, {"source", e.Source}}
	}
	if !x.Published.IsZero() || x.Event != nil {
		r.Steps = append(r.Steps, published)
	}
	for i := range x.History {
		r.Steps = append(r.Steps, attemptStep(&x.History[i]))
	}
	if isOutstanding(x.State) {
		r.Waits = []Wait{{Cause: Cause(x.Cause), Text: strings.Join(x.Sentences, " "), Next: actionsText(x.Actions)}}
	} else {
		r.Notes = append(r.Notes, x.Sentences...)
	}
	sortSteps(r.Steps)
	return r
}

func isOutstanding(s inspect.State) bool {
	return s == inspect.Waiting || s == inspect.Calling || s == inspect.Retrying
}

func attemptStep(t *domain.Attempt) Step {
	s := Step{What: StepAttempt, At: t.Began, Text: fmt.Sprintf("Attempt %d: the receiver answered with status %d.", t.Number, t.Status)}
	if t.Status == 0 {
		s.Text = fmt.Sprintf("Attempt %d: the receiver did not answer.", t.Number)
	}
	if t.Error != "" {
		s.Details = append(s.Details, Detail{"error", t.Error})
	}
	return s
}

func actionsText(actions []inspect.Action) string {
	texts := make([]string, len(actions))
	for i, act := range actions {
		texts[i] = fmt.Sprintf("%s %s: %s", act.Method, act.Path, act.Text)
	}
	return strings.Join(texts, "; ")
}
