package console

import (
	"context"
	"net/http"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/journal"
	"github.com/messagehub/messagehub/domain/receiverlist"
)

// Broker is the webhook broker. [broker.Service] implements it.
type Broker interface {
	// ListParties returns up to limit parties of a list, sorted by name. It omits parties whose
	// names sort before the parameter first. next is the first name of the following page, or "" at
	// the end of the list.
	ListParties(ctx context.Context, creds *broker.Credentials, list domain.PartyList, first string, limit int) (parties []*broker.Party, next string, err error)
	// GetParty returns a party.
	GetParty(ctx context.Context, creds *broker.Credentials, id domain.PartyID) (*broker.Party, error)
	// DeadLetters returns up to limit dead letters of a consumer, starting after the entry after. A
	// dead letter is a job whose attempts have all failed.
	DeadLetters(ctx context.Context, creds *broker.Credentials, consumer domain.PartyID, after domain.EntryID, limit int) ([]broker.Job, error)
	// Overdue returns jobs that wait because the node that served their consumers has died.
	Overdue(ctx context.Context, creds *broker.Credentials, q broker.OverdueQuery) (jobs []broker.Job, next broker.OverduePosition, more bool, err error)
	// RetriggerJob delivers a message to a consumer again.
	RetriggerJob(ctx context.Context, creds *broker.Credentials, consumer domain.PartyID, message string) error
}

const (
	shownParties = 50 // maximum number of parties of each list on a page
	shownDead    = 50 // maximum number of dead letters on a page

	overdueDelay = time.Minute // a job is shown once it is overdue for this time
)

// operatorCredentials are the credentials that signed-in operators use for the broker.
var operatorCredentials = &broker.Credentials{IsAdmin: true}

func consumerPath(id domain.PartyID) string {
	return link("broker", "channels", id.Channel().String(), id.String())
}

// brokerOverview shows consumers, overdue jobs, and the channels.
func (v *visit) brokerOverview() error {
	if v.opts.Broker == nil || v.opts.Receivers == nil {
		return errNoReceivers
	}
	query := v.r.URL.Query()
	found, err := v.opts.Receivers.List(v.ctx(), receiverlist.Query{Kind: receiverlist.Consumer, State: query.Get("state"), After: query.Get("after")})
	if err != nil {
		return err
	}
	overdue, _, _, err := v.opts.Broker.Overdue(v.ctx(), operatorCredentials, broker.OverdueQuery{Delay: overdueDelay})
	if err != nil {
		return err
	}
	channels, err := v.partyTable("Channels", domain.Channels, "channel")
	if err != nil {
		return err
	}
	producers, err := v.partyTable("Producers", domain.Producers, "producer")
	if err != nil {
		return err
	}
	return v.show(&view{title: "Broker", body: []g.Node{
		v.overdueJobs(overdue),
		h.H2(g.Text("Consumers")),
		h.Form(
			h.Class("filters"), h.Method("get"), h.Action(link("broker")),
			choiceField{name: "state", label: "State", value: query.Get("state"), options: receiverStateOptions()}.render(), button("Show"),
		),
		v.receiverTable("Consumers of all channels", "No consumer is in this part of the list.", found.Receivers),
		receiverPager(link("broker"), query.Get("state"), query.Get("after"), found.Next),
		h.H2(g.Text("Channels")), channels,
		h.H2(g.Text("Producers")), producers,
	}})
}

// overdueJobs returns a notice about jobs that no node works on, or nil if none exist.
func (v *visit) overdueJobs(jobs []broker.Job) g.Node {
	if len(jobs) == 0 {
		return nil
	}
	t := tableView{caption: "Overdue jobs, one of each shard", columns: []column{{title: "Consumer"}, {title: "Message"}, {title: "Status"}, {title: "Due"}, {title: "Orders"}}}
	for i := range jobs {
		j := &jobs[i]
		t.rows = append(t.rows, []g.Node{anchor(consumerPath(j.Consumer), j.Consumer.FullName()), code(j.Message), g.Text(string(j.Status)), moment(j.Due), v.retriggerLink(j)})
	}
	return notice(bad, h.P(g.Text("The node that served these consumers has died, and no other node has taken over. Deliver one of the jobs again: a node then takes over all consumers of its shard.")), t.render())
}

// partyTable returns one page of a list of parties as a table. The query parameter called parameter
// contains the first name on the page.
func (v *visit) partyTable(title string, list domain.PartyList, parameter string) (g.Node, error) {
	first := v.r.URL.Query().Get(parameter)
	found, next, err := v.opts.Broker.ListParties(v.ctx(), operatorCredentials, list, first, shownParties)
	if err != nil {
		return nil, err
	}
	t := tableView{caption: title + ", in the order of their names, in UTC", columns: []column{{title: "Name"}, {title: "Label"}, {title: "Created"}, {title: "Changed"}}, empty: "This part of the list is empty."}
	for _, p := range found {
		name := bdi(p.ID.String())
		if list == domain.Channels {
			name = anchor(link("broker", "channels", p.ID.String()), p.ID.String())
		}
		t.rows = append(t.rows, []g.Node{name, bdi(p.Label), moment(p.Created), moment(p.Changed)})
	}
	start, further := "", ""
	if first != "" {
		start = link("broker")
	}
	if next != "" {
		further = withQuery(link("broker"), parameter, next)
	}
	return g.Group{t.render(), pager(start, further)}, nil
}

// channel returns the id of the channel in the path.
func (v *visit) channel() (domain.PartyID, error) {
	if v.opts.Broker == nil || v.opts.Receivers == nil {
		return domain.PartyID{}, errNoReceivers
	}
	id, err := domain.Channels.Parse(v.path("channel"))
	if err != nil {
		return id, &pageError{http.StatusBadRequest, "The name of the channel is not valid", toSentence(err)}
	}
	return id, nil
}

// brokerChannel shows a channel with its consumers.
func (v *visit) brokerChannel() error {
	id, err := v.channel()
	if err != nil {
		return err
	}
	p, err := v.opts.Broker.GetParty(v.ctx(), operatorCredentials, id)
	if err != nil {
		return err
	}
	first := v.r.URL.Query().Get("first")
	parties, next, err := v.opts.Broker.ListParties(v.ctx(), operatorCredentials, id.Consumers(), first, shownParties)
	if err != nil {
		return err
	}
	ids := make([]domain.PartyID, len(parties))
	for i := range parties {
		ids[i] = parties[i].ID
	}
	found, err := v.opts.Receivers.Consumers(v.ctx(), ids)
	if err != nil {
		return err
	}
	path, start, further := link("broker", "channels", id.String()), "", ""
	if first != "" {
		start = path
	}
	if next != "" {
		further = withQuery(path, "first", next)
	}
	return v.show(&view{title: "Channel", about: id.String(), body: []g.Node{
		facts(fact{"Label", bdi(p.Label)}, fact{"Created", moment(p.Created)}, fact{"Changed", moment(p.Changed)}),
		v.receiverTable("Consumers of the channel", "The channel has no consumer in this part of the list.", found), pager(start, further),
	}})
}

// consumer returns the id of the consumer in the path.
func (v *visit) consumer() (domain.PartyID, error) {
	channel, err := v.channel()
	if err != nil {
		return channel, err
	}
	id, err := channel.Consumers().Parse(v.path("consumer"))
	if err != nil {
		return id, &pageError{http.StatusBadRequest, "The name of the consumer is not valid", toSentence(err)}
	}
	return id, nil
}

// brokerConsumer shows a consumer with its dead letters.
func (v *visit) brokerConsumer() error {
	id, err := v.consumer()
	if err != nil {
		return err
	}
	p, err := v.opts.Broker.GetParty(v.ctx(), operatorCredentials, id)
	if err != nil {
		return err
	}
	found, err := v.opts.Receivers.Consumers(v.ctx(), []domain.PartyID{id})
	if err != nil {
		return err
	}
	after := domain.EntryID{Number: -1}
	text := v.r.URL.Query().Get("after")
	if text != "" {
		var isOurs bool
		if after, isOurs = domain.ParseMessageID(text); !isOurs {
			return domain.Errorf(domain.Invalid, "after: want the id of a message, got %q", domain.Shorten(text))
		}
	}
	dead, err := v.opts.Broker.DeadLetters(v.ctx(), operatorCredentials, id, after, shownDead+1)
	if err != nil {
		return err
	}
	path, first, next := consumerPath(id), "", ""
	if text != "" {
		first = path
	}
	if len(dead) > shownDead {
		dead = dead[:shownDead]
		next = withQuery(path, "after", dead[shownDead-1].Message)
	}
	return v.show(&view{title: "Consumer", about: id.FullName(), body: []g.Node{
		v.receiverFacts(&found[0]),
		facts(fact{"Label", bdi(p.Label)}, fact{"Created", moment(p.Created)}, fact{"Changed", moment(p.Changed)}),
		actionLinks(
			h.A(h.Href(link("broker", "channels", id.Channel().String())), g.Text("The channel")),
			h.A(h.Href(path+"/records"), g.Text("Records of operators")),
		),
		h.H2(g.Text("Dead letters")), v.deadJobs(dead), pager(first, next),
	}})
}

// deadJobs returns a table of jobs whose attempts have all failed.
func (v *visit) deadJobs(jobs []broker.Job) g.Node {
	t := tableView{
		caption: "Dead letters, in the order of their messages, in UTC",
		columns: []column{{title: "Message"}, {title: "Last attempt"}, {title: "Attempts", isNumber: true}, {title: "Status", isNumber: true}, {title: "Reason"}, {title: "Orders"}},
		empty:   "There are no dead letters in this part of the list.",
	}
	for i := range jobs {
		j := &jobs[i]
		last, status := time.Time{}, "–"
		if n := len(j.History); n > 0 {
			last = j.History[n-1].Began
			if s := j.History[n-1].Status; s > 0 {
				status = strconv.Itoa(s)
			}
		}
		t.rows = append(t.rows, []g.Node{code(j.Message), moment(last), number(int64(j.Attempts)), g.Text(status), bdi(j.Reason), v.retriggerLink(j)})
	}
	return t.render()
}

func (v *visit) retriggerLink(j *broker.Job) g.Node {
	return v.orderLink(consumerPath(j.Consumer)+"/messages/"+j.Message+"/re-trigger", "Deliver again")
}

// consumerSubject returns the subject of the records of a consumer.
func consumerSubject(id domain.PartyID) journal.Subject {
	return journal.SubjectOf("consumer", id.Channel().String(), id.String())
}

// retriggerJob shows the form that delivers a message to a consumer again. If the form was submitted,
// it delivers the message.
func (v *visit) retriggerJob() error {
	id, err := v.consumer()
	if err != nil {
		return err
	}
	entry, isOurs := domain.ParseMessageID(v.path("message"))
	if !isOurs {
		return errNoPage
	}
	message := entry.MessageID()
	dead, err := v.opts.Broker.DeadLetters(v.ctx(), operatorCredentials, id, domain.EntryID{Priority: entry.Priority, Number: entry.Number - 1}, 1)
	if err != nil {
		return err
	}
	status, reason, attempts := "no dead letter", "", 0
	if len(dead) > 0 && dead[0].Message == message {
		status, reason, attempts = string(dead[0].Status), dead[0].Reason, dead[0].Attempts
	}
	return v.confirm(&confirmation{
		title: "Deliver again to consumer", about: id.FullName(), button: "Deliver the message again",
		effect: "A dead letter is delivered again, with all attempts. A message that waits is tried now. A consumer that has already processed the message receives it twice.",
		typed:  id.String(), typedLabel: "Consumer",
		state: []fact{
			textFact("Channel", id.Channel().String()), textFact("Consumer", id.String()), textFact("Message", message),
			textFact("Status", status), textFact("Reason", reason), textFact("Attempts", strconv.Itoa(attempts)),
		},
		carryOut: func(by hub.AdminAction) error {
			return v.opts.Journal.CarryOut(v.ctx(), consumerSubject(id), "re-trigger", message, by, func(ctx context.Context) error {
				return v.opts.Broker.RetriggerJob(ctx, operatorCredentials, id, message)
			})
		},
		after: withQuery(consumerPath(id)+"/records", "done", "1"),
	})
}

// consumerRecords shows the records of orders that concern a consumer.
func (v *visit) consumerRecords() error {
	id, err := v.consumer()
	if err != nil {
		return err
	}
	return v.showRecords("Records of consumer", id.FullName(), consumerSubject(id), consumerPath(id))
}
