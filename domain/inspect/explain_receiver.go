package inspect

import (
	"fmt"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// explainReceiver explains why the receiver is not called, if that is the case.
func (x *Explanation) explainReceiver(n *snapshot) {
	switch n.receiver.State {
	case subscribe.DeliveryPaused:
		x.PausedFor = "its owner has paused it"
		x.setCause(CausePaused)
		x.addSentence("The owner has paused the subscription. Nothing is called until it is resumed, and what waits is kept.")
		x.addAction("POST", subscriptionPath(n)+"/resume", "resume the subscription")
		return
	case subscribe.DeliveryGone:
		x.PausedFor = n.standing.Reason
		x.setCause(CauseGone)
		x.addSentence("The receiver answered 410 Gone: it wants no more messages. Nothing is called until the subscription is resumed, and what waits is kept.")
		x.addAction("POST", subscriptionPath(n)+"/resume", "resume the subscription, once the receiver accepts messages again")
		return
	}
	if n.receiver.Until.IsZero() {
		return
	}
	if n.standing.Hold.After(n.now) {
		x.HeldUntil = n.standing.Hold
		x.setCause(CauseHeld)
		x.addSentence("The receiver asked for a pause by Retry-After. It is not called before %s.", textOf(x.HeldUntil))
	}
	if n.standing.BreakerTo.After(n.now) {
		x.BreakerUntil = n.standing.BreakerTo
		x.setCause(CauseBreaker)
		x.addSentence("%s in a row failed, so the receiver is not called before %s. Then it is called once; if that succeeds, all go on.",
			countOf(int64(n.receiver.Failures), "call"), textOf(x.BreakerUntil))
	}
	x.addAction("POST", subscriptionPath(n)+"/resume", "end the pause at once")
}

// sayClaim adds that nodes crashed while they called with the delivery.
func (x *Explanation) sayClaim(n *snapshot) {
	c := n.standing.Claim
	switch {
	case c != nil && c.Entry == x.ID.Entry && c.Count > 1:
		x.addSentence("%s ended after they had begun to call with it. After %d, it becomes a dead letter.", countOf(int64(c.Count-1), "node"), domain.MaxClaims)
	case n.standing.Caution != nil:
		x.addSentence("A node ended while it served the subscription, so what it may have been calling with is called one at a time.")
	}
}

// sayLastAttempt adds how the last attempt ended, if there was one.
func (x *Explanation) sayLastAttempt() {
	if len(x.History) == 0 {
		return
	}
	a := x.History[len(x.History)-1]
	why := a.Error
	if why == "" {
		why = fmt.Sprintf("status %d", a.Status)
	}
	x.addSentence("Attempt %d failed at %s after %s: %s.", a.Number, textOf(a.Began.Add(a.Took)), a.Took.Round(time.Millisecond), why)
}

// setCause sets the cause, unless it is set already: causes that concern the receiver are set
// first.
func (x *Explanation) setCause(c Cause) {
	if x.Cause == "" {
		x.Cause = c
	}
}

func subscriptionPath(n *snapshot) string { return "/v1/subscriptions/" + n.definition.ID.String() }

func textOf(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func latest(times ...time.Time) (last time.Time) {
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// countOf returns a number with its noun. forms are the singular and, unless the plural only
// adds an s, the plural.
func countOf(n int64, forms ...string) string {
	switch {
	case n == 1:
		return "1 " + forms[0]
	case len(forms) > 1:
		return fmt.Sprintf("%d %s", n, forms[1])
	}
	return fmt.Sprintf("%d %ss", n, forms[0])
}

func wasOrWere(n int64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}
