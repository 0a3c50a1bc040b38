package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Cause is the reason for the state of a delivery.
type Cause string

// The causes. The first ones are about the receiver, and delay each of its deliveries.
const (
	CausePaused     Cause = "paused"     // its owner has paused the subscription
	CauseGone       Cause = "gone"       // the receiver answered 410 Gone
	CauseHeld       Cause = "held"       // the receiver asked for a pause by Retry-After
	CauseBreaker    Cause = "breaker"    // the last calls failed, so the receiver gets a pause
	CauseUnprepared Cause = "unprepared" // the hub cannot prepare its calls
	CauseFull       Cause = "full"       // too many deliveries wait for their next attempt

	CauseTurn     Cause = "turn"     // other deliveries are before it
	CauseOrder    Cause = "order"    // the subscription is ordered, and a delivery before it has failed
	CauseCalled   Cause = "called"   // the receiver is being called
	CauseBackoff  Cause = "backoff"  // its next attempt is not due
	CauseDue      Cause = "due"      // its next attempt is due
	CauseSpent    Cause = "spent"    // its last attempt failed
	CausePoison   Cause = "poison"   // nodes crashed while they called with it
	CauseAccepted Cause = "accepted" // the receiver has accepted it
	CauseFilter   Cause = "filter"   // the filter does not match it
	CauseExpired  Cause = "expired"  // its retention has passed
	CauseUnknown  Cause = "unknown"  // it is no longer stored
)

// An Explanation gives the reasons for the state of a delivery, in sentences and in fields.
type Explanation struct {
	Delivery
	Cause     Cause
	Sentences []string
	Actions   []Action // actions of the owner

	Behind       int64     // messages before it that were not taken, including those that the filter does not match
	HeldUntil    time.Time // zero: it is not held
	BreakerUntil time.Time // zero: the breaker is closed
	PausedFor    string    // why the subscription is paused; "": it is not
	NextAttempt  time.Time // no attempt is made before this time; zero: as soon as it is its turn, or never
	AttemptsLeft int
}

// An Action is what the owner of a subscription can do about a delivery.
type Action struct {
	Method, Path, Text string
}

func (x *Explanation) addSentence(format string, args ...any) {
	x.Sentences = append(x.Sentences, fmt.Sprintf(format, args...))
}

func (x *Explanation) addAction(method, path, text string) {
	x.Actions = append(x.Actions, Action{method, path, text})
}

// Explain explains a delivery. It fails as Get does.
func (s *Service) Explain(ctx context.Context, reader Reader, id domain.DeliveryID) (*Explanation, error) {
	n, err := s.readSnapshot(ctx, reader, id.Subscription)
	if err != nil {
		return nil, err
	}
	d, err := s.getDelivery(ctx, n, id)
	if err != nil {
		return nil, err
	}
	x := &Explanation{Delivery: *d}
	switch d.State {
	case Waiting, Calling, Retrying:
		if err := s.explainOutstanding(ctx, n, x); err != nil {
			return nil, err
		}
	case Dead:
		x.explainDead()
		x.offerReplay()
	case Delivered:
		x.explainDelivered()
	case Filtered:
		x.explainFiltered(n)
	case Expired:
		x.Cause = CauseExpired
		x.addSentence("The message was removed from its topic, because its retention had passed, before the subscription came to it. It is not delivered.")
		if r := n.standing.Expiry(id.Entry); r != nil {
			x.addSentence("The subscription passed it at %s: %s of its priority, from number %d on, had expired.", textOf(r.At), countOf(r.Count(), "message"), r.From.Number)
		}
	default:
		x.Cause = CauseUnknown
		x.addSentence("The subscription has passed the message, and nothing more is stored of its delivery. The last %d attempts of a subscription are stored, and a dead letter for %d days.", domain.MaxRecent, int(repository.DeadLetterRetention.Hours()/24))
		x.sayLastAttempt()
	}
	return x, nil
}

func (s *Service) explainOutstanding(ctx context.Context, n *snapshot, x *Explanation) error {
	receiver, err := s.ports.Receivers.Receiver(ctx, n.definition.ID.Cursor(), false)
	if err != nil && ctx.Err() != nil {
		return err
	}
	x.sayLastAttempt()
	x.explainReceiver(n)
	if err != nil {
		x.setCause(CauseUnprepared)
		x.addSentence("The hub could not prepare a call to the receiver. Its log says why: ask the operator.")
	} else {
		x.AttemptsLeft = max(receiver.Policy.Attempts-x.Attempts, 0)
	}
	switch x.State {
	case Retrying:
		x.explainRetry(n)
	case Calling:
		x.setCause(CauseCalled)
		x.addSentence("A node has taken the delivery. The receiver is called now, or in a moment; the result is stored within seconds after the call.")
	default:
		if err := s.explainTurn(ctx, n, x); err != nil {
			return err
		}
	}
	x.sayClaim(n)
	if x.AttemptsLeft > 0 {
		x.addSentence("It has %s left. If the last one fails, it becomes a dead letter.", countOf(int64(x.AttemptsLeft), "attempt"))
	}
	x.addAction("POST", subscriptionPath(n)+"/test", "call the receiver with a test message, to see what it answers")
	return nil
}

func (x *Explanation) explainRetry(n *snapshot) {
	x.NextAttempt = latest(x.Due, x.HeldUntil, x.BreakerUntil)
	if x.PausedFor != "" {
		x.NextAttempt = time.Time{}
	}
	if x.Due.After(n.now) {
		x.setCause(CauseBackoff)
		x.addSentence("Its next attempt is due at %s.", textOf(x.Due))
		return
	}
	x.setCause(CauseDue)
	x.addSentence("Its next attempt has been due since %s. It is called now, or as soon as the receiver may be called and has no more calls under way than it may have.", textOf(x.Due))
}

// explainTurn explains why a delivery was not called yet.
func (s *Service) explainTurn(ctx context.Context, n *snapshot, x *Explanation) error {
	x.NextAttempt = latest(x.HeldUntil, x.BreakerUntil)
	if x.PausedFor != "" {
		x.NextAttempt = time.Time{}
	}
	if _, isOpen := n.findOpen(x.ID.Entry); isOpen {
		if err := s.explainOrder(ctx, n, x); err != nil {
			return err
		}
		x.setCause(CauseTurn)
		x.addSentence("A node has taken the delivery, and calls the receiver once it may be called.")
		return nil
	}
	end, err := s.readEnds(ctx, n)
	if err != nil {
		return err
	}
	entry := x.ID.Entry
	own := entry.Number - n.standing.Position(entry.Priority).Number
	if _, isData := n.stream.DataActor(); isData {
		own = 0 // the newest entry represents all entries before it
	}
	higher := int64(0)
	for p := entry.Priority + 1; p < domain.Priorities; p++ {
		higher += max(end[p]-n.standing.Position(p).Number, 0)
	}
	x.Behind = own + higher
	if n.standing.Retries >= domain.MaxRetries {
		x.setCause(CauseFull)
		x.addSentence("%d deliveries of the subscription wait for another attempt. No other message is taken until some of them have ended.", n.standing.Retries)
	}
	if err := s.explainOrder(ctx, n, x); err != nil {
		return err
	}
	x.setCause(CauseTurn)
	switch {
	case x.Behind == 0:
		x.addSentence("It is the next message of the subscription. Its call may be under way: what a node takes is stored with its next result.")
	case higher == 0:
		x.addSentence("%s before it and %s not taken yet.", countOf(own, "message of its priority is", "messages of its priority are"), wasOrWere(own))
	default:
		x.addSentence("%s before it and %s not taken yet: %d of its priority, and %d of higher ones.", countOf(x.Behind, "message is", "messages are"), wasOrWere(x.Behind), own, higher)
	}
	return nil
}

// explainOrder explains that a delivery of an ordered subscription waits for an earlier one
// that has failed.
func (s *Service) explainOrder(ctx context.Context, n *snapshot, x *Explanation) error {
	if !n.definition.IsOrdered || n.standing.Retries == 0 {
		return nil
	}
	retries, err := s.ports.Cursors.Retries(ctx, n.definition.ID.Cursor(), domain.EntryID{Number: -1}, MaxPage)
	if err != nil && domain.KindOf(err) != domain.NotFound {
		return err
	}
	for _, r := range retries {
		if r.Replay > 0 { // a replayed delivery delays no other one
			continue
		}
		before := domain.DeliveryID{Subscription: n.definition.ID, Entry: r.EntryID}
		x.setCause(CauseOrder)
		x.addSentence("The subscription is ordered, and delivery %s before it has failed. Nothing behind that one is called until it has succeeded or is a dead letter. Its next attempt is due at %s.", before, textOf(r.Due))
		if x.PausedFor == "" {
			x.NextAttempt = latest(x.NextAttempt, r.Due)
		}
		return nil
	}
	return nil
}

func (x *Explanation) explainDead() {
	x.Cause = CauseSpent
	if x.isPoison {
		x.Cause = CausePoison
	}
	x.sayLastAttempt()
	x.addSentence("It is a dead letter: %s. It is kept for %d days, and not called again by itself.", x.Reason, int(repository.DeadLetterRetention.Hours()/24))
}

// offerReplay adds the action to make an ended delivery again.
func (x *Explanation) offerReplay() {
	x.addAction("POST", "/v1/deliveries/"+x.ID.String()+"/replay", "make the delivery again, with all its attempts")
}

func (x *Explanation) explainDelivered() {
	x.Cause = CauseAccepted
	if x.Inferred {
		x.addSentence("The subscription has passed the message, its filter lets it pass, and no failure is stored: the receiver has accepted it, unless the filter was another one then. When is not stored any more, because only the last %d attempts are.", domain.MaxRecent)
		return
	}
	last := x.History[len(x.History)-1]
	x.addSentence("The receiver accepted it at %s, with attempt %d and status %d.", textOf(last.Began.Add(last.Took)), last.Number, last.Status)
}

func (x *Explanation) explainFiltered(n *snapshot) {
	x.Cause = CauseFilter
	x.addSentence("The filter of the subscription does not let the message pass, so it is not delivered: %s", n.definition.Filter)
	if x.Inferred {
		x.addSentence("The filter is shown as it is now. It may have been another one when the subscription came to the message.")
	}
	x.addAction("PUT", subscriptionPath(n), "change the filter; messages that were passed are not delivered later")
}
