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

// Causes that concern the receiver. They delay all its deliveries.
const (
	CausePaused     Cause = "paused"     // the owner paused the subscription
	CauseGone       Cause = "gone"       // the receiver responded with 410 Gone
	CauseHeld       Cause = "held"       // the receiver sent Retry-After
	CauseBreaker    Cause = "breaker"    // recent calls failed, so the hub has paused calls to the receiver
	CauseUnprepared Cause = "unprepared" // the hub cannot prepare calls to the receiver
	CauseFull       Cause = "full"       // too many deliveries wait for their next attempt
)

// Causes that concern one delivery.
const (
	CauseTurn     Cause = "turn"     // earlier deliveries have not been tried yet
	CauseOrder    Cause = "order"    // the subscription is ordered, and an earlier delivery has failed
	CauseCalled   Cause = "called"   // the receiver is being called
	CauseBackoff  Cause = "backoff"  // the next attempt is not due yet
	CauseDue      Cause = "due"      // the next attempt is due
	CauseSpent    Cause = "spent"    // the last permitted attempt failed
	CausePoison   Cause = "poison"   // nodes died while they called the receiver with this message
	CauseAccepted Cause = "accepted" // the receiver accepted the message
	CauseFilter   Cause = "filter"   // the filter does not match the message
	CauseExpired  Cause = "expired"  // the retention of the message has ended
	CauseUnknown  Cause = "unknown"  // the outcome is no longer stored
)

// An Explanation tells why a delivery is in its state, in sentences and in fields.
type Explanation struct {
	Delivery
	Cause     Cause
	Sentences []string
	Actions   []Action // what the owner of the subscription can do

	Behind       int64     // number of earlier messages that the cursor has not reached, whether or not they match the filter
	HeldUntil    time.Time // end of a pause that the receiver requested, or zero
	BreakerUntil time.Time // end of a pause that began because calls failed, or zero
	PausedFor    string    // why the subscription is paused, or ""
	NextAttempt  time.Time // earliest time of the next attempt; zero if unknown, or if none exists
	AttemptsLeft int
}

// An Action is a request that the owner of a subscription can send to affect a delivery.
type Action struct {
	Method, Path, Text string
}

func (x *Explanation) addSentence(format string, args ...any) {
	x.Sentences = append(x.Sentences, fmt.Sprintf(format, args...))
}

func (x *Explanation) addAction(method, path, text string) {
	x.Actions = append(x.Actions, Action{method, path, text})
}

// Explain explains the state of a delivery. It fails with NotFound in the same cases as Get.
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
		x.addSentence("The message was removed from its topic, because its retention had passed, before the subscription reached it. It is not delivered.")
		if r := n.standing.Expiry(id.Entry); r != nil {
			x.addSentence("The subscription passed it at %s: %s of its priority, from number %d on, had expired.", textOf(r.At), countOf(r.Count(), "message"), r.From.Number)
		}
	default:
		x.Cause = CauseUnknown
		x.addSentence("The subscription has passed the message, and the outcome of the delivery is no longer stored. The last %d attempts of a subscription are stored, and a dead letter for %d days.", domain.MaxRecent, int(repository.DeadLetterRetention.Hours()/24))
		x.explainLastAttempt()
	}
	return x, nil
}

func (s *Service) explainOutstanding(ctx context.Context, n *snapshot, x *Explanation) error {
	receiver, err := s.ports.Receivers.Receiver(ctx, n.definition.ID.Cursor(), false)
	if err != nil && ctx.Err() != nil {
		return err
	}
	x.explainLastAttempt()
	x.explainReceiver(n)
	if err != nil {
		x.setCause(CauseUnprepared)
		x.addSentence("The hub could not prepare a call to the receiver. The operator can find the reason in the log of the hub.")
	} else {
		x.AttemptsLeft = max(receiver.Policy.Attempts-x.Attempts, 0)
	}
	switch x.State {
	case Retrying:
		x.explainRetry(n)
	case Calling:
		x.setCause(CauseCalled)
		x.addSentence("A node has taken the delivery and calls the receiver now or immediately afterwards. The result is stored within seconds after the call.")
	default:
		if err := s.explainTurn(ctx, n, x); err != nil {
			return err
		}
	}
	x.explainClaim(n)
	if x.AttemptsLeft > 0 {
		x.addSentence("The delivery has %s left. If the last attempt fails, the delivery becomes a dead letter.", countOf(int64(x.AttemptsLeft), "attempt"))
	}
	x.addAction("POST", subscriptionPath(n)+"/test", "call the receiver with a test message, to see its response")
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
	x.addSentence("Its next attempt has been due since %s. The hub calls the receiver as soon as calls are permitted and the number of concurrent calls is below its limit.", textOf(x.Due))
}

// explainTurn explains why a delivery has not been tried yet.
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
		x.addSentence("A node has taken the delivery. It calls the receiver as soon as calls are permitted.")
		return nil
	}
	end, err := s.readEnds(ctx, n)
	if err != nil {
		return err
	}
	entry := x.ID.Entry
	own := entry.Number - n.standing.Position(entry.Priority).Number
	if _, isData := n.stream.DataActor(); isData {
		own = 0 // in a data stream, the newest entry includes all earlier ones
	}
	higher := int64(0)
	for p := entry.Priority + 1; p < domain.Priorities; p++ {
		higher += max(end[p]-n.standing.Position(p).Number, 0)
	}
	x.Behind = own + higher
	if n.standing.Retries >= domain.MaxRetries {
		x.setCause(CauseFull)
		x.addSentence("%d deliveries of the subscription wait for another attempt. The hub takes no other message until some of these deliveries have ended.", n.standing.Retries)
	}
	if err := s.explainOrder(ctx, n, x); err != nil {
		return err
	}
	x.setCause(CauseTurn)
	switch {
	case x.Behind == 0:
		x.addSentence("It is the next message of the subscription. Its call may be in progress: a node stores which messages it has taken together with its next result.")
	case higher == 0:
		x.addSentence("%s before it and %s not taken yet.", countOf(own, "message of its priority is", "messages of its priority are"), wasOrWere(own))
	default:
		x.addSentence("%s before it and %s not taken yet: %d of its priority, and %d of higher ones.", countOf(x.Behind, "message is", "messages are"), wasOrWere(x.Behind), own, higher)
	}
	return nil
}

// explainOrder explains that an ordered subscription waits for an earlier, failed delivery.
func (s *Service) explainOrder(ctx context.Context, n *snapshot, x *Explanation) error {
	if !n.definition.IsOrdered || n.standing.Retries == 0 {
		return nil
	}
	retries, err := s.ports.Cursors.Retries(ctx, n.definition.ID.Cursor(), domain.EntryID{Number: -1}, MaxPage)
	if err != nil && domain.KindOf(err) != domain.NotFound {
		return err
	}
	for _, r := range retries {
		if r.Replay > 0 { // a replayed delivery does not block later ones
			continue
		}
		before := domain.DeliveryID{Subscription: n.definition.ID, Entry: r.EntryID}
		x.setCause(CauseOrder)
		x.addSentence("The subscription is ordered, and delivery %s before it has failed. The hub calls no later delivery until this earlier delivery has succeeded or is a dead letter. Its next attempt is due at %s.", before, textOf(r.Due))
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
	x.explainLastAttempt()
	x.addSentence("It is a dead letter: %s. It is stored for %d days. The hub does not call the receiver again unless the delivery is replayed.", x.Reason, int(repository.DeadLetterRetention.Hours()/24))
}

// offerReplay adds the action to replay a dead letter.
func (x *Explanation) offerReplay() {
	x.addAction("POST", "/v1/deliveries/"+x.ID.String()+"/replay", "replay the delivery, with all its attempts")
}

func (x *Explanation) explainDelivered() {
	x.Cause = CauseAccepted
	if x.Inferred {
		x.addSentence("The subscription has passed the message, the filter matches the message, and no failure is stored. So the receiver has accepted the message, unless the filter was different at that time. The time is not stored, because only the last %d attempts are stored.", domain.MaxRecent)
		return
	}
	last := x.History[len(x.History)-1]
	x.addSentence("The receiver accepted it at %s, with attempt %d and status %d.", textOf(last.Began.Add(last.Took)), last.Number, last.Status)
}

func (x *Explanation) explainFiltered(n *snapshot) {
	x.Cause = CauseFilter
	x.addSentence("The filter of the subscription does not match the message, so it is not delivered: %s", n.definition.Filter)
	if x.Inferred {
		x.addSentence("This is the current filter. It may have been different when the subscription reached the message.")
	}
	x.addAction("PUT", subscriptionPath(n), "change the filter; messages that the subscription has passed are not delivered later")
}
