package inspect

import (
	"fmt"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// explainReceiver explains why calls to the receiver are paused, if they are.
func (x *Explanation) explainReceiver(n *snapshot) {
	switch n.receiver.State {
	case subscribe.DeliveryPaused:
		x.PausedFor = "its owner has paused it"
		x.setCause(CausePaused)
		x.addSentence("The owner has paused the subscription. The hub does not call the receiver until the subscription is resumed. Waiting deliveries are retained.")
		x.addAction("POST", subscriptionPath(n)+"/resume", "resume the subscription")
		return
	case subscribe.DeliveryGone:
		x.PausedFor = n.standing.Reason
		x.setCause(CauseGone)
		x.addSentence("The receiver answered 410 Gone: it requests no further messages. The hub does not call the receiver until the subscription is resumed. Waiting deliveries are retained.")
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
		x.addSentence("%s in a row failed, so the receiver is not called before %s. After that time it is called once. If this call succeeds, all deliveries resume.",
			countOf(int64(n.receiver.Failures), "call"), textOf(x.BreakerUntil))
	}
	x.addAction("POST", subscriptionPath(n)+"/resume", "end the pause immediately")
}

// explainClaim explains that nodes died during a call with this message.
func (x *Explanation) explainClaim(n *snapshot) {
	c := n.standing.Claim
	switch {
	case c != nil && c.Entry == x.ID.Entry && c.Count > 1:
		x.addSentence("%s died while they called the receiver with the message. After %d, the delivery becomes a dead letter.", countOf(int64(c.Count-1), "node"), domain.MaxClaims)
	case n.standing.Caution != nil:
		x.addSentence("A node died while it served the subscription. The hub calls the messages that this node may have been delivering one at a time.")
	}
}

// explainLastAttempt describes why the last attempt failed, if it did.
func (x *Explanation) explainLastAttempt() {
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

// setCause sets the cause if none is set, because the first cause is the most important one.
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

// countOf returns a number and a noun, such as "2 calls". forms are the singular and the plural; the plural may be
// omitted if it only adds an s.
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
