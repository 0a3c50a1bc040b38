package console

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/receiverlist"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// A ReceiverLister reports the state of receivers and of the calls to them. [receiverlist.Service]
// implements it.
type ReceiverLister interface {
	// List returns a page of the receivers that match q.
	List(ctx context.Context, q receiverlist.Query) (receiverlist.Page, error)
	// SubscriptionsOf returns the subscriptions of an owner.
	SubscriptionsOf(ctx context.Context, owner domain.ActorID) ([]receiverlist.Receiver, error)
	// Subscription returns a subscription of an owner.
	Subscription(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID) (receiverlist.Receiver, error)
	// Consumers returns the consumers of the broker with the given ids, in the order of ids.
	Consumers(ctx context.Context, ids []domain.PartyID) ([]receiverlist.Receiver, error)
}

var errNoReceivers = &pageError{http.StatusNotFound, "This hub calls no receivers", "Its store has no containers for them. Run messagehub provision, and restart the hub."}

// receiverColumns are the columns of a table of receivers.
var receiverColumns = []column{
	{title: "Receiver"},
	{title: "State"},
	{title: "Failing since"},
	{title: "Oldest"},
	{title: "Not taken", isNumber: true},
	{title: "Under way", isNumber: true},
	{title: "Failures", isNumber: true},
	{title: "Dead letters", isNumber: true},
	{title: "Stream"},
	{title: "Host"},
}

// receiverTable returns a table of receivers. The name of a receiver links to its page.
func (v *visit) receiverTable(caption, empty string, found []receiverlist.Receiver) g.Node {
	t := tableView{caption: caption, columns: receiverColumns, empty: empty}
	for i := range found {
		t.rows = append(t.rows, v.rowOfReceiver(&found[i]))
	}
	return t.render()
}

func (v *visit) rowOfReceiver(r *receiverlist.Receiver) []g.Node {
	now := v.opts.Clock()
	state := g.Group{receiverState(r)}
	switch {
	case r.Fault != "":
		state = append(state, g.Text(" "), bdi(r.Fault))
	case r.Failures > 0 && r.LastError != "":
		state = append(state, g.Text(" "), bdi(r.LastError))
	}
	return []g.Node{
		nameOfReceiver(r), state, g.Text(age(r.FailedSince, now)), g.Text(age(r.Oldest, now)), number(r.Behind), number(int64(r.Waiting)),
		number(int64(r.Failures)), number(r.Dead), bdi(streamName(r.Stream)), bdi(r.Host),
	}
}

// nameOfReceiver returns a link to the page of a receiver.
func nameOfReceiver(r *receiverlist.Receiver) g.Node {
	switch r.Kind {
	case receiverlist.Consumer:
		return anchor(consumerPath(r.Consumer), r.Consumer.FullName())
	case receiverlist.Watch:
		return g.Group{bdi(r.Owner.String()), g.Text(" "), anchor(link("watches", r.Owner.String(), r.Watch.String()), r.Watch.String())}
	default:
		id := r.Subscription.String()
		if r.Owner == (domain.ActorID{}) {
			return code(id) // the definition of the receiver could not be read
		}
		return g.Group{bdi(r.Owner.String()), g.Text(" "), anchor(link("subscriptions", r.Owner.String(), id), id)}
	}
}

// receiverStates maps the state of a receiver to the style of its badge.
var receiverStates = map[string]badgeKind{
	subscribe.DeliveryActive: good, subscribe.DeliveryPaused: warn, subscribe.DeliveryGone: bad, subscribe.DeliveryHeld: warn,
	subscribe.DeliveryFailing: bad, subscribe.DeliveryClosed: mild,
}

func receiverState(r *receiverlist.Receiver) g.Node {
	if r.State == "" {
		return badge(bad, "not known")
	}
	return badge(receiverStates[r.State], r.State)
}

// streamName returns the topic of a stream. For a stream without a topic it returns a description.
func streamName(s domain.StreamName) string {
	if topic, isTopic := s.Topic(); isTopic {
		return topic
	}
	return strings.Replace(s.String(), "|", " ", 1)
}

func receiverStateOptions() []navigationEntry {
	options := []navigationEntry{{"", "any"}}
	for _, s := range receiverlist.States {
		name := s
		if s == receiverlist.Stopped {
			name = "any but active"
		}
		options = append(options, navigationEntry{s, name})
	}
	return options
}

// receiverFacts returns the state of the calls to a receiver. If the receiver is not called, the
// reason comes first.
func (v *visit) receiverFacts(r *receiverlist.Receiver) g.Node {
	now := v.opts.Clock()
	ago := func(text string) g.Node {
		if text == "–" {
			return g.Text(text)
		}
		return g.Text(text + " ago")
	}
	all := []fact{
		{"State", receiverState(r)},
		{"Failures in a row", number(int64(r.Failures))},
		{"Failing since", g.Group{moment(r.FailedSince)}},
		{"Messages not taken", number(r.Behind)},
		{"Oldest of them", ago(age(r.Oldest, now))},
		{"Deliveries under way", number(int64(r.Waiting))},
		{"Dead letters, ever", number(r.Dead)},
		{"Host", bdi(r.Host)},
		{"Stream", bdi(streamName(r.Stream))},
	}
	if !r.Until.IsZero() {
		all = append(all, fact{"Not called before", moment(r.Until)})
	}
	return g.Group{receiverAdvice(r), facts(all...)}
}

// receiverAdvice returns the reason why a receiver is not called, with advice for the operator. It
// returns nil if the receiver is called.
func receiverAdvice(r *receiverlist.Receiver) g.Node {
	say := func(nodes ...g.Node) g.Node { return notice(warn, h.P(nodes...)) }
	switch {
	case r.Fault != "":
		return say(bdi(r.Fault))
	case r.State == subscribe.DeliveryPaused:
		return say(g.Text("It is paused: the receiver is not called until it is resumed. Messages wait until their retention has passed."))
	case r.State == subscribe.DeliveryGone:
		return say(g.Text("The receiver answered 410 Gone, so it is not called. Resume the subscription when the receiver works again."))
	case r.State == subscribe.DeliveryHeld:
		return say(g.Text("The receiver asked for a pause by Retry-After. The hub calls it again after that."))
	case r.State == subscribe.DeliveryFailing:
		calls := "The last call failed: "
		if r.Failures > 1 {
			calls = "The last " + strconv.Itoa(r.Failures) + " calls failed: "
		}
		return say(g.Text(calls), bdi(r.LastError), g.Text(". Repair the receiver. It is called again by itself, with pauses that grow."))
	}
	return nil
}

// attemptTable returns a table of calls to a receiver.
func attemptTable(attempts []domain.Attempt) g.Node {
	t := tableView{
		caption: "Last calls, the newest first, in UTC",
		columns: []column{{title: "Began"}, {title: "Attempt", isNumber: true}, {title: "Status", isNumber: true}, {title: "Took in ms", isNumber: true}, {title: "Failure"}},
		empty:   "No call is stored.",
	}
	for i := len(attempts) - 1; i >= 0; i-- {
		a := &attempts[i]
		status := g.Text("–")
		if a.Status > 0 {
			status = g.Text(strconv.Itoa(a.Status))
		}
		t.rows = append(t.rows, []g.Node{moment(a.Began), number(int64(a.Number)), status, number(a.Took.Milliseconds()), bdi(a.Error)})
	}
	return t.render()
}
