package console

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/inspect"
	"github.com/messagehub/messagehub/domain/receiverlist"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// Subscriptions are the use cases for the subscriptions of all owners. [subscribe.Service]
// implements it.
type Subscriptions interface {
	// Get returns a subscription of owner, with the state of its deliveries.
	Get(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID) (*subscribe.Subscription, error)
	// SetPaused pauses or resumes a subscription of owner.
	SetPaused(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID, isPaused bool) (*subscribe.Subscription, error)
}

// Deliveries are the use cases that read the deliveries of subscriptions. [inspect.Service]
// implements it.
type Deliveries interface {
	// List returns a page of the deliveries of a subscription.
	List(ctx context.Context, reader inspect.Reader, q inspect.Query) (*inspect.Page, error)
	// Explain explains the state of a delivery.
	Explain(ctx context.Context, reader inspect.Reader, id domain.DeliveryID) (*inspect.Explanation, error)
}

// A Replayer repeats deliveries. [replay.Service] implements it.
type Replayer interface {
	// ReplayOne repeats a delivery of one of the owner's subscriptions.
	ReplayOne(ctx context.Context, owner domain.ActorID, id domain.DeliveryID) error
}

// shownDeliveries is the maximum number of deliveries on one page.
const shownDeliveries = 50

// operatorReader is the identity with which operators read the deliveries of all subscriptions.
var operatorReader = inspect.Reader{IsOperator: true}

// subscriptions lists the subscriptions of one owner, or all subscriptions in one state.
func (v *visit) subscriptions() error {
	if v.opts.Receivers == nil {
		return errNoReceivers
	}
	query := v.r.URL.Query()
	owner, fault := strings.TrimSpace(query.Get("owner")), ""
	var found receiverlist.Page
	if owner != "" {
		actor, err := domain.ParseActorID(owner)
		if err != nil {
			fault = toSentence(err)
		} else if found.Receivers, err = v.opts.Receivers.SubscriptionsOf(v.ctx(), actor); err != nil {
			return err
		}
	} else {
		var err error
		if found, err = v.opts.Receivers.List(v.ctx(), receiverlist.Query{Kind: receiverlist.Subscription, State: query.Get("state"), After: query.Get("after")}); err != nil {
			return err
		}
	}
	return v.show(&view{title: "Subscriptions", body: []g.Node{
		h.Form(
			h.Class("filters"), h.Method("get"), h.Action(link("subscriptions")),
			field{name: "owner", label: "Owner", value: owner, fault: fault, kind: "search", isOptional: true}.render(),
			choiceField{name: "state", label: "State (for all owners)", value: query.Get("state"), options: receiverStateOptions()}.render(),
			button("Show"),
		),
		v.receiverTable("Subscriptions", "No subscription is in this part of the list.", found.Receivers),
		receiverPager(link("subscriptions"), query.Get("state"), query.Get("after"), found.Next),
	}})
}

// receiverPager returns the links between the pages of a list of receivers.
func receiverPager(path, state, after, nextAfter string) g.Node {
	first, next := "", ""
	if after != "" {
		first = withQuery(path, "state", state)
	}
	if nextAfter != "" {
		next = withQuery(path, "state", state, "after", nextAfter)
	}
	return pager(first, next)
}

// subscriptionOf returns the ids of the owner and the subscription in the path.
func (v *visit) subscriptionOf() (owner domain.ActorID, id domain.SubscriptionID, err error) {
	if v.opts.Receivers == nil {
		return owner, id, errNoReceivers
	}
	if owner, err = v.actor(); err != nil {
		return owner, id, err
	}
	if id, err = domain.ParseSubscriptionID(v.path("subscription")); err != nil {
		return owner, id, errNoPage
	}
	return owner, id, nil
}

// subscription shows a subscription and its deliveries.
func (v *visit) subscription() error {
	owner, id, err := v.subscriptionOf()
	if err != nil {
		return err
	}
	s, err := v.opts.Subscriptions.Get(v.ctx(), owner, id)
	if err != nil {
		return err
	}
	r, err := v.opts.Receivers.Subscription(v.ctx(), owner, id)
	if err != nil && (r.Owner != owner) {
		return err
	}
	if err != nil {
		r.Fault = err.Error()
	}
	state, page := v.r.URL.Query().Get("state"), v.r.URL.Query().Get("page")
	found, err := v.opts.Deliveries.List(v.ctx(), operatorReader, inspect.Query{Subscription: id, State: inspect.State(state), Page: page, Size: shownDeliveries})
	if err != nil {
		return err
	}
	path := link("subscriptions", owner.String(), id.String())
	first, next := "", ""
	if page != "" {
		first = withQuery(path, "state", state)
	}
	if found.Next != "" {
		next = withQuery(path, "state", state, "page", found.Next)
	}
	states := []navigationEntry{{"", "any"}}
	for _, s := range inspect.States {
		states = append(states, navigationEntry{string(s), string(s)})
	}
	return v.show(&view{title: "Subscription", about: id.String(), body: []g.Node{
		v.receiverFacts(&r),
		v.warnings(s.Delivery),
		subscriptionFacts(s),
		actionLinks(
			v.orderLink(path+"/pause", "Pause the subscription"), v.orderLink(path+"/resume", "Resume the subscription"),
			h.A(h.Href(path+"/records"), g.Text("Records of operators")),
		),
		h.H2(g.Text("Deliveries")),
		h.Form(h.Class("filters"), h.Method("get"), h.Action(path), choiceField{name: "state", label: "State", value: state, options: states}.render(), button("Show")),
		v.deliveryTable(path, found), pager(first, next),
	}})
}

// warnings returns warnings about expected problems of deliveries.
func (v *visit) warnings(d *subscribe.Delivery) g.Node {
	if d == nil || len(d.Warnings) == 0 {
		return nil
	}
	return notice(warn, h.Ul(g.Map(d.Warnings, func(w domain.Warning) g.Node {
		switch w.Kind {
		case domain.ReceiverFailing:
			return h.Li(g.Text("All calls have failed since "), moment(w.At), g.Text(" UTC. Test the receiver, and repair it."))
		case domain.LastAttempts:
			return h.Li(g.Text("Deliveries that have a third of their attempts left, or fewer: "), number(int64(w.Count)), g.Text(". They become dead letters if those fail."))
		default:
			return h.Li(g.Text("The oldest message that waits expires at "), moment(w.At), g.Text(", and will not be delivered after that."))
		}
	})))
}

// subscriptionFacts returns the definition of a subscription. It omits possible secrets: the values
// of headers and form fields, and the path and query of the URL.
func subscriptionFacts(s *subscribe.Subscription) g.Node {
	yesNo := func(is bool) g.Node {
		if is {
			return g.Text("yes")
		}
		return g.Text("no")
	}
	mode := "asynchronous"
	if s.IsSync {
		mode = "synchronous: the sender waits for the only attempt"
	}
	all := []fact{
		{"Owner", anchor(withQuery(link("subscriptions"), "owner", s.Owner.String()), s.Owner.String())},
		{"Created", moment(s.Created)},
		{"Method", bdi(s.Method)},
		{"Encoding", bdi(s.Encoding)},
		{"Mode", g.Text(mode)},
		{"Ordered", yesNo(s.IsOrdered)},
		{"Signed", yesNo(s.IsSigned)},
	}
	if s.MaxRate > 0 {
		all = append(all, fact{"Limit of calls a second", g.Text(strconv.FormatFloat(s.MaxRate, 'f', -1, 64))})
	}
	if s.MaxConcurrency > 0 {
		all = append(all, fact{"Limit of calls at a time", number(int64(s.MaxConcurrency))})
	}
	if s.Filter != "" {
		all = append(all, fact{"Filter", code(s.Filter)})
	}
	if len(s.HeaderNames) > 0 {
		all = append(all, fact{"Names of headers", bdi(strings.Join(s.HeaderNames, ", "))})
	}
	if len(s.FormFields) > 0 {
		all = append(all, fact{"Names of form fields", bdi(strings.Join(slices.Sorted(maps.Keys(s.FormFields)), ", "))})
	}
	if d := s.Delivery; d != nil {
		all = append(all,
			fact{"Delivered", number(d.Counters.Delivered)}, fact{"Filtered", number(d.Counters.Filtered)}, fact{"Expired", number(d.Counters.Expired)},
		)
	}
	return facts(all...)
}

// deliveryStates maps the state of a delivery to the style of its badge.
var deliveryStates = map[inspect.State]badgeKind{
	inspect.Waiting: mild, inspect.Calling: good, inspect.Retrying: warn, inspect.Delivered: good, inspect.Dead: bad,
	inspect.Filtered: mild, inspect.Expired: bad, inspect.Ended: mild,
}

// deliveryTable returns a table of the deliveries of the subscription whose page is at path.
func (v *visit) deliveryTable(path string, page *inspect.Page) g.Node {
	t := tableView{
		caption: "Deliveries, in the order of their messages, in UTC",
		columns: []column{{title: "Delivery"}, {title: "State"}, {title: "Published"}, {title: "Attempts", isNumber: true}, {title: "Next attempt"}, {title: "Last failure"}, {title: "Message"}},
		empty:   "No delivery is in this part of the list.",
	}
	for i := range page.Deliveries {
		d := &page.Deliveries[i]
		failure := d.Reason
		if n := len(d.History); failure == "" && n > 0 {
			failure = d.History[n-1].Error
		}
		message := g.Node(g.Text("–"))
		if d.Event != nil {
			message = g.Group{code(d.Event.ID), g.Text(" "), bdi(d.Event.Type)}
		}
		t.rows = append(t.rows, []g.Node{
			anchor(path+"/deliveries/"+d.ID.String(), d.ID.Entry.String()), badge(deliveryStates[d.State], string(d.State)), moment(d.Published),
			number(int64(d.Attempts)), moment(d.Due), bdi(failure), message,
		})
	}
	return t.render()
}

// deliveryOf returns the ids of the owner and the delivery in the path.
func (v *visit) deliveryOf() (owner domain.ActorID, id domain.DeliveryID, err error) {
	owner, subscription, err := v.subscriptionOf()
	if err != nil {
		return owner, id, err
	}
	id, err = domain.ParseDeliveryID(v.path("delivery"))
	if err != nil || id.Subscription != subscription {
		return owner, id, errNoPage
	}
	return owner, id, nil
}

// delivery shows a delivery, with an explanation of its state.
func (v *visit) delivery() error {
	owner, id, err := v.deliveryOf()
	if err != nil {
		return err
	}
	x, err := v.opts.Deliveries.Explain(v.ctx(), operatorReader, id)
	if err != nil {
		return err
	}
	path := link("subscriptions", owner.String(), id.Subscription.String())
	all := []fact{
		{"State", badge(deliveryStates[x.State], string(x.State))},
		{"Cause", code(string(x.Cause))},
		{"Published", moment(x.Published)},
		{"Attempts", number(int64(x.Attempts))},
		{"Attempts left", number(int64(x.AttemptsLeft))},
		{"Next attempt", moment(x.NextAttempt)},
	}
	if x.Event != nil {
		all = append(all, fact{"Message", code(x.Event.ID)}, fact{"Type", bdi(x.Event.Type)}, fact{"Source", bdi(x.Event.Source)})
	}
	return v.show(&view{title: "Delivery", about: id.String(), body: []g.Node{
		facts(all...),
		h.Ul(g.Map(x.Sentences, func(s string) g.Node { return h.Li(bdi(s)) })),
		attemptTable(x.History),
		actionLinks(
			v.replayLink(path, x),
			h.A(h.Href(path), g.Text("The subscription")),
		),
	}})
}

// replayLink returns a link to the form that repeats a delivery. It returns nil if the delivery has
// not ended.
func (v *visit) replayLink(path string, x *inspect.Explanation) g.Node {
	if !slices.Contains([]inspect.State{inspect.Dead, inspect.Delivered, inspect.Ended}, x.State) {
		return nil
	}
	return v.orderLink(path+"/deliveries/"+x.ID.String()+"/replay", "Make the delivery again")
}
